def count(stop):
    n = 0
    while n < stop:
        sent = yield n
        n += sent or 1


def both():
    result = yield from count(2)
    yield
    return result


for number in both():
    print(number)
