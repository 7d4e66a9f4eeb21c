from state import registry


def hello():
    return "hello"


registry.add(hello)
