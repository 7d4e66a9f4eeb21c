"""Methods that are found by names which are made of texts."""


class Pile:
    def sort(self, how):
        return getattr(self, "sort_by_" + how)(how)

    def sort_by_size(self, how):
        """0.3: its name begins with a text."""

    def _shovel(self):
        """0.7: names are computed in this file."""


def _namesake():
    return Pile


def sort_all(how):
    return _namesake()().sort(how)
