from table import HANDLERS


def handle(kind):
    return HANDLERS[kind]()


handle("a")
