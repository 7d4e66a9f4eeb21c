from engine.parts import piston


def start():
    return piston()


ready = start()
