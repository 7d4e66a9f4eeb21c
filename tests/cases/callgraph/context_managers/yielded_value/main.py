import contextlib


class Handle:
    def close(self):
        return 1


@contextlib.contextmanager
def opened():
    handle = Handle()
    yield handle
    handle.close()


with opened() as handle:
    handle.close()
