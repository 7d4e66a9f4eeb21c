class Client:
    def call(self):
        return "a"
