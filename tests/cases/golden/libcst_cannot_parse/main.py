(plain): float = 1.5
print(plain)


def f(a):
    return plain + a
