class Cat:
    def purr(self):
        return 1


class Dog:
    def bark(self):
        return 2


def pet(animal):
    if isinstance(animal, Cat):
        return animal.purr()
    elif isinstance(animal, (Dog,)):
        return animal.bark()
    return None
