from registry import codec


@codec("json", "js")
class JsonCodec:
    def __init__(self):
        self.indent = 2

    def encode(self, value):
        return self._dump(value)

    def _dump(self, value):
        return value


@codec("text")
class TextCodec:
    def encode(self, value):
        return str(value)
