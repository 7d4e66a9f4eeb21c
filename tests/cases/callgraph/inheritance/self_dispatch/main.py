class Report:
    def render(self):
        return self.title()

    def title(self):
        return "report"


class Sales(Report):
    def title(self):
        return "sales"


Sales().render()
