from functools import cached_property


class Report:
    @cached_property
    def rows(self):
        return load()


def load():
    return [1]


def use(report):
    return report.rows


use(Report())
