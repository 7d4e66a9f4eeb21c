import state


def bye():
    return "bye"


state.registry.add(bye)
