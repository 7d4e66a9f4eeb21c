from .csv_report import CsvReport
from .html_report import HtmlReport

_REPORTS = {cls.format: cls for cls in (CsvReport, HtmlReport)}


def report_for(name, *args, **kwargs):
    try:
        cls = _REPORTS[name]
    except KeyError:
        raise UnknownReport(name) from None
    return cls(*args, **kwargs)


class UnknownReport(Exception):
    def __init__(self, name):
        super().__init__(name)
