class Book:
    def __init__(self, title):
        self.title = title

    def rank(self):
        return self.title


def shelf(books):
    return sorted(books, key=Book.rank)


shelf([Book("b"), Book("a")])
