def hidden():
    return 0


from library import *

_secret()
hidden()
