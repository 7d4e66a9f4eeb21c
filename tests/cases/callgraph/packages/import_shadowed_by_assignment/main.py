from net import get

_get = get


def get(url):
    return _get(url.lower())


get("X")
