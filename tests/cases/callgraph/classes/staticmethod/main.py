class Text:
    @staticmethod
    def clean(raw):
        return strip(raw)

    def show(self):
        return self.clean(" a ")


def strip(raw):
    return raw


Text.clean("x")
Text().show()
