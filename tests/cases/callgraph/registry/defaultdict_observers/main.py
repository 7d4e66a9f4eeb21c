from collections import defaultdict


class Bus:
    def __init__(self):
        self._subs = defaultdict(list)

    def on(self, event, callback):
        self._subs[event].append(callback)

    def emit(self, event, *args):
        for callback in self._subs[event]:
            callback(*args)


class Log:
    def write(self, text):
        return text


def shout(text):
    return text.upper()


bus = Bus()
log = Log()
bus.on("a", log.write)
bus.on("b", shout)
bus.emit("a", "x")
bus.emit("b", "y")
