class Cached:
    def __init__(self, function):
        self.function = function

    def __call__(self):
        return self.function()


@Cached
def load():
    return 1


load()
