class Client:
    def get(self, path):
        return 1

    def fail(self):
        raise ValueError("x")
