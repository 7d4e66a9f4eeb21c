def curry(function):
    def a(x):
        def b(y):
            def c(z):
                return function(x, y, z)

            return c

        return b

    return a


def volume(x, y, z):
    return x * y * z


curry(volume)(1)(2)(3)
