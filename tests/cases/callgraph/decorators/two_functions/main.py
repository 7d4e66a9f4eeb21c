def logged(function):
    def wrapper():
        return function()

    return wrapper


@logged
def first():
    return 1


@logged
def second():
    return 2


first()
second()
