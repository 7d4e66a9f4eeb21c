class Dir:
    def __init__(self, *items):
        self.items = items

    def size(self):
        return 0


class File:
    def size(self):
        return 1


def walk(item):
    yield item
    if isinstance(item, Dir):
        for each in item.items:
            yield from walk(each)


total = sum(each.size() for each in walk(Dir(File(), Dir())))
