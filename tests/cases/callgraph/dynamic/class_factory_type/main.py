def hello(self):
    return self.name()


def name(self):
    return "n"


Made = type("Made", (), {"hello": hello, "name": name})
Made().hello()
