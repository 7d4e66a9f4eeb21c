from .base import Exporter


class Csv(Exporter):
    kind = "csv"

    def line(self, row):
        return ";".join(row)
