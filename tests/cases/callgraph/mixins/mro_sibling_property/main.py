class Plain:
    @property
    def title(self):
        return self.raw()

    def raw(self):
        return "t"


class Loud:
    @property
    def title(self):
        return super().title.upper()


class Page(Loud, Plain):
    pass


Page().title
