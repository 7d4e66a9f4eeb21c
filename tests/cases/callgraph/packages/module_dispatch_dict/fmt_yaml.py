def dump(value):
    return quote("yaml")


def quote(text):
    return text
