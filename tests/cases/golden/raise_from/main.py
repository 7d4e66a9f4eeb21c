class Broken(Exception):
    pass


def load(path):
    try:
        return open(path)
    except OSError as cause:
        raise Broken(path) from cause
    except EOFError:
        raise Broken from None
