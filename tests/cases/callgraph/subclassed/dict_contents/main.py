class Handler:
    def handle(self):
        return 1


class Handlers(dict):
    def add(self, key, handler):
        self[key] = handler

    def fire(self, key):
        return self[key].handle()

    def fire_all(self):
        for key, handler in self.items():
            handler.handle()


handlers = Handlers()
handlers.add("a", Handler())
handlers.fire("a")
handlers.fire_all()
handlers.get("a").handle()
