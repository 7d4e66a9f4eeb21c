def given():
    return 1


def made():
    return 2


def run(function=None):
    function = wrap(function)
    return function()


def wrap(function):
    return made


run(given)
