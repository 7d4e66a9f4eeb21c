from abc import ABC, abstractmethod


class Exporter(ABC):
    _kinds = {}
    kind = None

    def __init_subclass__(cls):
        Exporter._kinds[cls.kind] = cls

    @classmethod
    def for_kind(cls, kind):
        return cls._kinds[kind]()

    def export(self, rows):
        return [self.line(row) for row in rows]

    @abstractmethod
    def line(self, row): ...
