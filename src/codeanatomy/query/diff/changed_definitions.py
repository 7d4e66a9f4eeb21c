"""Find the definitions that differ from a commit, for `impact --diff`.

    changes = changed_symbols(reader, Path("shop"), "main", repo_id="shop")
    changes.symbols      # (Symbol("shop.money.Price.with_tax", ...), Symbol("shop.money.TAX", ...))
    changes.notes        # ("main and the work tree: 2 files differ",)

`main` is compared with the work tree, `main..topic` with another commit. The lake was built from one of the
two sides, or from neither: it has the digest of each file, and the line numbers of its nodes are valid for
the side with that digest. A changed line in a function counts for the innermost function; in the body of a
class or module for the variable assigned there, else for the class or module itself. A decorator belongs to
what it decorates. Comments, docstrings and blank lines outside of functions are ignored. A file that was
added or deleted is changed as a whole; an untracked file that is not in the lake is not seen.

Tests: `tests/unit/query/test_changed_definitions.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.diff.touched import DefinitionSpan, touched_definitions
from codeanatomy.query.engines.statements import Query, Reader, Slice, edges, nodes
from codeanatomy.query.walks.enclosing import ENCLOSING_KINDS, spans_sql
from codeanatomy.sources.git import (
    MAX_COMPARED_BYTES,
    Blob,
    commit_files,
    read_blobs,
    resolve_commit,
    tracked_files,
)

SUFFIXES = (".py", ".pyi")
# Texts that differ in a longer range of lines are not compared by line: the whole range counts as changed.
MAX_COMPARED_LINES = 4000
# Paths listed in a note.
MAX_PATHS_SHOWN = 5


class ChangedSymbols(Struct, frozen=True):
    """The changed definitions, and notes for the user."""

    symbols: tuple[Symbol, ...]
    notes: tuple[str, ...]


class DifferingFile(Struct, frozen=True):
    """A file that differs."""

    path: str
    # Changed lines of the side that the lake was built from, counted from 0; None for the whole file.
    lines: tuple[int, ...] | None
    text: bytes


def changed_symbols(reader: Reader, source: Path, gitref: str, *, repo_id: str) -> ChangedSymbols:
    """Return the definitions that differ between a commit and the work tree, or between two commits."""
    if "..." in gitref:
        raise UsageError(
            f"--diff does not support merge bases: {gitref!r}",
            "name the commit that `git merge-base BASE HEAD` prints",
        )
    base, dots, head = gitref.partition("..")
    before = commit_files(source, resolve_commit(source, base))
    after = commit_files(source, resolve_commit(source, head or "HEAD")) if dots else None
    known = file_digests(reader, repo_id)
    other = tracked_files(source) if after is None else after
    paths = sorted(path for path in {*before, *other, *known} if path.endswith(SUFFIXES))
    sides = _sides(source, paths, before, after)
    changed: list[DifferingFile] = []
    notes = [f"{gitref}{'' if dots else ' and the work tree'}: {len(sides):,} files differ"]
    absent, outdated, old_side = [], [], []
    for path, (old, new) in sides.items():
        digest = known.get(path)
        if path not in known:
            absent.append(path)
        elif new is not None and sha256(new).hexdigest() == digest:
            changed.append(DifferingFile(path, None if old is None else differing_lines(old, new)[1], new))
        elif old is not None and sha256(old).hexdigest() == digest:
            old_side.append(path)
            changed.append(DifferingFile(path, None if new is None else differing_lines(old, new)[0], old))
        else:
            outdated.append(path)
            text = new if new is not None else old or b""
            lines = None if old is None or new is None else differing_lines(old, new)[1]
            changed.append(DifferingFile(path, lines, text))
    if old_side:
        notes.append(f"the lake has {list_paths(old_side)} as of {base}: line numbers are of that version")
    if outdated:
        notes.append(
            f"the lake has another version of {list_paths(outdated)}: line numbers may be wrong; build again"
        )
    if absent:
        notes.append(f"not in the lake: {list_paths(absent)}")
    symbols = touched_symbols(reader, repo_id, changed)
    if not symbols:
        notes.append("no definition in the lake differs")
    return ChangedSymbols(tuple(symbols), tuple(notes))


def differing_lines(old: bytes, new: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    r"""Return the lines that differ, counted from 0, in the old text and in the new one.

    Lines that only one side has are represented on the other side by the line before them.

    >>> differing_lines(b"a\nb\nc\n", b"a\nB\nc\nd\n")
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
    if max(len(middle_left), len(middle_right)) > MAX_COMPARED_LINES:
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


