class Meta(type):
    registry = {}

    def __new__(mcls, name, bases, namespace):
        cls = super().__new__(mcls, name, bases, namespace)
        mcls.registry[name] = cls
        return cls

    def describe(cls):
        return cls.label()


class Model(metaclass=Meta):
    @classmethod
    def label(cls):
        return "model"


class User(Model):
    @classmethod
    def label(cls):
        return "user"


Model.describe()
User.describe()
for cls in Meta.registry.values():
    cls.label()
