r"""Patterns of ignore files, with the meaning git gives them.

The patterns mean what they mean to git, byte for byte, with the quirks of its matcher (`wildmatch.c`). A line
becomes a regular expression that cannot backtrack beyond one star, because analysed code is hostile input:

>>> rules = Rules(b"*.py\n!keep.py\n/build/\ndocs/**/old?\n")
>>> rules.decide(b"a/b.py", False), rules.decide(b"a/keep.py", False), rules.decide(b"a/b.txt", False)
(True, False, None)
>>> rules.decide(b"build", True), rules.decide(b"build", False), rules.decide(b"docs/old1", True)
(True, None, True)

pathspec is not used: asked folder by folder it differs from git (`*` with `!*/`, `foo/**`), and a hostile
pattern can hold it up for seconds. Tests: `tests/unit/sources/test_listing.py`, with git itself as the oracle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias


class Rules:
    """Patterns of ignore files, in the order in which they were written: the last one that matches counts."""

    def __init__(self, *texts: bytes) -> None:
        lines = [line for text in texts for line in _lines(text)]
        # The last one is asked first; neighbours of one sign are one question.
        patterns = map(_parsed, dict.fromkeys(reversed(lines)))
        self.runs: list[tuple[bool, re.Pattern[bytes] | None, re.Pattern[bytes] | None]] = []
        for sign, run in groupby(patterns, itemgetter(0)):
            same = list(run)
            self.runs.append((sign, _any_of(same, True), _any_of(same, False)))

    def decide(self, path: bytes, is_dir: bool) -> bool | None:
        """Whether a path, relative to the ignore file, is matched, or matched by a `!` pattern, or neither.

        Only the path itself is looked at. That what lies in a matched folder is matched too is for the walk.
        """
        # Nothing below a folder begins with "/", so it can say that this is one.
        mark = b"/" if is_dir else b""
        for sign, by_name, by_path in self.runs:
            if by_name and by_name.fullmatch(mark + path.rpartition(b"/")[2]):
                return sign
            if by_path and by_path.fullmatch(mark + path):
                return sign
        return None


# Whether the line has no `!`; whether it is matched with the last part of a path, else with all of it; how.
_Pattern: TypeAlias = tuple[bool, bool, bytes]


def _any_of(patterns: Iterable[_Pattern], wanted: bool) -> re.Pattern[bytes] | None:
    chosen = [regex for _, by_name, regex in patterns if by_name is wanted]
    return re.compile(b"|".join(chosen), re.DOTALL) if chosen else None


def _lines(text: bytes) -> Iterator[bytes]:
    """The lines that are patterns; a trailing space counts if it is escaped."""
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        # To git, a line is a C string.
        pattern = line.removesuffix(b"\r").partition(b"\0")[0]
        bare = pattern.rstrip(b" ")
        if len(bare) < len(pattern) and (len(bare) - len(bare.rstrip(b"\\"))) % 2:
            bare += b" "
        if bare and not line.startswith(b"#"):
            yield bare


def _parsed(line: bytes) -> _Pattern:
    negated = line.startswith(b"!")
    glob = line[negated:]
    # Possessive, so that no other slash is taken for it.
    mark = b"/" if glob.endswith(b"/") else b"/?+"
    glob = glob.removesuffix(b"/")
    by_name = b"/" not in glob
    # Git compares what comes before the first special character by itself and begins anew after it, so that
    # "a**/b" also matches "ab".
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
# As git's own tables have them, which know no vertical tab.
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
    """A glob as a regular expression, `*` kept within one part of a path.

    Between two stars, the first place where the text fits is as good as any later one, so each such piece is
    an atomic group; likewise the parts between two `**/`. Only what follows the last star may be tried again.
    """
    made, deep, parts = b"", b"", [[b""]]
    for kind, piece in _tokens(glob):
        if kind in {"deep", "all"}:
            made += _after_deep(deep, parts, False)
            deep, parts = piece, [[b""]]
        elif kind == "slash":
            parts.append([b""])
        elif kind == "star":
            parts[-1].append(b"")
        else:
            parts[-1][-1] += piece
    return made + _after_deep(deep, parts, True)


def _after_deep(deep: bytes, parts: Sequence[Sequence[bytes]], is_last: bool) -> bytes:
    """Parts of a path, each as the pieces between its stars, and the `**` before them."""
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
    """Pieces of a glob: kinds of stars, slashes, and expressions for one byte."""
    at = 0
    while at < len(glob):
        found = TOKEN.match(glob, at)
        # A backslash at the end matches nothing, as does a bracket that is not closed.
        kind = "never" if found is None or found.lastgroup is None else found.lastgroup
        at = len(glob) if found is None else found.end()
        if kind in {"escaped", "plain"} and found:
            yield kind, re.escape(found[kind])
        elif kind == "any":
            yield kind, b"[^/]"
        elif kind == "open":
            piece, at = _bracket(glob, at)
            yield kind, piece
        else:
            yield kind, {"never": NEVER, "deep": b"**/", "all": b"**"}.get(kind, b"")


def _bracket(glob: bytes, at: int) -> tuple[bytes, int]:
    """The expression for a set of bytes, and where it ends."""
    negated = glob[at : at + 1] in {b"!", b"^"}
    first = at = at + negated
    chosen = b""
    while at == first or glob[at : at + 1] != b"]":
        found = MEMBER.match(glob, at)
        if found is None or (found["named"] is not None and found["named"] not in NAMED):
            return NEVER, len(glob)
        if found["named"] is not None:
            chosen += NAMED[found["named"]]
        else:
            low, high = (found["low"] or found["one"])[-1], (found["high"] or found["one"])[-1]
            # Of a range that runs backwards, the first byte is left.
            chosen += b"\\x%02x-\\x%02x" % (low, max(low, high))
        at = found.end()
    return b"(?!/)[%b%b]" % (b"^" * negated, chosen), at + 1