def file_digests(reader: Reader, repo_id: str) -> dict[str, str | None]:
    """Return the digests of the files of a repository by path."""
    query = Query("SELECT f.path, f.file_sha256 FROM f", {"f": Slice("repo_files_v1", repo_id=(repo_id,))})
    return dict(reader.rows(query))


def _sides(
    source: Path, paths: Sequence[str], before: Mapping[str, Blob], after: Mapping[str, Blob] | None
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Return the old and new text of each file that differs; None where the file does not exist."""
    if after is not None:
        paths = [path for path in paths if before.get(path) != after.get(path)]
    wanted = [side[path] for side in (before, after or {}) for path in paths if path in side]
    texts = read_blobs(source, wanted)
    root = source.resolve()
    sides: dict[str, tuple[bytes | None, bytes | None]] = {}
    for path in paths:
        old = texts.get(before[path].blob_id) if path in before else None
        if after is None:
            new = _read(root, path)
        else:
            new = texts.get(after[path].blob_id) if path in after else None
        if old != new and not (old and new and old.splitlines() == new.splitlines()):
            sides[path] = (old, new)
    return sides


def _read(root: Path, path: str) -> bytes | None:
    """Read a file of the work tree; None if it is missing, too large, or a link that leaves the tree."""
    file = root / path
    try:
        if not file.resolve().is_relative_to(root) or not file.is_file():
            return None
        return file.read_bytes() if file.stat().st_size <= MAX_COMPARED_BYTES else None
    except OSError:
        return None


def touched_symbols(reader: Reader, repo_id: str, changed: Sequence[DifferingFile]) -> list[Symbol]:
    """Return the definitions that the changed lines of files belong to."""
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
    by_name: dict[str, list[DefinitionSpan]] = {}
    for each in changed:
        definitions, assigned = spans.get(each.path, []), bindings.get(each.path, [])
        line_starts, texts = starts.get(each.path, []), each.text.splitlines()
        # A file that could not be parsed has no definitions.
        lines = each.lines if definitions else ()
        for span in touched_definitions(definitions, assigned, lines, line_starts, texts):
            by_name.setdefault(span.name, []).append(span)
    return [_symbol(name, repo_id, members) for name, members in sorted(by_name.items())]


def _symbol(name: str, repo_id: str, spans: Sequence[DefinitionSpan]) -> Symbol:
    first = spans[0]
    ids = tuple(dict.fromkeys(span.node_id for span in spans))
    return Symbol(name, first.kind, first.subkind, first.path, first.line, repo_id, "diff", ids)


def _spans(reader: Reader, repo_id: str, paths: Collection[str]) -> dict[str, list[DefinitionSpan]]:
    """Return the spans of definitions, including decorators, and of docstrings, by path."""
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
    """Return the variables that statements assign, by path, each with the span of its statement."""
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
    groups: dict[str, list[DefinitionSpan]] = {}
    for span in spans:
        groups.setdefault(span.path, []).append(span)
    return groups


def list_paths(paths: Sequence[str]) -> str:
    """List the first few paths, and how many more there are."""
    more = f" and {len(paths) - MAX_PATHS_SHOWN:,} more" if len(paths) > MAX_PATHS_SHOWN else ""
    return ", ".join(paths[:MAX_PATHS_SHOWN]) + more
