import json


class BadConfig(json.JSONDecodeError):
    def where(self):
        return self.place()

    def place(self):
        return self.lineno


def parse():
    raise BadConfig("m", "d", 0)


try:
    parse()
except ValueError as error:
    if isinstance(error, BadConfig):
        error.where()
