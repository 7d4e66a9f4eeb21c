import json
import os.path
from math import sqrt as root


def use():
    json.dumps({})
    os.path.join("a", "b")
    return root(4)


use()
