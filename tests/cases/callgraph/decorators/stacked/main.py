def outer(function):
    def outside():
        return function()

    return outside


def inner(function):
    def inside():
        return function()

    return inside


@outer
@inner
def work():
    return 1


work()
