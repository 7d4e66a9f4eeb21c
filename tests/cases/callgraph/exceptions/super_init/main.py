class ParseError(Exception):
    def __init__(self, line):
        super().__init__(f"line {line}")
        self.line = line


def parse():
    raise ParseError(3)


try:
    parse()
except ParseError:
    pass
