def start():
    return 1


def stop():
    return 2


commands = {"start": start, "stop": stop}
commands["start"]()
