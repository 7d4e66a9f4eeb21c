"""Compare the files of a source with those of the last build in `repo_files_v1`.

>>> was = {"a.py": (False, 2, "9c1e"), "b.py": (False, 3, "07aa")}
>>> now = {"b.py": (False, 3, "07ab"), "c.py": (False, 2, "9c1e")}
>>> [(change.path, change.how) for change in source_changes("r", was, now)]
[('a.py', 'removed'), ('b.py', 'changed'), ('c.py', 'added')]

Files are compared by their bytes and not by their times; a renamed file is removed and added. With `--since
COMMIT`, files that git reports unchanged since then are not read:

    GitBaseline("lake", "main").file_states("app", listing, options)      # like `sources.digest.file_states`

Tests: `tests/unit/plan/test_changes.py`, `tests/unit/plan/test_git_changes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.delta.read.duck import lookup_connection, select_rows, sql_literal, translate_errors
from codeanatomy.delta.read.light import light_files
from codeanatomy.errors import StorageFailure, TableMissing, UsageError
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.sources.digest import FileStates, file_states, stored_file_states
from codeanatomy.sources.git import IndexStat, index_path, resolve_commit, unchanged_since
from codeanatomy.sources.listing import Entry, Listing, decode_location

FILES = "repo_files_v1"
# Tables with what outside tools report: a SCIP index, and the type checker.
TOOL_TABLES = (SCIP, TYPES)
# Columns of `repo_files_v1` that make up a file state.
STATE_COLUMNS = ("path", "is_stub", "size_bytes", "file_sha256", "skipped_reason")
# State of a file that was read; any other text is the reason why it was not.
DIGEST = re.compile(r"[0-9a-f]{64}")


class SourceChange(Struct, frozen=True):
    """A path that was added, changed or removed."""

    path: str
    file_id: str
    how: Literal["added", "changed", "removed"]


class Impact(Struct, frozen=True):
    """Why a refresh processes a file again: the file changed, or its relations lead elsewhere."""

    path: str
    # added, changed or removed; for other files see `pipeline.tasks.impact`.
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


class GitBaseline(Struct, frozen=True):
    """A lake, and the commit since which files that git reports unchanged need not be read.

    The caller guarantees that the lake was built from a work tree with the same content as now in all files
    that equal the commit. A file is read only if one of these conditions holds; the state of any other file
    is taken from the lake:

        the commit has another version than the index, or none    committed or staged since
        its size or time differs from the index                   edited, and not staged
        its time is not older than the index                      may have been edited in the same moment
        git does not track it, or is set to ignore its changes    new, in conflict, or flagged
        the lake does not have it, or with another size           never built

    A deleted path is not listed; a renamed one is new. If the lake or the repository was never built, all
    files are read. Two cases are missed: a file that was changed and got back its old size and time, and a
    file that was built with an edit that was reverted later, if its size is the same. Ignore files and the
    first lines of files without a suffix are always read, for the listing.
    """

    lake: str
    commit: str

    def file_states(self, repo_id: str, listing: Listing, options: ExtractOptions) -> FileStates:
        """Return the state of each path; raise UsageError for a source outside of a git work tree."""
        if listing.kind != "folder":
            what = "in an object store" if listing.uri else "an archive"
            raise UsageError(f"{repo_id} is {what}, which has no git commits", "omit --since")
        root = decode_location(listing.root)
        index = index_path(Path(root))
        index_stats = unchanged_since(Path(root), resolve_commit(Path(root), self.commit), index)
        stored = _stored_states(self.lake, repo_id)
        is_unchanged = {
            entry.path: _is_unchanged(entry, root, index_stats, stored) for entry in listing.entries
        }
        unread = tuple(entry for entry in listing.entries if not is_unchanged[entry.path])
        read = file_states(replace(listing, entries=unread), options)
        return {path: stored[path] if unchanged else read[path] for path, unchanged in is_unchanged.items()}


def _stored_states(lake: str, repo_id: str) -> FileStates:
    """Read the file states of the published snapshot; empty if they cannot be read."""
    try:
        return read_file_states(lake, repo_id, Snapshot.open(lake).pin(FILES).version)
    except (StorageFailure, TableMissing):
        return {}


def _is_unchanged(entry: Entry, root: str, index_stats: Mapping[str, IndexStat], stored: FileStates) -> bool:
    """Return whether the stored state of a file is current, so that it need not be read."""
    if entry.skipped_reason is not None or entry.size_bytes is None or entry.mtime_ns is None:
        return False
    name = decode_location(entry.location).removeprefix(root.rstrip("/") + "/")
    if index_stats.get(name) != IndexStat(entry.size_bytes, entry.mtime_ns):
        return False
    # Look up the file name and not `entry.path`, which may have belonged to another file at the last build.
    is_stub, size, digest = stored.get(name, (False, None, ""))
    return (is_stub, size) == (entry.is_stub, entry.size_bytes) and bool(DIGEST.fullmatch(digest))
