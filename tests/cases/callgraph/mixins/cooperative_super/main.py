class Root:
    def __init__(self, **kwargs):
        self.rest = kwargs

    def save(self):
        return self.flush()

    def flush(self):
        return 0


class Logged(Root):
    def __init__(self, log=None, **kwargs):
        super().__init__(**kwargs)
        self.log = log

    def save(self):
        self.log("save")
        return super().save()


class Cached(Root):
    def __init__(self, cache=None, **kwargs):
        super().__init__(**kwargs)
        self.cache = cache

    def save(self):
        self.cache.clear()
        return super().save()


class Store(Logged, Cached):
    def flush(self):
        return 1


def log(text):
    return text


Store(log=log, cache={}).save()
