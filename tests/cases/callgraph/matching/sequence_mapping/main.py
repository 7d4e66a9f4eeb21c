def go(x):
    return x


def stop():
    return 0


def run(message):
    match message:
        case [function, argument]:
            return function(argument)
        case {"action": action, **rest}:
            return action()
        case (only,):
            return only()


run([go, 1])
run({"action": stop})
run((stop,))
