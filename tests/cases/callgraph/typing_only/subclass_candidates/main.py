class Animal:
    def speak(self):
        return self.sound()

    def sound(self):
        raise NotImplementedError


class Dog(Animal):
    def sound(self):
        return "wuff"


def make_noise(animal: Animal):
    animal.speak()
    animal.sound()
