class Animal:
    def speak(self):
        return ""


class Dog(Animal):
    def speak(self):
        return "wuff"


def hear(animal: Animal):
    return animal.speak()


hear(Dog())
