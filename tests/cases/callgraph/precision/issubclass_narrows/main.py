class Field:
    def load(self):
        return 1


class Number(Field):
    def load(self):
        return 2


class Schema:
    def load(self):
        return 3


def resolve(kind):
    if isinstance(kind, type):
        if not issubclass(kind, Field):
            raise TypeError
        return kind()
    if not isinstance(kind, Field):
        raise TypeError
    return kind


def use(kind):
    return resolve(kind).load()


def either(kind):
    if issubclass(kind, (Number, Schema)):
        return kind().load()
    return None


use(Number)
use(Number())
either(Schema)
either(Field)
for unfit in (Schema, Schema()):
    try:
        use(unfit)
    except TypeError:
        pass
