r"""Render lines of Python source as HTML: colours, links of identifiers, and marks.

>>> (line,) = render_lines("def f(x): return x  # twice\n", 1, 1, marks=[(6, 7, "step")])
>>> print(line.html)  # doctest: +NORMALIZE_WHITESPACE
<span class="k">def</span> <span class="f">f</span>(<span class="step">x</span>):
 <span class="k">return</span> x  <span class="c"># twice</span>

A text is the canonical text of `repo_file_blobs_v1`, lines are counted as CPython does (`\n`, `\r\n`, `\r`),
and positions are offsets of bytes in UTF-8. Marks may overlap names, tokens and each other: elements are cut
at their ends, marks outside, then links, then colours.

The lexer is a regular expression and a stack for f-strings. It takes linear time for any text, while parsers
need quadratic time for some; Pygments takes twenty times as long. It does not report errors: an unclosed
string ends at the end of its line or file.

What would mislead or hang a reader is shown as what it is: control characters and those that change the
direction of text by their code, long lines up to `LINE_CHARS`, files in parts of up to `PART_LINES` lines and
`PART_BYTES` bytes (`LexedText.parts`). Texts of more than `COLOURED_BYTES` have no colours.

Tests: `tests/unit/serve/test_source_text.py`.
"""

from __future__ import annotations

import keyword
import re
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import TypeAlias

from markupsafe import Markup, escape
from msgspec import Struct

from codeanatomy.query.engines.statements import Query, Reader, Slice
from codeanatomy.serve.explorer.links import PART_LINES

LINE_CHARS = 2_000
PART_BYTES = 200_000
COLOURED_BYTES = 1_000_000
# Bytes of memory, about, for texts that were lexed.
CACHE_BYTES = 64_000_000

NEWLINE = re.compile(rb"\r\n|\r|\n")
# Control characters except tab; characters that change the direction of text; those that cannot be seen.
HIDDEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)

# Start, end, CSS class.
Mark: TypeAlias = tuple[int, int, str]
Token: TypeAlias = tuple[int, int, str]

# CSS classes of tokens; other text has none.
KEYWORD, STRING, NUMBER, COMMENT, DEFINED, DECORATOR = "k", "s", "n", "c", "f", "d"
# Those that are groups of the patterns below.
TOKENS = (STRING, NUMBER, COMMENT, DECORATOR)
KEYWORDS = frozenset(name.encode() for name in keyword.kwlist)
_NAME = rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*+"
_TRIPLE = rb"%(quote)s{3}(?:[^\\%(quote)s]++|\\[\s\S]|%(quote)s(?!%(quote)s%(quote)s))*+(?:%(quote)s{3})?"
_SINGLE = rb"%(quote)s(?:[^\\%(quote)s\r\n]++|\\(?:\r\n|[\s\S]))*+%(quote)s?"
_STRINGS = b"|".join(body % {b"quote": quote} for body in (_TRIPLE, _SINGLE) for quote in (b"'", b'"'))
_CODE = (
    rb"(?P<open>(?:[fFtT][rR]?|[rR][fFtT])(?:'''|\"\"\"|'|\"))"
    rb"|(?P<s>(?:[rR][bB]?|[bB][rR]?|[uU])?(?:" + _STRINGS + rb"))"
    rb"|(?P<c>#[^\r\n]*+)"
    rb"|(?P<name>" + _NAME + rb")"
    rb"|(?P<n>(?:0[xXoObB][\da-fA-F_]++|\.?\d[\d_]*+\.?[\d_]*+(?:[eE][+-]?\d[\d_]*+)?)[jJ]?)"
    rb"|(?P<d>@[ \t]*+" + _NAME + rb"(?:\." + _NAME + rb")*+)"
)
CODE = re.compile(_CODE)
# Inside of a replacement field of an f-string.
FIELD = re.compile(_CODE + rb"|(?P<bracket>[\[\](){}:])")
# `match`, `case` and `type` are keywords at the beginning of a statement of their form.
SOFT_KEYWORD = re.compile(
    rb"(?:match|case)(?=[ \t]+[^\s=.,:)\]][^\r\n]*+(?<=:)[ \t]*+(?:[\r\n]|\Z))"
    rb"|type(?=[ \t]+" + _NAME + rb"[ \t]*[=\[])"
)
SOFT_KEYWORDS = frozenset((b"match", b"case", b"type"))


