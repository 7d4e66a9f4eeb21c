class Order:
    def pack(self):
        return self.wrap()

    def wrap(self):
        return 1
