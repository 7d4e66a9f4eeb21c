class Client:
    def call(self):
        return "b"
