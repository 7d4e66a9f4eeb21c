def register(function, registry=[]):
    registry.append(function)
    return registry


def a():
    return 1


def b():
    return 2


register(a)
for function in register(b):
    function()
