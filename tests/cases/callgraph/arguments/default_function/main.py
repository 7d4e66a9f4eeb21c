def fallback():
    return 0


def given():
    return 1


def run(action=fallback):
    return action()


run()
run(given)
