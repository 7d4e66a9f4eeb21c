class lazy:
    def __init__(self, function):
        self.function = function

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.function(instance)
        return value


class Report:
    @lazy
    def rows(self):
        return self.load()

    def load(self):
        return [1]


report = Report()
report.rows
