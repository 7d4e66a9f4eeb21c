class Button:
    def __init__(self, **handlers):
        self.handlers = handlers

    def trigger(self, name):
        handler = self.handlers.get(name)
        if handler is not None:
            handler(self)


def clicked(button):
    return button


class Form:
    def __init__(self):
        self.ok = Button(click=self.submit, hover=lambda b: b.trigger("none"))

    def submit(self, button):
        return 1


Button(click=clicked).trigger("click")
Form().ok.trigger("click")
Form().ok.trigger("hover")
