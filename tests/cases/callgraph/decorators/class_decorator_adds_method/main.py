def printable(cls):
    def show(self):
        return self.text()

    cls.show = show
    return cls


@printable
class Page:
    def text(self):
        return "page"


Page().show()
