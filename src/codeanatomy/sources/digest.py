"""Fingerprint a source: the same digest for the same paths and bytes, whatever the place and the time.

    states = file_states(list_source(Path("requests"), options), options)
    states["setup.py"]                 # (False, 1042, '9c1e...'): no stub, its size, the digest of its bytes
    states_digest(states)              # 'f3c0...', 64 digits

Every listed path counts, with the digest of its bytes, or with the reason why it is not read. Times, owners
and the folder do not count. The rows of `repo_files_v1` hold the same values (`stored_file_states`), so what
a run has read can be compared with what it planned to read.

Tests: `tests/unit/graph/test_digests.py`, `tests/spark/test_build.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import json

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.listing import Listing
from codeanatomy.sources.reading import Reading, read_entries

# Whether the file is a stub, its size, and the digest of its bytes or the reason why they were not read.
FileState: TypeAlias = tuple[bool, int | None, str]
# By path.
FileStates: TypeAlias = Mapping[str, FileState]


def source_digest(listing: Listing, options: ExtractOptions) -> str:
    """Digest a listing and the bytes of its files, which are read one at a time."""
    return states_digest(file_states(listing, options))


def file_states(listing: Listing, options: ExtractOptions) -> FileStates:
    """Read the files of a listing one at a time and return the state of each path."""
    readings = read_entries(listing.kind, listing.root, listing.entries, options)
    return {reading.entry.path: _state(reading) for reading in readings}


def stored_file_states(rows: Iterable[Mapping[str, Any]]) -> FileStates:
    """Return the state of each path, given the rows of a repository in `repo_files_v1`."""
    return {
        row["path"]: (row["is_stub"], row["size_bytes"], row["file_sha256"] or row["skipped_reason"] or "")
        for row in rows
    }


def states_digest(states: FileStates) -> str:
    """Digest the states of all paths of a source."""
    encoded = (json.encode((path, *state)) for path, state in states.items())
    return hashlib.sha256(b"\n".join(sorted(encoded))).hexdigest()


def _state(reading: Reading) -> FileState:
    entry = reading.entry
    if reading.raw is not None:
        return entry.is_stub, len(reading.raw), hashlib.sha256(reading.raw).hexdigest()
    # `repo_files_v1` has a row with the size of a skipped file, too.
    return entry.is_stub, entry.size_bytes, reading.failure.reason if reading.failure else ""
