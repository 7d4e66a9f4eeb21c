import json
from os import path


def f(used, unused):
    local = 1
    return used + missing
