from .base import Report


class CsvReport(Report):
    format = "csv"

    def line(self, row):
        return ",".join(row)
