from contextlib import contextmanager


class Timer:
    def __enter__(self):
        return self

    def __exit__(self, *details):
        return False

    def stop(self): ...


@contextmanager
def managed():
    yield Timer()


with Timer() as timer, managed() as other:
    timer.stop()
    other.stop()
