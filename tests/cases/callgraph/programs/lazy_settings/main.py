class Settings:
    def __init__(self):
        self.debug = True

    def reload(self):
        return load()


def load():
    return Settings()


class LazySettings:
    _wrapped = None

    def _setup(self):
        self._wrapped = load()

    def __getattr__(self, name):
        if self._wrapped is None:
            self._setup()
        return getattr(self._wrapped, name)


settings = LazySettings()


def use():
    return settings.reload()


use()
