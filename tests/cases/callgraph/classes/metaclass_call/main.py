class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


class Thing(metaclass=Meta):
    def __init__(self, name):
        self.name = name

    def show(self):
        return self.name


Thing("a").show()