class SourceFile(Struct, frozen=True):
    """A file of a snapshot; `text` is None if it could not be decoded."""

    repo_id: str
    path: str
    text: str | None
    size_bytes: int
    encoding: str | None


class Identifier(Struct, frozen=True):
    """An identifier in the source: its span in bytes, where it leads, and what is known about it."""

    bstart: int
    bend: int
    # None: it leads nowhere.
    link: str | None
    title: str = ""
    css: str = ""
    # Further attributes, such as ("data-kind", "function").
    attributes: tuple[tuple[str, str], ...] = ()


class SourceLine(Struct, frozen=True):
    """A line of a file, counted from 1, without its line end."""

    number: int
    html: Markup


class LexedText:
    """A text as bytes, its lines and its tokens."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.line_starts = array("Q", (0, *(match.end() for match in NEWLINE.finditer(self.data))))
        if len(self.line_starts) > 1 and self.line_starts[-1] == len(self.data):
            self.line_starts.pop()
        self.starts, self.ends, kinds = array("Q"), array("Q"), []
        for start, end, kind in tokens(self.data) if len(self.data) <= COLOURED_BYTES else ():
            self.starts.append(start)
            self.ends.append(end)
            kinds.append(kind)
        self.kinds = "".join(kinds)

    @property
    def line_count(self) -> int:
        """Number of lines; an empty text has one."""
        return len(self.line_starts)

    @property
    def memory(self) -> int:
        """Size in memory, about."""
        return 2 * len(self.data) + 8 * len(self.line_starts) + 17 * len(self.starts)

    def line_of(self, offset: int) -> int:
        """Return the line of a byte, counted from 1."""
        return bisect_right(self.line_starts, offset)

    def span(self, line: int) -> tuple[int, int]:
        """Return where a line begins and ends, without its line end."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < self.line_count else len(self.data)
        while end > start and self.data[end - 1] in b"\r\n":
            end -= 1
        return start, end

    def tokens_within(self, start: int, end: int) -> list[Token]:
        """Return the tokens between two bytes, cut at both."""
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        return [
            (max(self.starts[at], start), min(self.ends[at], end), self.kinds[at])
            for at in range(first, last)
        ]

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """The first and last line of each part of the text that one page shows."""
        parts: list[tuple[int, int]] = []
        first = 1
        while first <= self.line_count:
            last = min(first + PART_LINES - 1, self.line_count)
            if self.span(last)[1] - self.line_starts[first - 1] > PART_BYTES:
                last = self._last_of_part(first, last)
            parts.append((first, last))
            first = last + 1
        return parts

    def _last_of_part(self, first: int, last: int) -> int:
        """Return the last line up to which the shown bytes are few enough, at least the first."""
        size = 0
        for line in range(first, last + 1):
            start, end = self.span(line)
            size += min(end - start, LINE_CHARS)
            if size > PART_BYTES and line > first:
                return line - 1
        return last


_CACHE: OrderedDict[str, LexedText] = OrderedDict()
_CACHE_LOCK = threading.Lock()


def lexed(text: str) -> LexedText:
    """Return the lines and tokens of a text; the last ones stay in memory."""
    with _CACHE_LOCK:
        if text in _CACHE:
            _CACHE.move_to_end(text)
            return _CACHE[text]
    made = LexedText(text)
    with _CACHE_LOCK:
        _CACHE[text] = made
        size = sum(each.memory for each in _CACHE.values())
        while size > CACHE_BYTES and len(_CACHE) > 1:
            size -= _CACHE.popitem(last=False)[1].memory
    return made


def source_file(reader: Reader, repo_id: str, path: str) -> SourceFile | None:
    """Return a file of a snapshot; None if there is no such file, or it could not be read."""
    query = Query(
        "SELECT b.repo_id, b.path, b.text, b.size_bytes, b.encoding FROM b",
        {"b": Slice("repo_file_blobs_v1", repo_id=(repo_id,), path=(path,))},
    )
    for row in reader.rows(query):
        return SourceFile(*row)
    return None


