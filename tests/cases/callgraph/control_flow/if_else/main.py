def day():
    return 1


def night():
    return 2


def greet(hour):
    if hour < 12:
        action = day
    else:
        action = night
    return action()


greet(9)
