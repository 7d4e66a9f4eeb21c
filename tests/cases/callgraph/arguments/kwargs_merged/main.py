def ok():
    return 1


def err():
    return 2


BASE = {"on_error": err}


def run(**kwargs):
    options = {**BASE, **kwargs}
    other = BASE | kwargs
    third = {}
    third.update(kwargs)
    options["on_ok"]()
    other["on_error"]()
    return third["on_ok"]()


run(on_ok=ok)
