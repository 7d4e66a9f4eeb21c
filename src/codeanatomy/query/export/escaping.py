r"""Escape and shorten text from sources, so that every format can hold it.

>>> visible("a\x00b"), shortened("x" * 300, 8)
('a␀b', 'xxxxxxx…')
>>> xml_text('<a href="x">]]>')
'&lt;a href=&quot;x&quot;&gt;]]&gt;'

XML 1.0 has no way to write most control characters, and C programs end a text at the first NUL: such a
character is shown by its picture. Tests: `tests/unit/query/test_export.py`,
`tests/unit/query/test_picture.py`.
"""

from __future__ import annotations

import re
from html import escape

# Characters that XML 1.0 does not allow; tab and line ends are allowed.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Characters that change the direction of text; a name must not change that of a picture.
TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]")
# Characters that may need escaping; most texts have none of them.
UNUSUAL = re.compile("[^ !#-%(-;=?-~]")
PICTURES = 0x2400
SPACE = 0x20
UNKNOWN = "\ufffd"


def visible(text: str) -> str:
    """Replace each control character, except tab and line ends, by its picture."""
    return CONTROLS.sub(_picture, text)


def xml_text(text: str) -> str:
    """Escape a text for an element or an attribute of XML or HTML; a parser returns the same text."""
    if not UNUSUAL.search(text):
        return text
    escaped = escape(visible(text), quote=True)
    # A parser would replace line ends and tabs of attributes by spaces, and each CR by a line end.
    return escaped.replace("\r", "&#13;").replace("\n", "&#10;").replace("\t", "&#9;")


def shortened(text: str, characters: int) -> str:
    """Truncate a text to this length."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def shortened_left(text: str, characters: int) -> str:
    """Truncate a text at its start: the end is the significant part of a name or path.

    >>> shortened_left("django/db/models/query.py:9", 12)
    '…/query.py:9'
    """
    return text if len(text) <= characters else f"…{text[len(text) - characters + 1 :]}"


def last_parts(name: str, characters: int) -> str:
    """Return the last parts of a dotted name that fit into this length.

    >>> last_parts("django.db.models.query.QuerySet.filter", 20)
    '…QuerySet.filter'
    """
    if len(name) <= characters:
        return name
    end = shortened_left(name, characters)
    parts = end.partition(".")[2]
    return f"…{parts}" if parts else end


def in_a_line(text: str) -> str:
    """Convert a text to one line that is read from left to right, for a picture."""
    if not UNUSUAL.search(text):
        return text
    return TURNING.sub(UNKNOWN, visible(text.replace("\r", "␍").replace("\n", "␊").replace("\t", "␉")))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(PICTURES + code) if code < SPACE else UNKNOWN
