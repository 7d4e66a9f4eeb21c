class Event:
    def __init__(self, kind, handler):
        self.kind = kind
        self.handler = handler


def allowed(event):
    return True


def on_key():
    return 1


def on_click():
    return 2


def dispatch(event):
    match event:
        case Event(kind="key" | "char", handler=h) if allowed(event):
            return h()
        case Event(handler=h):
            return h()


dispatch(Event("key", on_key))
dispatch(Event("click", on_click))
