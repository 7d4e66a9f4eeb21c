class Engine:
    def start(self):
        return "on"


class LoggingProxy:
    def __init__(self, target):
        self._target = target
        self.names = []

    def __getattr__(self, name):
        self.names.append(name)
        return getattr(self._target, name)


proxy = LoggingProxy(Engine())
proxy.start()
