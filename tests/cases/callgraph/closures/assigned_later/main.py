def early():
    return 1


def late():
    return 2


def build():
    action = early

    def run():
        return action()

    action = late
    return run


build()()
