def make(name):
    def method(self):
        return self.call(name)

    return method


class Api:
    def call(self, name):
        return name


for name in ("users", "posts"):
    setattr(Api, name, make(name))

Api().users()
Api().posts()
