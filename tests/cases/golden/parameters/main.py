def every(a, /, b, c=1, *args, d, e=2, **kwargs):
    return a, b, c, args, d, e, kwargs


def positional(a, b=0, /): ...
def keyword(*, a, b=0): ...


every(1, 2, 3, 4, d=5, f=6)
positional(1, 2)
keyword(a=1)
