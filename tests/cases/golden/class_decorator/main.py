def register(cls):
    cls.registered = True
    return cls


def tagged(tag):
    return register


@register
@tagged("x")
class Plugin:
    def run(self): ...


Plugin().run()
