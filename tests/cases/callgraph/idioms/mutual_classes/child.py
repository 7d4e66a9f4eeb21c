import parent


class Child:
    def __init__(self, owner: "parent.Parent"):
        self.owner = owner

    def wave_back(self):
        return 1

    def sibling(self):
        return self.owner.spawn()

    def orphan(self):
        return parent.Parent()
