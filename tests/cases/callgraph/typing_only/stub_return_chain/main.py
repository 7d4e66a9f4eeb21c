from a import A


def run(a: A):
    return a.partner().owner().name().upper()
