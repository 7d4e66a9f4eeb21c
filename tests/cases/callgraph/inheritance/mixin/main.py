from mixins import Loud


class Dog(Loud):
    def sound(self):
        return "wuff"


Dog().shout()
