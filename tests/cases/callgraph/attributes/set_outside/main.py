class Button:
    def press(self):
        return self.on_press()


def clicked():
    return 1


button = Button()
button.on_press = clicked
button.press()
