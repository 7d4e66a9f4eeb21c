import parent


class Child:
    def __init__(self, owner):
        self.owner = owner

    def play(self):
        return self.owner.rest()


def adopt():
    return parent.Parent().grow()
