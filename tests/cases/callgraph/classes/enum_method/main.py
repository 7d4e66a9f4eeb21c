from enum import Enum


class Color(Enum):
    RED = 1
    BLUE = 2

    def label(self):
        return self.pretty()

    def pretty(self):
        return "color"


Color.RED.label()
Color(2).label()
