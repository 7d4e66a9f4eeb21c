class Json:
    def dump(self):
        return "{}"


class Response:
    encoder = Json()

    def body(self):
        return self.encoder.dump()


Response().body()
