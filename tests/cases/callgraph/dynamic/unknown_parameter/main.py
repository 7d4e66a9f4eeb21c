class Frobnicator:
    def frobnicate(self):
        return 1


def use(thing):
    return thing.frobnicate()
