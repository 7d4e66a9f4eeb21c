def go():
    return 1


def halt():
    return 2


def ignore():
    return 3


def command(word):
    match word:
        case "go":
            return go()
        case "stop":
            return halt()
        case _:
            return ignore()


command("go")
