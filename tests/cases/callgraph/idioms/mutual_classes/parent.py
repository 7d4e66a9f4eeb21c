class Parent:
    def __init__(self):
        self.children = []

    def spawn(self):
        from child import Child

        kid = Child(self)
        self.children.append(kid)
        return kid

    def wave(self):
        return [kid.wave_back() for kid in self.children]
