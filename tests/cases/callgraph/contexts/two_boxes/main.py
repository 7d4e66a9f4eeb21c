class Box:
    def __init__(self, content):
        self.content = content

    def get(self):
        return self.content


class Cat:
    def purr(self):
        return 1

    def name(self):
        return "cat"


class Dog:
    def bark(self):
        return 2

    def name(self):
        return "dog"


def cats():
    box = Box(Cat())
    return box.get().purr()


def dogs():
    box = Box(Dog())
    return box.get().bark()


cats()
dogs()
