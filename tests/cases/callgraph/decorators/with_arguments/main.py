def repeat(times):
    def decorate(function):
        def wrapper():
            return [function() for _ in range(times)]

        return wrapper

    return decorate


@repeat(2)
def hello():
    return "hello"


hello()
