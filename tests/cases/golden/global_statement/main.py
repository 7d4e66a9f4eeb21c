state = None


def switch():
    global state, created
    state = "on"
    created = state


def reader():
    return state, created


switch()
print(reader())
