def f(x):
    return x


def g(x):
    return x


SPEC = {"f": (f, (1,)), "g": (g, (2,))}
function, args = SPEC["f"]
function(*args)


def run(name):
    function, args = SPEC[name]
    return function(*args)


run("g")
