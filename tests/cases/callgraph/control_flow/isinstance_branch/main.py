class Text:
    def read(self):
        return 1


class Image:
    def show(self):
        return 2


def use(item):
    if isinstance(item, Text):
        return item.read()
    return item.show()


use(Text())
use(Image())
