class Registry(type):
    def __new__(mcs, name, bases, space):
        return super().__new__(mcs, name, bases, space)


class Plugin(metaclass=Registry):
    pass
