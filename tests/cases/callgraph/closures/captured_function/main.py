def log():
    return 1


def around(action):
    def run():
        return action()

    return run


around(log)()
