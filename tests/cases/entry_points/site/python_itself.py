import abc
import ast
import cmd
import enum
import html.parser
import http.server
from typing import TYPE_CHECKING, Protocol, overload

SETTINGS = {"backend": "site.python_itself.Backend", "command": "site.python_itself:run"}


class Backend:  # text site.python_itself.Backend python
    def __len__(self):  # protocol __len__ python
        return 0


def run():  # text site.python_itself.run python
    pass


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):  # interface area python
        pass


class Sized(Protocol):
    def size(self) -> int:  # interface size python
        ...


@overload
def twice(value: int) -> int: ...  # overload twice python
@overload
def twice(value: str) -> str: ...  # overload twice python
def twice(value):
    return value + value


if TYPE_CHECKING:

    def reveal(value):  # typing reveal python
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # handler do_GET python
        pass


class Visitor(ast.NodeVisitor):
    def visit_Name(self, node):  # handler visit_Name python
        pass


class Shell(cmd.Cmd):
    def do_quit(self, line):  # handler do_quit python
        pass


class Page(html.parser.HTMLParser):
    def handle_data(self, data):  # handler handle_data python
        pass


class Colour(enum.Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value):  # protocol _missing_ python
        return cls.RED


class Table:
    def _repr_html_(self):  # protocol _repr_html_ ipython
        return "<table>"
