class Request:
    def send(self): ...


class Special(Request):
    def send(self): ...


class Failure:
    def send(self): ...


def report(handlers, value):
    for handler in handlers:
        if handler.accepts(value):
            handler.handle(value)


class Sender:
    def accepts(self, value):
        return isinstance(value, Request)

    def handle(self, request: Request):
        request.send()


class Logger:
    def accepts(self, value):
        return isinstance(value, Failure)

    def handle(self, failure: "Failure"):
        failure.send()


def main():
    handlers = [Sender(), Logger()]
    report(handlers, Special())
    report(handlers, Failure())


main()
