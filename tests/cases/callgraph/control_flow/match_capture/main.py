def ping(n):
    return n


def run(message):
    match message:
        case [action, number]:
            return action(number)


run((ping, 1))
