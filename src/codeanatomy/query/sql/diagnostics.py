"""Describe what is wrong with a statement and where, for terminals and editors.

    Diagnostic("column", "unknown column 'nme'", line=1, column=8, end=11,
               snippet=..., suggestion="did you mean name?")

`code` is one of `CODES`. Lines and columns are counted from 1; `end` is the column after the last character.
Tests: `tests/unit/query/test_sql.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from msgspec import Struct, to_builtins
from sqlglot import exp

from codeanatomy.errors import SqlRefused

CODES = {
    "syntax": "It cannot be read as SQL.",
    "statement": "It is not exactly one query: another kind of statement, several of them, or none.",
    "size": "It is too long, too deep or too wide.",
    "clause": "A part of SQL that is not supported.",
    "function": "A function that is not supported.",
    "table": "There is no such view, or it is named in a way that is not supported.",
    "column": "There is no such column.",
    "ambiguous": "Several relations have a column of that name.",
    "type": "A value of one type where another is needed.",
    "engine": "The engine refused it.",
    "time": "It exceeded the time limit.",
}
# Most characters of a line that are shown.
SHOWN = 120


class Diagnostic(Struct, frozen=True):
    """One problem of a statement."""

    code: str
    message: str
    line: int | None = None
    column: int | None = None
    end: int | None = None
    snippet: str | None = None
    suggestion: str | None = None


class Diagnostics:
    """Collects the problems of a statement."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.diagnostics: list[Diagnostic] = []

    def add(self, code: str, message: str, at: exp.Expr | None = None, suggestion: str | None = None) -> None:
        """Report a problem with a part of the statement."""
        start, end = span(at) if at is not None else (None, None)
        self.add_at(code, message, start, end, suggestion)

    def add_at(
        self,
        code: str,
        message: str,
        start: int | None,
        end: int | None = None,
        suggestion: str | None = None,
    ) -> None:
        """Report a problem with characters of the text."""
        if start is None:
            self.diagnostics.append(Diagnostic(code, message, suggestion=suggestion))
            return
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", start)
        last = len(self.text) if last < 0 else last
        end = min(max(end or 0, start + 1), max(last, start + 1))
        self.diagnostics.append(
            Diagnostic(
                code,
                message,
                self.text.count("\n", 0, start) + 1,
                start - first + 1,
                end - first + 1,
                _underlined(self.text[first:last], start - first, end - first),
                suggestion,
            )
        )

    def refuse(self) -> None:
        """Raise SqlRefused if there are problems."""
        if self.diagnostics:
            self.diagnostics.sort(key=lambda each: (each.line or 0, each.column or 0))
            raise SqlRefused([to_builtins(each) for each in self.diagnostics])


def span(part: exp.Expr) -> tuple[int | None, int | None]:
    """Return the start and end of a part of a statement in its text, if they are known."""
    known = [node.meta for node in part.walk() if "start" in node.meta]
    if not known:
        return None, None
    return min(meta["start"] for meta in known), max(meta["end"] for meta in known) + 1


def closest(name: str, known: Iterable[str]) -> str | None:
    """Suggest the known name that is spelled most like this one.

    >>> closest("calllers", ["callers", "callees"])
    'did you mean callers?'
    """
    near = get_close_matches(name.lower(), sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def _underlined(line: str, start: int, end: int) -> str:
    """Return a line, or the part of a long line around the position, with the position underlined."""
    first = max(0, start - SHOWN // 2)
    part = line[first : first + SHOWN]
    shown = "".join(character if character.isprintable() else " " for character in part)
    width = max(1, min(end - first, SHOWN) - (start - first))
    return f"{shown}\n{' ' * (start - first)}{'^' * width}"
