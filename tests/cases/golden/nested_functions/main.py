def outer(a):
    def middle(b):
        def inner(c):
            return a + b + c

        return inner(1)

    return middle(2)


outer(3)
