def a():
    return 1


def b():
    return 2


def c():
    return 3


def choose(flag, items):
    function = a
    if flag:
        function = b
    function()
    for item in items:
        function = c
    function()
    function = a
    return function()


choose(True, [1])
choose(False, [])
