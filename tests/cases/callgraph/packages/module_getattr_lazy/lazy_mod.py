class _Real:
    def go(self):
        return 1


def __getattr__(name):
    if name == "Thing":
        return _Real
    raise AttributeError(name)
