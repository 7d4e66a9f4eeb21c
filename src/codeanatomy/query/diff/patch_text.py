r"""Parse a unified diff, as `git diff` and `diff -u` print it, and find the definitions it changes.

>>> (file,) = parse_patch("--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -3,2 +3,2 @@\n def f():\n-  x\n+  y\n")
>>> file.paths, file.old.changed, file.new.changed
(('shop/cart.py', 'shop/cart.py'), (3,), (3,))

    changes = patched_symbols(reader, "shop", text)
    changes.symbols      # (Symbol("shop.cart.sell", ...),)

The text may be hostile: it is only compared with files of the lake, and no path in it is opened. A hunk must
have the number of lines that its header states. Lines of the lake's file are those of the side that the diff
agrees with, of the text before or after the change; if it agrees with neither, there is a note.

Tests: `tests/unit/query/test_patch_text.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from codeanatomy.errors import MAX_NAME_CHARS, UsageError
from codeanatomy.query.diff.changed_definitions import (
    SUFFIXES,
    ChangedSymbols,
    DifferingFile,
    list_paths,
    touched_symbols,
)
from codeanatomy.query.engines.statements import Query, Reader, Slice

MAX_PATCH_CHARS = 1_000_000
MAX_FILES = 1_000
# A file with more changed lines is changed as a whole.
MAX_CHANGED_LINES = 2_000
# Line numbers and counts have at most this many digits.
HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
BINARY = re.compile(r"Binary files (.+) and (.+) differ")
QUOTED = re.compile(r'\\([0-7]{3}|["\\abfnrtv])')
ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", '"': '"', "\\": "\\"}
NO_FILE = "/dev/null"
# Sides that a line of a hunk is on, by its first character; editors may remove the space of an empty line.
SIDES = {" ": (0, 1), "": (0, 1), "-": (0,), "+": (1,), "\\": ()}
HINT = "paste what `git diff` or `diff -u` prints"


class PatchSide(Struct):
    """The lines of a file before or after a change, as far as the diff shows them; counted from 0."""

    lines: dict[int, str]
    # Lines that only this side has; where only the other side has lines, the line before them.
    changed: tuple[int, ...]


class PatchFile(Struct):
    """A file of a diff; a path is None on the side where the file does not exist."""

    paths: tuple[str | None, str | None]
    old: PatchSide
    new: PatchSide
    binary: bool = False


def parse_patch(text: str) -> list[PatchFile]:
    """Parse a unified diff. Raise UsageError if it is none."""
    if len(text) > MAX_PATCH_CHARS:
        raise UsageError(
            f"the diff has {len(text):,} characters, the maximum is {MAX_PATCH_CHARS:,}",
            "use a git range instead",
        )
    # Browsers send texts with the line ends of Windows.
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    files: list[PatchFile] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if line.startswith(("@@@", "diff --cc ", "diff --combined ")):
            raise UsageError(f"line {at + 1} of the diff is a combined diff of a merge", HINT)
        if line.startswith("--- ") and following.startswith("+++ "):
            paths = (_path(line[4:], "a/"), _path(following[4:], "b/"))
            file, at = _file(paths, lines, at + 2)
            files.append(file)
        elif binary := BINARY.fullmatch(line):
            sides = (_path(binary[1], "a/"), _path(binary[2], "b/"))
            files.append(PatchFile(sides, PatchSide({}, ()), PatchSide({}, ()), binary=True))
            at += 1
        elif line.startswith("@@ "):
            raise UsageError(f"line {at + 1} of the diff has a change without the file it is in", HINT)
        else:
            at += 1
        if len(files) > MAX_FILES:
            raise UsageError(f"the diff has more than {MAX_FILES:,} files", "use a git range instead")
    if not files:
        raise UsageError("the text is not a unified diff: it names no file that changes", HINT)
    return files


def patched_symbols(reader: Reader, repo_id: str, text: str) -> ChangedSymbols:
    """Return the definitions of a repository that a diff changes."""
    files = [file for file in parse_patch(text) if any(_is_python(path) for path in file.paths)]
    query = Query("SELECT f.path FROM f", {"f": Slice("repo_files_v1", repo_id=(repo_id,))})
    known = {path for (path,) in reader.rows(query)}
    places = {at: _known_path(file, known) for at, file in enumerate(files)}
    paths = sorted({path for path in places.values() if path is not None})
    blobs = Query(
        "SELECT b.path, b.text FROM b WHERE b.text IS NOT NULL",
        {"b": Slice("repo_file_blobs_v1", repo_id=(repo_id,), path=paths)},
    )
    texts: dict[str, str] = dict(reader.rows(blobs)) if paths else {}
    changed: dict[str, DifferingFile] = {}
    notes = [f"the diff changes {len(files):,} Python files"]
    absent, outdated, before = [], [], []
    for at, file in enumerate(files):
        path = places[at]
        if path is None or path not in texts:
            absent.append(file.paths[1] or file.paths[0] or "?")
            continue
        data = texts[path].encode()
        side = _matching_side(file, data)
        if side is None:
            outdated.append(path)
        elif side is file.old:
            before.append(path)
        lines = (side or file.new).changed
        is_whole = None in file.paths or file.binary or len(lines) > MAX_CHANGED_LINES
        changed[path] = DifferingFile(path, None if is_whole else lines, data)
    if before:
        notes.append(f"the lake has {list_paths(before)} as before the change")
    if outdated:
        notes.append(f"the lake has another version of {list_paths(outdated)}: lines may be wrong")
    if absent:
        notes.append(f"not in the lake: {list_paths(absent)}"[:1000])
    symbols = touched_symbols(reader, repo_id, list(changed.values()))
    if not symbols:
        notes.append("no definition in the lake differs")
    return ChangedSymbols(tuple(symbols), tuple(notes))


def _file(paths: tuple[str | None, str | None], lines: Sequence[str], at: int) -> tuple[PatchFile, int]:
    """Parse the hunks of a file; return it with the number of the line after them."""
    shown: tuple[dict[int, str], dict[int, str]] = ({}, {})
    changed: tuple[set[int], set[int]] = (set(), set())
    while at < len(lines) and (header := HUNK.match(lines[at])):
        first = at
        at += 1
        left = [int(header[2] or 1), int(header[4] or 1)]
        # Without lines of a side, the header has the number of the line before.
        numbers = [int(header[1]) - (left[0] > 0), int(header[3]) - (left[1] > 0)]
        # Lines since the last one that both sides have.
        block: tuple[list[int], list[int]] = ([], [])
        while left != [0, 0]:
            line = lines[at] if at < len(lines) else None
            sides = None if line is None else SIDES.get(line[:1])
            if line is None or sides is None or any(left[side] == 0 for side in sides):
                raise UsageError(
                    f"line {at + 1} of the diff does not fit the header of its hunk"
                    f" in line {first + 1}: {lines[first][:MAX_NAME_CHARS]!r}",
                    HINT,
                )
            if len(sides) == 2:
                _close(block, numbers, changed)
                block = ([], [])
            for side in sides:
                shown[side][numbers[side]] = line[1:]
                if len(sides) == 1:
                    block[side].append(numbers[side])
                numbers[side] += 1
                left[side] -= 1
            at += 1
        _close(block, numbers, changed)
        while at < len(lines) and lines[at].startswith("\\"):
            at += 1
    old, new = (PatchSide(shown[side], tuple(sorted(changed[side]))) for side in (0, 1))
    return PatchFile(paths, old, new), at


def _close(
    block: tuple[list[int], list[int]], numbers: Sequence[int], changed: tuple[set[int], set[int]]
) -> None:
    """Add the lines of a block; a side without lines is represented by the line before the block."""
    for side in (0, 1):
        changed[side].update(block[side])
        if block[1 - side] and not block[side]:
            changed[side].add(max(numbers[side] - 1, 0))


def _path(text: str, prefix: str) -> str | None:
    """Return the path of a header line, without quotes, prefix and time."""
    name = text.split("\t", maxsplit=1)[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = _unquoted(name[1:-1])
    return None if name == NO_FILE else name.removeprefix(prefix)


def _unquoted(name: str) -> str:
    r"""Undo the quoting of git: octal numbers are bytes of UTF-8.

    >>> _unquoted(r"\303\274.py")
    'ü.py'
    """
    raw = QUOTED.sub(lambda match: ESCAPES.get(match[1]) or chr(int(match[1], 8) & 255), name)
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def _is_python(path: str | None) -> bool:
    return path is not None and path.endswith(SUFFIXES)


def _known_path(file: PatchFile, known: set[str]) -> str | None:
    """Return the lake's path of a file: the source may be a folder of the repository that the diff is of."""
    for path in (file.paths[1], file.paths[0]):
        parts = (path or "").split("/")
        for first in range(len(parts)):
            if (rest := "/".join(parts[first:])) in known:
                return rest
    return None


def _matching_side(file: PatchFile, data: bytes) -> PatchSide | None:
    """Return the side whose lines are those of the lake's file."""
    lines = data.splitlines()
    for side in (file.new, file.old):
        if side.lines and all(
            number < len(lines) and lines[number] == line.encode(errors="replace")
            for number, line in side.lines.items()
        ):
            return side
    return None
