class Base:
    @property
    def label(self):
        return "base"


class Child(Base):
    @property
    def label(self):
        return super().label + "!"


def show(item):
    return item.label


show(Child())
