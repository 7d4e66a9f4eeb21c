def backend():
    return "real"


def run():
    return backend()
