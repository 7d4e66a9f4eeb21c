def used():
    return 1


def unused():
    return used()


def unused_too():
    return unused()
