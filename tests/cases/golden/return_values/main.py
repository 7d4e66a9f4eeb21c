def nothing():
    return


def make():
    return nothing, 1


def pass_through(x):
    return x


action, _ = make()
action()
pass_through(nothing)()
