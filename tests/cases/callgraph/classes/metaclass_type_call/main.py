class Meta(type):
    def __call__(cls, *args):
        cls.prepare()
        return type.__call__(cls, *args)


class Lexer(metaclass=Meta):
    def __init__(self, text):
        self.text = text

    @classmethod
    def prepare(cls):
        return None

    def run(self):
        return self.text


Lexer("x").run()
