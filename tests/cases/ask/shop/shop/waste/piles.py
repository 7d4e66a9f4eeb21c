"""Methods that are found by names which are made of texts."""


class Pile:
    def sort_by_size(self, how):
        """0.3: its name begins with a text."""

    def _shovel(self):
        """0.7: names are computed in this file."""


def _namesake():
    return Pile


def sort_all(thing, how):
    return _namesake(), getattr(thing, "sort_by_" + how)(how)
