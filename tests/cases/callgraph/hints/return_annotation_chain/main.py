from abc import ABC, abstractmethod


class Cursor:
    def rows(self) -> "list[Row]": ...


class Row:
    def show(self) -> str:
        return ""


class Connection(ABC):
    @abstractmethod
    def cursor(self) -> Cursor: ...


def report(connection: Connection):
    for row in connection.cursor().rows():
        row.show().upper()
