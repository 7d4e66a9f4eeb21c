def normal(x):
    return x


def apply(x, key=normal, wrap=lambda y: (y,), *, finish=None):
    finish = finish or (lambda z: z)
    return finish(wrap(key(x)))


apply(1)
apply(2, key=abs)
apply(3, finish=list)
