class Lamp:
    pass


def glow():
    return 1


lamp = Lamp()
setattr(lamp, "light", glow)
lamp.light()
