from .base import Report as _Base


class HtmlReport(_Base):
    format = "html"

    def header(self):
        return "<b>" + super().header()

    def line(self, row):
        return "<i>"
