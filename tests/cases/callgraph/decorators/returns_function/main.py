REGISTRY = []


def register(function):
    REGISTRY.append(function)
    return function


@register
def job():
    return 1


job()
