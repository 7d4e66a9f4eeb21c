class Meta(type):
    def __instancecheck__(cls, instance):
        return hasattr(instance, "draw")


class Drawable(metaclass=Meta):
    pass


class Dot:
    def draw(self):
        return 1


def check(thing):
    return isinstance(thing, Drawable)


check(Dot())
