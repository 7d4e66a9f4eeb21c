import sys

if sys.platform == "win32":

    def clear():
        return "cls"

else:

    def clear():
        return "clear"


clear()
