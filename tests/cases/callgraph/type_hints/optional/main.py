from typing import Optional


class Cache:
    def clear(self):
        return 1


def first(cache: Optional[Cache]):
    if cache is not None:
        cache.clear()


def second(cache: Cache | None = None):
    if cache:
        cache.clear()
