class Registry(type):
    def __new__(mcs, name, bases, space, **options):
        return super().__new__(mcs, name, bases, space)

    def lookup(cls): ...


class Model(metaclass=Registry, table="models"):
    pass


Model.lookup()
