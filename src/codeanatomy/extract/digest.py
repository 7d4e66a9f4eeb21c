"""What a source is, as one text: the same for the same paths and bytes, wherever and whenever they lie.

    source_digest(list_source(Path("requests"), options), options)     # 'f3c0...', 64 digits

Every path that was considered counts, with the reason why it is not read, or with the digest of its bytes.
Times, owners and the folder do not. The rows of `repo_files_v1` tell the same, so what was read can be held
against what was to be read (`rows_digest`). Tests: `tests/test_digests.py`, `tests/test_build.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import json

from codeanatomy.extract.listing import Listing
from codeanatomy.extract.reading import Reading, read_entries
from codeanatomy.options import ExtractOptions


def source_digest(listing: Listing, options: ExtractOptions) -> str:
    """The digest of a listing and of the bytes of its files, read one at a time."""
    return _digest(map(_told, read_entries(listing.kind, listing.root, listing.entries, options)))


def rows_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """The same, by the rows of a repository in `repo_files_v1`."""
    return _digest(
        (row["path"], row["is_stub"], row["size_bytes"], row["file_sha256"] or row["skipped_reason"] or "")
        for row in rows
    )


# Path, whether it is a stub, its size, and the digest of its bytes or why they were not read.
Line: TypeAlias = tuple[str, bool, int | None, str]


def _digest(lines: Iterable[Line]) -> str:
    return hashlib.sha256(b"\n".join(sorted(map(json.encode, lines)))).hexdigest()


def _told(reading: Reading) -> Line:
    entry = reading.entry
    if reading.raw is not None:
        return entry.path, entry.is_stub, len(reading.raw), hashlib.sha256(reading.raw).hexdigest()
    # What is skipped is a row, too: with its size.
    return entry.path, entry.is_stub, entry.size_bytes, reading.unread.reason if reading.unread else ""
