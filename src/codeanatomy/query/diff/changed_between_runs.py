"""Find the definitions that differ between two runs, by the source texts in the lake.

    changes = changed_between_runs(LightReader(before), LightReader(after), "shop")
    changes.after.symbols       # changed or added definitions, as nodes of the second run
    changes.before.symbols      # definitions that the second run does not have, as nodes of the first

Lines are compared and mapped to definitions as for a commit (`changed_definitions`), so comments and blank
lines outside of functions do not count.

Tests: `tests/unit/query/test_patch_text.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from codeanatomy.query.diff.changed_definitions import (
    ChangedSymbols,
    DifferingFile,
    differing_lines,
    file_digests,
    list_paths,
    touched_symbols,
)
from codeanatomy.query.engines.statements import Query, Reader, Slice, nodes
from codeanatomy.query.symbols import KINDS


class RunChanges(Struct, frozen=True):
    """The definitions that differ: those of the second run, and those that only the first run has."""

    after: ChangedSymbols
    before: ChangedSymbols


def changed_between_runs(before: Reader, after: Reader, repo_id: str) -> RunChanges:
    """Return the definitions of a repository that differ between two runs."""
    was, now = file_digests(before, repo_id), file_digests(after, repo_id)
    paths = sorted(path for path in was.keys() | now.keys() if was.get(path) != now.get(path))
    old, new = _texts(before, repo_id, paths), _texts(after, repo_id, paths)
    changed: list[DifferingFile] = []
    removed: list[DifferingFile] = []
    for path in paths:
        left, right = old.get(path), new.get(path)
        if left is None or right is None:
            changed += [DifferingFile(path, None, right)] if right is not None else []
            removed += [DifferingFile(path, None, left)] if left is not None else []
        else:
            lines = differing_lines(left, right)
            changed.append(DifferingFile(path, lines[1], right))
            removed.append(DifferingFile(path, lines[0], left))
    symbols = touched_symbols(after, repo_id, changed)
    gone = touched_symbols(before, repo_id, removed)
    kept = _known(after, repo_id, [symbol.symbol for symbol in gone])
    only_before = [symbol for symbol in gone if symbol.symbol not in kept]
    notes = [f"{len(paths):,} files differ" + (f": {list_paths(paths)}" if paths else "")]
    return RunChanges(ChangedSymbols(tuple(symbols), tuple(notes)), ChangedSymbols(tuple(only_before), ()))


def _texts(reader: Reader, repo_id: str, paths: Collection[str]) -> dict[str, bytes]:
    query = Query(
        "SELECT b.path, b.text FROM b WHERE b.text IS NOT NULL",
        {"b": Slice("repo_file_blobs_v1", repo_id=(repo_id,), path=paths)},
    )
    return {path: text.encode() for path, text in reader.rows(query)} if paths else {}


def _known(reader: Reader, repo_id: str, names: Collection[str]) -> set[str]:
    """Return those of the names that a run has."""
    marks = ", ".join("?" * len(names))
    query = Query(
        f"SELECT DISTINCT n.qualname FROM n WHERE n.qualname IN ({marks})",
        {"n": nodes(KINDS, repo_id)},
        tuple(names),
    )
    return {name for (name,) in reader.rows(query)} if names else set()
