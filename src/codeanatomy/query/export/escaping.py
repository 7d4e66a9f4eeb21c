r"""Text from sources, as formats can hold it.

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

# What XML 1.0 does not allow; tab and line ends are allowed.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# They change the order in which a line is read; a picture must not be turned around by a name.
TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]")
# Texts without any of these are most of all, and are left as they are.
UNUSUAL = re.compile("[^ !#-%(-;=?-~]")
PICTURES = 0x2400
SPACE = 0x20
UNKNOWN = "\ufffd"


def visible(text: str) -> str:
    """The text, with a picture for each control character that is neither a tab nor a line end."""
    return CONTROLS.sub(_picture, text)


def xml_text(text: str) -> str:
    """Text for an element or an attribute of XML or HTML; read again, it is the same."""
    if not UNUSUAL.search(text):
        return text
    escaped = escape(visible(text), quote=True)
    # A parser makes line ends and tabs of attributes into spaces, and each CR into a line end.
    return escaped.replace("\r", "&#13;").replace("\n", "&#10;").replace("\t", "&#9;")


def shortened(text: str, characters: int) -> str:
    """The text, not longer than this."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def shortened_left(text: str, characters: int) -> str:
    """The text, not longer than this: its end, which is the significant part of a name or path.

    >>> shortened_left("django/db/models/query.py:9", 12)
    '…/query.py:9'
    """
    return text if len(text) <= characters else f"…{text[len(text) - characters + 1 :]}"


def last_parts(name: str, characters: int) -> str:
    """The end of a dotted name, not longer than this: whole parts of it, if one fits.

    >>> last_parts("django.db.models.query.QuerySet.filter", 20)
    '…QuerySet.filter'
    """
    if len(name) <= characters:
        return name
    end = shortened_left(name, characters)
    parts = end.partition(".")[2]
    return f"…{parts}" if parts else end


def in_a_line(text: str) -> str:
    """Text for a picture: one line that is read from left to right."""
    if not UNUSUAL.search(text):
        return text
    return TURNING.sub(UNKNOWN, visible(text.replace("\r", "␍").replace("\n", "␊").replace("\t", "␉")))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(PICTURES + code) if code < SPACE else UNKNOWN
