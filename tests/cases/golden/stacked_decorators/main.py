def first(function):
    return function


def second(function):
    return function


registry = []


@first
@second
@registry.append
def job(): ...