def render_lines(
    text: str,
    first: int,
    last: int,
    *,
    names: Iterable[Identifier] = (),
    marks: Iterable[Mark] = (),
) -> list[SourceLine]:
    """Render lines of a text, from `first` to `last`, as far as they exist."""
    source = lexed(text)
    first, last = max(first, 1), min(last, source.line_count)
    if first > last:
        return []
    start, end = source.line_starts[first - 1], source.span(last)[1]
    linked = _without_overlaps(each for each in names if each.bend > start and each.bstart < end)
    marked = sorted(each for each in marks if start < each[1] and each[0] < end and each[0] < each[1])
    lines: list[SourceLine] = []
    next_name = 0
    for line in range(first, last + 1):
        start, end = source.span(line)
        shown, more = _cut(source.data, start, end)
        while next_name < len(linked) and linked[next_name].bend <= start:
            next_name += 1
        of_line: list[Identifier] = []
        for at in range(next_name, len(linked)):
            if linked[at].bstart >= shown:
                break
            of_line.append(linked[at])
        over = [each for each in marked if each[0] < shown and each[1] > start] if marked else []
        html = _render_line(source, start, shown, of_line, over)
        if more:
            html += Markup('<span class="cut">… {:,} more characters</span>').format(more)
        lines.append(SourceLine(line, html))
    return lines


