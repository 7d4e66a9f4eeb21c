class Button:
    def __init__(self, handler=None):
        if handler:
            self.click = handler

    def click(self):
        return "default"


def custom():
    return "custom"


Button(custom).click()
Button().click()
