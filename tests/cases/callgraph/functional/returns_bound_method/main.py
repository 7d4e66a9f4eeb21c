import functools


class Printer:
    def write(self, text):
        return text

    def at(self, level):
        return functools.partial(self._log, level)

    def _log(self, level, text):
        return self.write(text)


def writer():
    return Printer().write


def printer_class():
    return Printer


writer()("x")
printer_class()().at(1)("y")
