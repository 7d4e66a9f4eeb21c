from shop import stock


def place():
    return stock.take()
