from defaults import *


def load():
    return 3


load()
save()
