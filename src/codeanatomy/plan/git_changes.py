"""What is known of a source whose lake is taken to have what git has not seen change since a commit.

    since = Since("lake", "main")
    since.lines("app", listing, options)      # as `file_states` gives them; most files were not opened

The caller knows that the lake was built from a work tree in which all that is now as in the commit was as it
is now. So a file is read only if one of these holds, and the line of any other is the one in the lake:

    the commit has it otherwise than the index, or not        committed or staged since
    its size or its time is not the one in the index          edited, and not staged
    its time is not before the index was written              may have been edited since, in the same moment
    git does not track it, or was told not to look at it      new, in conflict, or so flagged
    the lake does not know it, or by another size             never built

A path that is gone is not listed; one that was renamed is new. A lake or a repository that was never built
knows nothing, so all is read. What this misses: a file that was changed and given back its old size and time,
and one that the lake has with an edit which was taken back, if its size is the same. Ignore files and the
first lines of files without a suffix are read in any case, for the listing. Tests: `tests/unit/plan/test_git_changes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import StorageFailure, TableMissing, UsageError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan.changes import FILES, stored_lines
from codeanatomy.sources.digest import FileStates, file_states
from codeanatomy.sources.git import IndexStat, index_path, resolve_commit, unchanged_since
from codeanatomy.sources.listing import Entry, Listing, decode_location

# Of a file that was read; any other word tells why it was not.
DIGEST = re.compile(r"[0-9a-f]{64}")


class Since(Struct, frozen=True):
    """A lake, and a name of the commit since which its files need not be read if git has seen no change."""

    lake: str
    commit: str

    def lines(self, repo_id: str, listing: Listing, options: ExtractOptions) -> FileStates:
        """What is known of each path of a listing; refuses what is in no work tree of git."""
        if listing.kind != "folder":
            raise UsageError(f"{repo_id} is an archive, which has no commits", "do without --since")
        root = decode_location(listing.root)
        index = index_path(Path(root))
        stamps = unchanged_since(Path(root), resolve_commit(Path(root), self.commit), index)
        stored = _stored(self.lake, repo_id)
        is_known = {entry.path: _is_known(entry, root, stamps, stored) for entry in listing.entries}
        left = tuple(entry for entry in listing.entries if not is_known[entry.path])
        found = file_states(replace(listing, entries=left), options)
        return {path: stored[path] if known else found[path] for path, known in is_known.items()}


def _stored(lake: str, repo_id: str) -> FileStates:
    """What the published lake has of a repository; of one that it cannot tell of, nothing."""
    if not is_local(lake):
        return {}
    try:
        return stored_lines(lake, repo_id, Snapshot.open(lake).pin(FILES).version)
    except (StorageFailure, TableMissing):
        return {}


def _is_known(entry: Entry, root: str, stamps: Mapping[str, IndexStat], stored: FileStates) -> bool:
    """Whether a file need not be read."""
    if entry.skipped_reason is not None or entry.size_bytes is None or entry.mtime_ns is None:
        return False
    name = decode_location(entry.location).removeprefix(root.rstrip("/") + "/")
    if stamps.get(name) != IndexStat(entry.size_bytes, entry.mtime_ns):
        return False
    # By its name: a path that is not the name of its file may have been another's when the lake was built.
    is_stub, size, digest = stored.get(name, (False, None, ""))
    return (is_stub, size) == (entry.is_stub, entry.size_bytes) and bool(DIGEST.fullmatch(digest))
