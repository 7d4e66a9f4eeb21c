class N:
    def __int__(self):
        return 1

    def __float__(self):
        return 1.0

    def __bool__(self):
        return True

    def __round__(self, n=0):
        return 1

    def __hash__(self):
        return 1

    def __reversed__(self):
        return iter([])

    def __bytes__(self):
        return b""

    def __dir__(self):
        return []


def use(n):
    int(n)
    float(n)
    bool(n)
    round(n)
    hash(n)
    reversed(n)
    bytes(n)
    dir(n)


use(N())
