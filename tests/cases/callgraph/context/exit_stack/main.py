from contextlib import ExitStack


class File:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None

    def read(self):
        return 1


def cleanup():
    return 1


def run():
    with ExitStack() as stack:
        file = stack.enter_context(File())
        stack.callback(cleanup)
        return file.read()


run()
