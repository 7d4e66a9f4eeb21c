class Resource:
    def __init__(self, name):
        self.name = name
        self.opened = self.open()

    def open(self):
        return False
