class Row:
    def text(self):
        return "row"


class FancyRow:
    def __init__(self):
        self.color = 1

    def text(self):
        return "fancy"


class Table:
    row_class = Row

    def render(self):
        return self.row_class().text()


class FancyTable(Table):
    row_class = FancyRow


Table().render()
FancyTable().render()
