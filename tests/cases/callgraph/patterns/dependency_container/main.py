class Database:
    def query(self):
        return []


class Users:
    def __init__(self, db):
        self.db = db

    def all(self):
        return self.db.query()


class Container:
    def __init__(self):
        self.factories = {}
        self.cache = {}

    def register(self, name, factory):
        self.factories[name] = factory

    def resolve(self, name):
        if name not in self.cache:
            self.cache[name] = self.factories[name](self)
        return self.cache[name]


container = Container()
container.register("db", lambda c: Database())
container.register("users", lambda c: Users(c.resolve("db")))
container.resolve("users").all()
