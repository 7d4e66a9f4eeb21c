"""What changed in a source since it was built: its paths now, held against `repo_files_v1`.

>>> was = {"a.py": (False, 2, "9c1e"), "b.py": (False, 3, "07aa")}
>>> now = {"b.py": (False, 3, "07ab"), "c.py": (False, 2, "9c1e")}
>>> [(change.path, change.how) for change in changes_of("r", was, now)]
[('a.py', 'removed'), ('b.py', 'changed'), ('c.py', 'added')]

A file is the same if its bytes are, whatever its times say; one that was renamed is removed and added.

Tests: `tests/unit/plan/test_changes_of_source.py`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from codeanatomy.delta.read.duck import (
    local_path,
    lookup_connection,
    select_rows,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.light import light_files
from codeanatomy.extract.file_rows import file_id
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.sources.digest import FileStates, stored_file_states

FILES = "repo_files_v1"
# Tables of tools that read a whole program.
PROGRAM_TABLES = (SCIP, TYPES)
# What is known of a file before anybody has parsed it.
FACTS = ("path", "is_stub", "size_bytes", "file_sha256", "skipped_reason")


class Change(Struct, frozen=True):
    """A path that differs."""

    path: str
    file_id: str
    how: Literal["added", "changed", "removed"]


class Impact(Struct, frozen=True):
    """Why a file is redone: what became of it, or of what it refers to."""

    path: str
    # added, changed or removed; of others what became of their relations, see `refresh.impact`.
    reason: str
    # Of these, one of the names that lead elsewhere now, and how many relations do.
    name: str | None = None
    relations: int = 0


def changes_of(repo_id: str, was: FileStates, now: FileStates) -> tuple[Change, ...]:
    """The paths that differ, in their order."""
    found = []
    for path in sorted(was.keys() | now.keys()):
        if was.get(path) == now.get(path):
            continue
        how: Literal["added", "changed", "removed"] = (
            "added" if path not in was else "removed" if path not in now else "changed"
        )
        found.append(Change(path, file_id(repo_id, path), how))
    return tuple(found)


def stored_lines(lake: str, repo_id: str, version: int) -> FileStates:
    """What a version of `repo_files_v1` knows of the paths of a repository."""
    rows = select_rows(local_path(lake), FILES, light_files(lake, FILES, version))
    asked = f"SELECT {', '.join(FACTS)} FROM ({rows}) WHERE repo_id = {sql_literal(repo_id)}"
    with translate_errors(), lookup_connection() as found:
        answer = found.execute(asked).fetchall()
    return stored_file_states(dict(zip(FACTS, row, strict=True)) for row in answer)
