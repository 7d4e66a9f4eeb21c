class Registry:
    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)

    def run_all(self):
        return [item() for item in self.items]


registry = Registry()
