from ..util.text import clean


class Engine:
    def feed(self, text):
        return clean(text)
