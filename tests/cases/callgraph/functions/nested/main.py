def outer():
    def inner():
        return leaf()

    return inner()


def leaf():
    return 1


outer()
