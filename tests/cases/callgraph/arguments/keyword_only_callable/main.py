def outer(*, parse, **rest):
    return inner(parse=parse, **rest)


def inner(*, parse, emit):
    return emit(parse("1"))


def emit(value):
    return value


outer(parse=int, emit=emit)
