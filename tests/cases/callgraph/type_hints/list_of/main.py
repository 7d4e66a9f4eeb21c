class Row:
    def render(self):
        return ""


def table(rows: list[Row]):
    for row in rows:
        row.render()
