from collections.abc import Callable


def tick():
    return 1


handler: Callable[[], int] = tick
handler()
