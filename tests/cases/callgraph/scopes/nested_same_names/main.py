def load():
    return "module"


class Loader:
    def load(self):
        def load():
            return "inner"

        return load() + self.fallback()

    def fallback(self):
        return load()


Loader().load()
