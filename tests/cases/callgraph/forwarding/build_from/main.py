class Settings:
    def get(self, name): ...


class Apple:
    def __init__(self, knife):
        self.knife = knife

    def peel(self): ...


class Brick:
    @classmethod
    def from_settings(cls, settings, *args, **kwargs):
        settings.get("brick")
        return cls(*args, **kwargs)

    def __init__(self, stone):
        self.stone = stone

    def peel(self): ...


def build_from(cls, settings, *args, **kwargs):
    if settings is None:
        return None
    if hasattr(cls, "from_settings"):
        made = cls.from_settings(settings, *args, **kwargs)
    else:
        made = cls(*args, **kwargs)
    if made is None:
        return None
    return made


def kitchen():
    build_from(Apple, Settings(), 1).peel()


def site():
    build_from(Brick, Settings(), stone=2).peel()


kitchen()
site()
