class Config:
    _instance = None

    def __new__(cls, *args):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance.setup()
        return cls._instance

    def setup(self):
        self.values = {}

    def get(self, key):
        return self.values.get(key)


def lookup(key):
    return Config().get(key)


lookup("a")
lookup("b")
