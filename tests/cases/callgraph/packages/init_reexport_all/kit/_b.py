__all__ = ["Lid"]


class Lid:
    def close(self):
        return hidden()


def hidden():
    return 3
