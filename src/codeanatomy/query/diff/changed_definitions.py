"""The definitions that differ from a commit, for `impact --diff`.

    changes = changed_symbols(reader, Path("shop"), "main", repo_id="shop")
    changes.symbols      # (Symbol("shop.money.Price.with_tax", ...), Symbol("shop.money.TAX", ...))
    changes.notes        # ("main and the files as they are: 2 differ",)

`main` is compared with the files as they are, `main..topic` with another commit. The lake knows one of the
two sides, or neither: of each file it has the digest that was read, and the lines of the side with that
digest are those of its nodes. What differs in a function is the innermost one; in the body of a class or
module the variable that is assigned there, else the class or module itself. A decorator is part of what it
decorates. Comments, docstrings and blank lines outside of functions do not count. A file that is new, or
gone, is changed as a whole; a new one that neither git nor the lake knows is not seen.

Tests: `tests/unit/plan/test_changes.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.diff.touched import DefinitionSpan, touched
from codeanatomy.query.engines.statements import Query, Reader, Slice, edges, nodes
from codeanatomy.query.walks.enclosing import ENCLOSING_KINDS, spans_sql
from codeanatomy.sources.git import MAX_COMPARED_BYTES, Blob, resolve_commit, commit_files, read_blobs, tracked_files

SUFFIXES = (".py", ".pyi")
# What differs between two texts is found line by line up to so many lines; of more, all of them differ.
COMPARED = 4000
NAMED = 5


class ChangedSymbols(Struct, frozen=True):
    """What differs, and what to know about that."""

    symbols: tuple[Symbol, ...]
    notes: tuple[str, ...]


class _Changed(Struct, frozen=True):
    """A file that differs: the lines of the side that the lake knows, counted from 0; none for all of it."""

    path: str
    lines: tuple[int, ...] | None
    text: bytes


def changed_symbols(reader: Reader, source: Path, gitref: str, *, repo_id: str) -> ChangedSymbols:
    """The definitions of a repository that differ between a commit and the files, or between two commits."""
    if "..." in gitref:
        raise UsageError(
            f"{gitref!r} means a merge base, which is not looked for", "name it: git merge-base BASE HEAD"
        )
    base, dots, head = gitref.partition("..")
    before = commit_files(source, resolve_commit(source, base))
    after = commit_files(source, resolve_commit(source, head or "HEAD")) if dots else None
    known = _digests(reader, repo_id)
    other = tracked_files(source) if after is None else after
    paths = sorted(path for path in {*before, *other, *known} if path.endswith(SUFFIXES))
    sides = _sides(source, paths, before, after)
    whole: list[_Changed] = []
    notes = [f"{gitref}{'' if dots else ' and the files as they are'}: {len(sides):,} differ"]
    absent, off, old_side = [], [], []
    for path, (old, new) in sides.items():
        digest = known.get(path)
        if path not in known:
            absent.append(path)
        elif new is not None and sha256(new).hexdigest() == digest:
            whole.append(_Changed(path, None if old is None else differing_lines(old, new)[1], new))
        elif old is not None and sha256(old).hexdigest() == digest:
            old_side.append(path)
            whole.append(_Changed(path, None if new is None else differing_lines(old, new)[0], old))
        else:
            off.append(path)
            text = new if new is not None else old or b""
            whole.append(_Changed(path, None if old is None or new is None else differing_lines(old, new)[1], text))
    if old_side:
        notes.append(f"the lake has {_named(old_side)} as of {base}: lines are those of that side")
    if off:
        notes.append(f"the lake has {_named(off)} as neither side is: lines may be off; build the lake again")
    if absent:
        notes.append(f"not in the lake: {_named(absent)}")
    symbols = _symbols(reader, repo_id, whole)
    if not symbols:
        notes.append("no definition in the lake differs")
    return ChangedSymbols(tuple(symbols), tuple(notes))


def differing_lines(old: bytes, new: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    r"""The lines that differ, counted from 0, in the old text and in the new one.

    Where lines are only on one side, the line before them stands for them on the other.

    >>> differing(b"a\nb\nc\n", b"a\nB\nc\nd\n")
    ((1, 2), (1, 3))
    """
    left, right = old.splitlines(), new.splitlines()
    first = 0
    while first < min(len(left), len(right)) and left[first] == right[first]:
        first += 1
    last = 0
    while last < min(len(left), len(right)) - first and left[-1 - last] == right[-1 - last]:
        last += 1
    middle_left, middle_right = left[first : len(left) - last], right[first : len(right) - last]
    if max(len(middle_left), len(middle_right)) > COMPARED:
        blocks = [(0, len(middle_left), 0, len(middle_right))]
    else:
        matcher = SequenceMatcher(None, middle_left, middle_right, autojunk=False)
        blocks = [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]
    lines: tuple[set[int], set[int]] = (set(), set())
    for i1, i2, j1, j2 in blocks:
        lines[0].update(_range(first + i1, first + i2))
        lines[1].update(_range(first + j1, first + j2))
    return tuple(sorted(lines[0])), tuple(sorted(lines[1]))


def _range(begin: int, end: int) -> range:
    return range(begin, end) if end > begin else range(max(begin - 1, 0), max(begin, 1))


def _digests(reader: Reader, repo_id: str) -> dict[str, str | None]:
    query = Query("SELECT f.path, f.file_sha256 FROM f", {"f": Slice("repo_files_v1", repo_id=(repo_id,))})
    return dict(reader.rows(query))


def _sides(
    source: Path, paths: Sequence[str], before: Mapping[str, Blob], after: Mapping[str, Blob] | None
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """The two texts of each file that differs; none where it is not there."""
    if after is not None:
        paths = [path for path in paths if before.get(path) != after.get(path)]
    wanted = [side[path] for side in (before, after or {}) for path in paths if path in side]
    texts = read_blobs(source, wanted)
    root = source.resolve()
    found: dict[str, tuple[bytes | None, bytes | None]] = {}
    for path in paths:
        old = texts.get(before[path].blob_id) if path in before else None
        if after is None:
            new = _read(root, path)
        else:
            new = texts.get(after[path].blob_id) if path in after else None
        if old != new and not (old and new and old.splitlines() == new.splitlines()):
            found[path] = (old, new)
    return found


def _read(root: Path, path: str) -> bytes | None:
    """A file of the work tree; none if it is not there, or leads elsewhere."""
    file = root / path
    try:
        if not file.resolve().is_relative_to(root) or not file.is_file() or file.stat().st_size > MAX_COMPARED_BYTES:
            return None
        return file.read_bytes()
    except OSError:
        return None


def _symbols(reader: Reader, repo_id: str, changed: Sequence[_Changed]) -> list[Symbol]:
    paths = tuple(each.path for each in changed)
    if not paths:
        return []
    spans, bindings = _spans(reader, repo_id, paths), _bindings(reader, repo_id, paths)
    starts: dict[str, list[int]] = {}
    query = Query(
        "SELECT l.path, l.line_start_byte FROM l",
        {"l": Slice("file_line_index_v1", repo_id=(repo_id,), path=paths)},
        order=("path", "line_start_byte"),
    )
    for path, start in reader.rows(query):
        starts.setdefault(path, []).append(start)
    found: dict[str, list[DefinitionSpan]] = {}
    for each in changed:
        inside, assigned = spans.get(each.path, []), bindings.get(each.path, [])
        for span in touched(inside, assigned, each.lines, starts.get(each.path, []), each.text.splitlines()):
            found.setdefault(span.name, []).append(span)
    return [_symbol(name, repo_id, members) for name, members in sorted(found.items())]


def _symbol(name: str, repo_id: str, spans: Sequence[DefinitionSpan]) -> Symbol:
    first = spans[0]
    ids = tuple(dict.fromkeys(span.node_id for span in spans))
    return Symbol(name, first.kind, first.subkind, first.path, first.line, repo_id, "diff", ids)


def _spans(reader: Reader, repo_id: str, paths: Collection[str]) -> dict[str, list[DefinitionSpan]]:
    """The definitions of files, decorators included, and docstrings; by path."""
    query = Query(
        "SELECT d.path, d.node_id, d.node_kind, d.subkind, coalesce(d.qualname, '') AS name, d.line,"
        f" i.begins, i.ends FROM d JOIN ({spans_sql(decorated=True)}) AS i ON i.node_id = d.node_id",
        {
            "d": nodes((*ENCLOSING_KINDS, "DOCSTRING"), repo_id, path=tuple(paths)),
            "x": edges(("DECORATES",), repo_id, path=tuple(paths)),
        },
        order=("path", "begins", "node_id"),
    )
    return _by_path(DefinitionSpan(*row) for row in reader.rows(query))


def _bindings(reader: Reader, repo_id: str, paths: Collection[str]) -> dict[str, list[DefinitionSpan]]:
    """The variables that statements of files assign, by path; each with the span of its statement."""
    query = Query(
        "SELECT a.path, b.node_id, b.node_kind, b.subkind, b.qualname, e.line, a.bstart AS begins,"
        " a.bend AS ends FROM a JOIN e ON e.owner_file_id = a.file_id AND e.bstart >= a.bstart"
        " AND e.bend <= a.bend JOIN b ON b.node_id = e.dst_node_id",
        {
            "a": nodes(
                ("AST_NODE",),
                repo_id,
                subkind=("Assign", "AnnAssign", "AugAssign", "TypeAlias", "Import", "ImportFrom"),
                path=tuple(paths),
            ),
            "e": edges(("DEFINES_BINDING",), repo_id, path=tuple(paths)),
            "b": nodes(("BINDING",), repo_id),
        },
        order=("path", "begins", "node_id"),
    )
    return _by_path(DefinitionSpan(*row) for row in reader.rows(query))


def _by_path(spans: Iterable[DefinitionSpan]) -> dict[str, list[DefinitionSpan]]:
    found: dict[str, list[DefinitionSpan]] = {}
    for span in spans:
        found.setdefault(span.path, []).append(span)
    return found


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
    return ", ".join(paths[:NAMED]) + more
