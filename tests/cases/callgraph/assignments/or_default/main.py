def standard():
    return 1


def special():
    return 2


def run(action=None):
    chosen = action or standard
    return chosen()


run()
run(special)
