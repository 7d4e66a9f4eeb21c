class Report:
    format = ""

    def __init__(self, rows, title=None):
        self.rows = rows
        self.title = title or self.default_title()

    def default_title(self):
        return "report"

    def render(self):
        return self.header() + self.body()

    def header(self):
        return ""

    def body(self):
        return "".join(self.line(row) for row in self.rows)
