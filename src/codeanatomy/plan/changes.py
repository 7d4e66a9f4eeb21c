"""Compare the files of a source with those of the last build in `repo_files_v1`.

>>> was = {"a.py": (False, 2, "9c1e"), "b.py": (False, 3, "07aa")}
>>> now = {"b.py": (False, 3, "07ab"), "c.py": (False, 2, "9c1e")}
>>> [(change.path, change.how) for change in source_changes("r", was, now)]
[('a.py', 'removed'), ('b.py', 'changed'), ('c.py', 'added')]

Files are compared by their bytes and not by their times; a renamed file is removed and added.

Tests: `tests/unit/plan/test_changes.py`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from codeanatomy.delta.read.duck import lookup_connection, select_rows, sql_literal, translate_errors
from codeanatomy.delta.read.light import light_files
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.node_ids import file_id
from codeanatomy.sources.digest import FileStates, stored_file_states

FILES = "repo_files_v1"
# Tables with what outside tools report: a SCIP index, and the type checker.
TOOL_TABLES = (SCIP, TYPES)
# Columns of `repo_files_v1` that make up a file state.
STATE_COLUMNS = ("path", "is_stub", "size_bytes", "file_sha256", "skipped_reason")


class SourceChange(Struct, frozen=True):
    """A path that was added, changed or removed."""

    path: str
    file_id: str
    how: Literal["added", "changed", "removed"]


class Impact(Struct, frozen=True):
    """Why a refresh processes a file again: the file changed, or its relations lead elsewhere."""

    path: str
    # added, changed or removed; for other files see `pipeline.impact`.
    reason: str
    # For other files: one of the names that lead elsewhere, and the number of such relations.
    name: str | None = None
    relations: int = 0


def source_changes(repo_id: str, was: FileStates, now: FileStates) -> tuple[SourceChange, ...]:
    """Return the paths that differ, sorted."""
    changes = []
    for path in sorted(was.keys() | now.keys()):
        if was.get(path) == now.get(path):
            continue
        how: Literal["added", "changed", "removed"] = (
            "added" if path not in was else "removed" if path not in now else "changed"
        )
        changes.append(SourceChange(path, file_id(repo_id, path), how))
    return tuple(changes)


def read_file_states(lake: str, repo_id: str, version: int) -> FileStates:
    """Read the file states of a repository from a version of `repo_files_v1`."""
    files = [file for file in light_files(lake, FILES, version) if file.may_hold("repo_id", (repo_id,))]
    rows = select_rows(lake, FILES, files)
    query = f"SELECT {', '.join(STATE_COLUMNS)} FROM ({rows}) WHERE repo_id = {sql_literal(repo_id)}"
    with translate_errors(), lookup_connection() as connection:
        states = connection.execute(query).fetchall()
    return stored_file_states(dict(zip(STATE_COLUMNS, row, strict=True)) for row in states)
