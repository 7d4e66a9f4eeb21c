import functools


def logged(function):
    @functools.wraps(function)
    def wrapper(*args):
        print(function.__name__)
        return function(*args)

    return wrapper


@logged
def work(n):
    return n


work(1)
