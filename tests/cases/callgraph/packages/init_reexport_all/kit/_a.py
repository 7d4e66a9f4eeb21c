__all__ = ["open_box"]


def open_box():
    return _inside()


def _inside():
    return 1


def hidden():
    return 2
