from threading import Lock

lock = Lock()


def write(path, other):
    with lock, open(path) as source, open(other, "w") as (target):
        target.write(source.read())
    with (lock):
        pass
