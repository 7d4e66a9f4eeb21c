def shout(self):
    return self.name().upper()


class Person:
    call = shout

    def name(self):
        return "ada"


Person().call()
