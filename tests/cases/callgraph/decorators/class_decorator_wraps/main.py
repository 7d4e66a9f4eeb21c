def counted(cls):
    class Counted(cls):
        made = 0

        def __init__(self, *args):
            Counted.made += 1
            super().__init__(*args)

    return Counted


@counted
class Item:
    def __init__(self, name):
        self.name = name

    def label(self):
        return self.name


Item("x").label()
