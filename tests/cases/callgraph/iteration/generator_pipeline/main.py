def read(lines):
    for line in lines:
        yield line


def parse(lines, parser):
    for line in lines:
        yield parser(line)


def keep(items, test):
    return (item for item in items if test(item))


def collect(items):
    return [item.value() for item in items]


class Item:
    def __init__(self, text):
        self.text = text

    def value(self):
        return self.text


def good(item):
    return item.value() != ""


collect(keep(parse(read(["a", ""]), Item), good))
