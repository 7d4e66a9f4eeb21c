r"""Match paths against patterns of ignore files as git does.

Patterns match the same paths as in git, byte for byte, with the quirks of its matcher (`wildmatch.c`). A line
is compiled to a regular expression that cannot backtrack beyond one star, because analysed code is hostile:

>>> rules = Rules(b"*.py\n!keep.py\n/build/\ndocs/**/old?\n")
>>> rules.decide(b"a/b.py", False), rules.decide(b"a/keep.py", False), rules.decide(b"a/b.txt", False)
(True, False, None)
>>> rules.decide(b"build", True), rules.decide(b"build", False), rules.decide(b"docs/old1", True)
(True, None, True)

The library pathspec is not used: matched folder by folder, it differs from git (`*` with `!*/`, `foo/**`),
and a hostile pattern can keep it busy for seconds. Tests: `tests/unit/sources/test_listing.py`, with git
itself as the oracle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias


class Rules:
    """Patterns of ignore files in their order: the last one that matches decides."""

    def __init__(self, *texts: bytes) -> None:
        lines = [line for text in texts for line in _lines(text)]
        # The last pattern is tried first; neighbours that are all negated, or all not, are one expression.
        patterns = map(_parse_line, dict.fromkeys(reversed(lines)))
        self.groups: list[tuple[bool, re.Pattern[bytes] | None, re.Pattern[bytes] | None]] = []
        for ignores, group in groupby(patterns, itemgetter(0)):
            members = list(group)
            self.groups.append((ignores, _compile(members, True), _compile(members, False)))

    def decide(self, path: bytes, is_dir: bool) -> bool | None:
        """Return True if a path matches, False if it matches a `!` pattern, None if there is no match.

        The path is relative to the folder of the ignore file. Only the path itself is matched: that
        everything in a matched folder is ignored is up to the caller.
        """
        # No path begins with "/", so a leading one can mark folders.
        mark = b"/" if is_dir else b""
        for ignores, by_name, by_path in self.groups:
            if by_name and by_name.fullmatch(mark + path.rpartition(b"/")[2]):
                return ignores
            if by_path and by_path.fullmatch(mark + path):
                return ignores
        return None


# Whether the line has no `!`; whether it is matched against the last part of a path only; its expression.
_Pattern: TypeAlias = tuple[bool, bool, bytes]


def _compile(patterns: Iterable[_Pattern], name_only: bool) -> re.Pattern[bytes] | None:
    regexes = [regex for _, by_name, regex in patterns if by_name is name_only]
    return re.compile(b"|".join(regexes), re.DOTALL) if regexes else None


def _lines(text: bytes) -> Iterator[bytes]:
    """Yield the lines that are patterns; a trailing space is kept if it is escaped."""
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        # To git, a line is a C string.
        pattern = line.removesuffix(b"\r").partition(b"\0")[0]
        bare = pattern.rstrip(b" ")
        if len(bare) < len(pattern) and (len(bare) - len(bare.rstrip(b"\\"))) % 2:
            bare += b" "
        if bare and not line.startswith(b"#"):
            yield bare


def _parse_line(line: bytes) -> _Pattern:
    negated = line.startswith(b"!")
    glob = line[negated:]
    # Possessive, so that the mark of a folder matches nothing else.
    mark = b"/" if glob.endswith(b"/") else b"/?+"
    glob = glob.removesuffix(b"/")
    by_name = b"/" not in glob
    # Git compares the text before the first special character separately and starts a new match after it, so
    # that "a**/b" also matches "ab".
    glob = glob.removeprefix(b"/")
    literal = b"" if by_name else re.match(rb"[^*?\[\\]*", glob)[0]  # type: ignore[index]
    return not negated, by_name, mark + re.escape(literal) + _regex(glob[len(literal) :])


NEVER = b"(?!)"
TOKEN = re.compile(
    rb"(?P<deep>(?<![^/])\*\*+/)|(?P<all>(?<![^/])\*\*+(?=\\/|\Z))|(?P<star>\*+)|(?P<any>\?)|(?P<open>\[)"
    rb"|(?P<slash>\\?/)|\\(?P<escaped>.)|(?P<plain>[^\\])",
    re.DOTALL,
)
MEMBER = re.compile(
    rb"\[:(?P<named>[^\]]*):\]|(?P<low>\\.|[^\\])-(?P<high>\\.|[^\\\]])|(?P<one>\\.|[^\\])", re.DOTALL
)
# As in git's own tables, which leave out the vertical tab.
NAMED = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"!-~",
    b"lower": rb"a-z",
    b"print": rb" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb" \t\n\r",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}


def _regex(glob: bytes) -> bytes:
    """Translate a glob to a regular expression in which `*` stays within one part of a path.

    Between two stars, the first match of the text is as good as any later one, so each such piece is an
    atomic group; likewise the parts between two `**/`. Only what follows the last star may be tried again.
    """
    regex, deep, parts = b"", b"", [[b""]]
    for kind, piece in _tokens(glob):
        if kind in {"deep", "all"}:
            regex += _after_deep(deep, parts, False)
            deep, parts = piece, [[b""]]
        elif kind == "slash":
            parts.append([b""])
        elif kind == "star":
            parts[-1].append(b"")
        else:
            parts[-1][-1] += piece
    return regex + _after_deep(deep, parts, True)


def _after_deep(deep: bytes, parts: Sequence[Sequence[bytes]], is_last: bool) -> bytes:
    """Build the expression of a `**` and the parts after it, each given as the pieces between its stars."""
    text = b"/".join(_part(*pieces) for pieces in parts)
    if not deep:
        return text
    if is_last:
        return (b"(?:.*/)?" if deep == b"**/" else b".*") + text
    return b"(?>%b%b)" % (b"(?:.*?/)??" if deep == b"**/" else b".*?", text)


def _part(first: bytes, *rest: bytes) -> bytes:
    if not rest:
        return first
    return first + b"".join(b"(?>[^/]*?%b)" % piece for piece in rest[:-1]) + b"[^/]*" + rest[-1]


def _tokens(glob: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the pieces of a glob: kinds of stars, slashes, and expressions for one byte."""
    position = 0
    while position < len(glob):
        token = TOKEN.match(glob, position)
        # A backslash at the end matches nothing, as does a bracket that is not closed.
        kind = "never" if token is None or token.lastgroup is None else token.lastgroup
        position = len(glob) if token is None else token.end()
        if kind in {"escaped", "plain"} and token:
            yield kind, re.escape(token[kind])
        elif kind == "any":
            yield kind, b"[^/]"
        elif kind == "open":
            piece, position = _bracket(glob, position)
            yield kind, piece
        else:
            yield kind, {"never": NEVER, "deep": b"**/", "all": b"**"}.get(kind, b"")


def _bracket(glob: bytes, position: int) -> tuple[bytes, int]:
    """Return the expression for a set of bytes, and the position after it."""
    negated = glob[position : position + 1] in {b"!", b"^"}
    first = position = position + negated
    members = b""
    while position == first or glob[position : position + 1] != b"]":
        member = MEMBER.match(glob, position)
        if member is None or (member["named"] is not None and member["named"] not in NAMED):
            return NEVER, len(glob)
        if member["named"] is not None:
            members += NAMED[member["named"]]
        else:
            low, high = (member["low"] or member["one"])[-1], (member["high"] or member["one"])[-1]
            # A range that runs backwards matches its first byte only.
            members += b"\\x%02x-\\x%02x" % (low, max(low, high))
        position = member.end()
    return b"(?!/)[%b%b]" % (b"^" * negated, members), position + 1