def _cut(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return where the shown part of a line ends, and the number of characters after it."""
    if end - start <= LINE_CHARS:
        return end, 0
    beginning = data[start : min(end, start + 4 * LINE_CHARS)].decode(errors="ignore")[:LINE_CHARS]
    shown = start + len(beginning.encode())
    return shown, len(data[shown:end].decode())


def _without_overlaps(names: Iterable[Identifier]) -> list[Identifier]:
    """Sort names; of two that overlap, keep the first."""
    kept: list[Identifier] = []
    for each in sorted(names, key=lambda name: (name.bstart, name.bend)):
        if each.bstart < each.bend and (not kept or each.bstart >= kept[-1].bend):
            kept.append(each)
    return kept


def _render_line(
    source: LexedText, start: int, end: int, names: Sequence[Identifier], marks: Sequence[Mark]
) -> Markup:
    """Render the bytes of one line."""
    data = source.data
    coloured = source.tokens_within(start, end)
    cuts = {start, end}
    for bstart, bend, _ in (*coloured, *marks):
        cuts.add(max(bstart, start))
        cuts.add(min(bend, end))
    for each in names:
        cuts.add(max(each.bstart, start))
        cuts.add(min(each.bend, end))
    ordered = sorted(cuts)
    text = data[start:end].decode()
    # Positions in the text are those in the bytes, unless characters have several.
    is_ascii = len(text) == end - start
    html: list[str] = []
    at_token = at_name = 0
    mark = ""
    inside: Identifier | None = None
    for left, right in pairwise(ordered):
        while at_token < len(coloured) and coloured[at_token][1] <= left:
            at_token += 1
        while at_name < len(names) and names[at_name].bend <= left:
            at_name += 1
        kind = coloured[at_token][2] if at_token < len(coloured) and coloured[at_token][0] <= left else ""
        name = names[at_name] if at_name < len(names) and names[at_name].bstart <= left else None
        classes = _classes(marks, left) if marks else ""
        if inside is not None and (inside is not name or classes != mark):
            html.append("</a>" if inside.link is not None else "</span>")
            inside = None
        if classes != mark:
            html += ["</span>"] * bool(mark)
            html += [f'<span class="{escape(classes)}">'] * bool(classes)
            mark = classes
        if name is not None and inside is None:
            html.append(_open_tag(name))
            inside = name
        piece = text[left - start : right - start] if is_ascii else data[left:right].decode(errors="replace")
        shown = _visible(piece)
        html.append(f'<span class="{kind}">{shown}</span>' if kind else shown)
    if inside is not None:
        html.append("</a>" if inside.link is not None else "</span>")
    html += ["</span>"] * bool(mark)
    # Every part is escaped or a constant; to join them as Markup takes twice as long.
    return Markup("".join(html))  # noqa: S704


def _classes(marks: Sequence[Mark], offset: int) -> str:
    """Return the classes of the marks over a byte."""
    return " ".join(dict.fromkeys(css for bstart, bend, css in marks if bstart <= offset < bend))


def _open_tag(name: Identifier) -> str:
    """Return the start of the element of an identifier."""
    values = [("href", name.link), ("class", name.css), ("title", name.title), *name.attributes]
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in values if value)
    return f"<a{attributes}>" if name.link is not None else f"<span{attributes}>"


def visible(text: str) -> Markup:
    """Render a text of several lines, such as a docstring, with hidden characters shown by their code."""
    # Escaped line by line.
    return Markup("\n".join(map(_visible, text.splitlines())))  # noqa: S704


def _visible(text: str) -> str:
    """Escape a text; characters that cannot be seen, or move others, are replaced by their code."""
    if HIDDEN.search(text) is None:
        return str(escape(text))
    parts: list[str] = []
    position = 0
    for match in HIDDEN.finditer(text):
        parts.append(str(escape(text[position : match.start()])))
        parts.append(f'<span class="char">U+{ord(match.group()):04X}</span>')
        position = match.end()
    return "".join([*parts, str(escape(text[position:]))])


class _Formatted:
    """An f-string that is open."""

    def __init__(self, prefix: bytes) -> None:
        self.quote = prefix.lstrip(b"fFtTrR")
        self.is_raw = b"r" in prefix.lower()
        # Whether the text after a replacement field is its format specifier.
        self.in_specifier = False
        # Brackets that are open in the replacement field.
        self.depth = 0

    def ends_field(self, bracket: bytes) -> bool:
        """Count a bracket or colon in a replacement field; return whether text follows it."""
        if self.depth == 0 and bracket in (b"}", b":"):
            self.in_specifier = self.in_specifier or bracket == b":"
            return True
        self.depth += (bracket in b"([{") - (bracket in b")]}" and self.depth > 0)
        return False


def tokens(data: bytes) -> Iterator[Token]:
    """Yield the tokens that have a colour, in their order; f-strings in parts.

    >>> list(tokens(b'f"a{x:>{w}}b" + 1'))
    [(0, 3, 's'), (6, 7, 's'), (11, 13, 's'), (16, 17, 'n')]
    """
    strings: list[_Formatted] = []
    position = 0
    while position < len(data):
        defines = False
        for match in (FIELD if strings else CODE).finditer(data, position):
            group, start, end = match.lastgroup, match.start(), match.end()
            if group == "name":
                name = match.group()
                if name in KEYWORDS or (name in SOFT_KEYWORDS and _is_soft_keyword(data, start)):
                    yield start, end, KEYWORD
                elif defines:
                    yield start, end, DEFINED
                defines = name in (b"def", b"class")
            elif group == "open":
                strings.append(_Formatted(match.group()))
                break
            elif group == "bracket" and strings[-1].ends_field(match.group()):
                start = end
                break
            elif group in TOKENS and (group != DECORATOR or _begins_statement(data, start)):
                yield start, end, group
        else:
            return
        position = yield from _formatted_text(data, start, end, strings)


def _formatted_text(
    data: bytes, start: int, position: int, strings: list[_Formatted]
) -> Generator[Token, None, int]:
    """Yield the text of an f-string up to a replacement field or its end; return where code follows."""
    string = strings[-1]
    while True:
        position = _skip_text(data, position, string)
        following = data[position : position + 1]
        if data.startswith(string.quote, position):
            position += len(string.quote)
            strings.pop()
            yield start, position, STRING
            return position
        if following == b"}":
            if string.in_specifier and position > start:
                yield start, position, STRING
            position += 1
            start = position if string.in_specifier else start
            string.in_specifier = False
            continue
        if position > start:
            yield start, position, STRING
        if following == b"{":
            string.depth = 0
            return position + 1
        # It is not closed.
        strings.clear()
        return position


def _skip_text(data: bytes, position: int, string: _Formatted) -> int:
    match = _text_pattern(string.quote, string.is_raw, string.in_specifier).match(data, position)
    return position if match is None else match.end()


@cache
def _text_pattern(quote: bytes, is_raw: bool, in_specifier: bool) -> re.Pattern[bytes]:
    """Return the pattern of the text of an f-string; a bracket that is doubled is text."""
    mark = quote[:1]
    ends = rb"\r\n" if len(quote) == 1 else b""
    choices = [b"[^\\\\{}" + mark + ends + b"]++", rb"\\(?:\r\n|[^{}])", rb"\\(?=[{}])"]
    if not is_raw:
        choices.insert(0, rb"\\N\{[\w\- ]*+\}")
    if not in_specifier:
        choices += [rb"\{\{", rb"\}\}"]
    if len(quote) == 3:
        choices.append(mark + b"(?!" + mark * 2 + b")")
    return re.compile(b"(?:" + b"|".join(choices) + b")*+")


def _is_soft_keyword(data: bytes, start: int) -> bool:
    # Once per line: the pattern reads all of it.
    return _begins_statement(data, start) and SOFT_KEYWORD.match(data, start) is not None


def _begins_statement(data: bytes, start: int) -> bool:
    """Whether only white space is before a byte on its line."""
    while start and data[start - 1] in b" \t\f":
        start -= 1
    return not start or data[start - 1] in b"\r\n"
