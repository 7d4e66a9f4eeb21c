class Client:
    def send(self):
        return self.connect()

    def connect(self):
        return "real"
