class QuerySet:
    def __init__(self, model, filters=()):
        self.model = model
        self.filters = filters

    def filter(self, test):
        return QuerySet(self.model, (*self.filters, test))

    def __iter__(self):
        for row in self.model.rows:
            obj = self.model(row)
            if all(test(obj) for test in self.filters):
                yield obj

    def first(self):
        for obj in self:
            return obj
        return None


class Manager:
    def __get__(self, instance, owner):
        return QuerySet(owner)


class Model:
    objects = Manager()
    rows = ()

    def __init__(self, row):
        self.row = row


class User(Model):
    rows = (1, 2)

    def greet(self):
        return self.row


def is_big(user):
    return user.row > 1


User.objects.filter(is_big).first().greet()
for user in User.objects.filter(lambda u: True):
    user.greet()
