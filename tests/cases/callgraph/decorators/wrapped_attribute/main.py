import functools


def loud(function):
    @functools.wraps(function)
    def wrapper(text):
        return function(text).upper()

    return wrapper


@loud
def say(text):
    return text


say("a")
say.__wrapped__("b")
