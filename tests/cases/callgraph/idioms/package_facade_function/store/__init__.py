import os

if os.name == "posix":
    from .posix import open_store
else:
    from .win import open_store


def get(key):
    return open_store().read(key)
