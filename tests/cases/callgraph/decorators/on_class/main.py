def tagged(cls):
    cls.tag = "x"
    return cls


@tagged
class Page:
    def __init__(self):
        self.open = True

    def show(self):
        return self.tag


Page().show()
