def make():
    return 1


cache = {}
cache.setdefault("make", make)()
