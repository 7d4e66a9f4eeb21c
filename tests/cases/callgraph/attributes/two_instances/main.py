class Dog:
    def speak(self):
        return "wuff"


class Cat:
    def speak(self):
        return "miau"


class House:
    def __init__(self, pet):
        self.pet = pet

    def knock(self):
        return self.pet.speak()


House(Dog()).knock()
House(Cat()).knock()
