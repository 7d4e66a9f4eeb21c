from enum import Enum


class Color(Enum):
    RED = 1


def describe(value):
    match value:
        case 0 | 1:
            return "bit"
        case "word":
            return value
        case -1.5 | 2 + 3j:
            return "number"
        case None | True:
            return "singleton"
        case Color.RED:
            return "red"
        case other:
            return other
