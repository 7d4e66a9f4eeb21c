def start():
    return 1


def stop():
    return 2


handlers = {action.__name__: action for action in (start, stop)}
handlers["stop"]()
