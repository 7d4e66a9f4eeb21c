def greet():
    return "hi"


def run(action):
    return action()


run(greet)
