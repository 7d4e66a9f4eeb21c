class Link:
    def __init__(self, value, rest=None):
        self.value = value
        self.rest = rest

    def fire(self):
        return self.value()


class Chain:
    def __init__(self):
        self.head = None

    def push(self, value):
        self.head = Link(value, self.head)

    def __iter__(self):
        link = self.head
        while link is not None:
            yield link
            link = link.rest


def a():
    return 1


def b():
    return 2


chain = Chain()
chain.push(a)
chain.push(b)
for link in chain:
    link.fire()
list(map(Link.fire, chain))
