def notify():
    return 1


def default():
    return 2


def request(**kwargs):
    callback = kwargs.pop("callback", default)
    return callback()


request(callback=notify, timeout=1)
request()
