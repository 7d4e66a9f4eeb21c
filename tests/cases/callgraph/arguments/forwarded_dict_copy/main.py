def defaults(**kwargs):
    return dict(kwargs, retries=1)


def request(**kwargs):
    options = defaults(**kwargs)
    return options["callback"](options["retries"])


def done(n):
    return n


request(callback=done)
