class Row:
    def __init__(self, n):
        self.n = n

    def good(self):
        return self.n > 0


class Query:
    def __init__(self, source):
        self.source = source

    def where(self, test):
        return Query(row for row in self.source if test(row))

    def select(self, function):
        return Query(map(function, self.source))

    def __iter__(self):
        return iter(self.source)


def rows():
    for n in range(2):
        yield Row(n)


for value in Query(rows()).where(Row.good).select(lambda row: row.good()):
    print(value)
