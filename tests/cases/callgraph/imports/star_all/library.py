__all__ = ["_secret"]


def _secret():
    return 1


def hidden():
    return 2
