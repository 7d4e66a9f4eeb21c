def a():
    return 1


def b():
    return 2


def c():
    return 3


def run(items):
    function = c
    for item in items:
        function = a if item else b
        function()
    return None


run([0, 1])
