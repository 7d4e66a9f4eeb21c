def apply(function, *args):
    return function(*args)


def double(n):
    return n * 2


class Button:
    def __init__(self, on_click):
        self.on_click = on_click

    def click(self):
        self.on_click(self)


apply(double, 2)
Button(double).click()
sorted([1], key=double)
