class Model:
    @classmethod
    def create(cls):
        return cls()


class User(Model):
    def __init__(self):
        self.name = "ada"

    def greet(self):
        return self.name


User.create().greet()
