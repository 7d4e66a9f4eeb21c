class Store:
    def __init__(self):
        self.callback = None

    def subscribe(self, callback):
        self.callback = callback

    def change(self):
        return self.callback()
