"""Name the Python version that a file needs, if CPython rejects it for syntax that is newer than itself.

>>> explain_newer_syntax("class Box[T]: pass", 7, "invalid syntax", (3, 11))
'type parameters need Python 3.12, and Python 3.11 parses here'
>>> explain_newer_syntax("class Box[T]: pass", 7, "invalid syntax", (3, 12))
''

Sources are parsed by the interpreter that runs the build. Syntax is recognised by the line of the error.
Tests: `tests/unit/extract/test_newer_syntax.py`.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

Version = tuple[int, int]


class NewerSyntax(NamedTuple):
    """A kind of syntax, the version that introduced it, and what line and message its error has."""

    version: Version
    what: str
    line: re.Pattern[str]
    message: re.Pattern[str]


ANY = re.compile("")
PARAMETERS = r"\s*(?:(?:async\s+)?def|class|type)\s+\w+\s*\["
# The first that matches is reported, so defaults come before the parameters that have them.
NEWER_SYNTAX = (
    NewerSyntax((3, 13), "defaults of type parameters", re.compile(PARAMETERS + r"[^\]()]*=[^\]]*\]"), ANY),
    NewerSyntax((3, 12), "type statements", re.compile(r"\s*type\s+\w+\s*(?:\[.*\]\s*)?=(?!=)"), ANY),
    NewerSyntax((3, 12), "type parameters", re.compile(PARAMETERS), ANY),
    NewerSyntax(
        (3, 12),
        "quotes, backslashes and comments inside of formatted strings",
        re.compile(r""".*\b[rR]?[fF][rR]?(["'])(?:(?!\1).)*\{[^{}]*(?:\1.*\}(?:(?!\1).)*\1|[\\#])"""),
        re.compile(r"f-string(: expecting '}'|: unmatched| expression part cannot include)"),
    ),
    NewerSyntax(
        (3, 14),
        "exception types without parentheses (they may be Python 2)",
        ANY,
        re.compile("multiple exception types must be parenthesized"),
    ),
)
TEMPLATE = NewerSyntax((3, 14), "template strings", re.compile(r".*\b[rR]?[tT][rR]?$"), ANY)


def explain_newer_syntax(
    line: str, col: int | None, message: str, running: Version = sys.version_info[:2]
) -> str:
    """Return which version the line of a syntax error needs; empty if it has no newer syntax."""
    col = len(line) if col is None else col
    is_template = line[col : col + 1] in ("'", '"') and TEMPLATE.line.match(line[:col])
    for each in NEWER_SYNTAX if not is_template else (TEMPLATE,):
        is_like = is_template or (each.line.match(line) and each.message.match(message))
        if each.version > running and is_like:
            return f"{each.what} need Python {_text(each.version)}, and Python {_text(running)} parses here"
    return ""


def _text(version: Version) -> str:
    return ".".join(map(str, version))
