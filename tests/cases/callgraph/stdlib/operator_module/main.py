from operator import attrgetter, itemgetter, methodcaller


class User:
    def __init__(self, name):
        self.name = name

    def greet(self):
        return self.name


def rank(users):
    users = sorted(users, key=attrgetter("name"))
    pairs = sorted([(1, 2)], key=itemgetter(1))
    return list(map(methodcaller("greet"), users)), pairs


rank([User("b"), User("a")])
