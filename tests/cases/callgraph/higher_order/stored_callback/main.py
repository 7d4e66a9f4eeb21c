from button import Button


class Page:
    def __init__(self):
        self.button = Button(self.clicked)

    def clicked(self):
        return 1


Page().button.press()
