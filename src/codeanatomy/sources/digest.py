"""What a source is, as one text: the same for the same paths and bytes, wherever and whenever they lie.

    lines = source_lines(list_source(Path("requests"), options), options)
    lines["setup.py"]                  # (False, 1042, '9c1e...'): no stub, its size, the digest of its bytes
    lines_digest(lines)                # 'f3c0...', 64 digits

Every path that was considered counts, with the reason why it is not read, or with the digest of its bytes.
Times, owners and the folder do not. The rows of `repo_files_v1` tell the same, so what was read can be held
against what was to be read (`rows_digest`). Tests: `tests/unit/graph/test_digests.py`, `tests/spark/test_build.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import json

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.listing import Listing
from codeanatomy.sources.reading import Reading, read_entries


def source_digest(listing: Listing, options: ExtractOptions) -> str:
    """The digest of a listing and of the bytes of its files, read one at a time."""
    return lines_digest(source_lines(listing, options))


def source_lines(listing: Listing, options: ExtractOptions) -> Lines:
    """What is known of each path of a listing, whose files are read one at a time."""
    found = read_entries(listing.kind, listing.root, listing.entries, options)
    return {reading.entry.path: _told(reading) for reading in found}


def rows_lines(rows: Iterable[Mapping[str, Any]]) -> Lines:
    """The same, by the rows of a repository in `repo_files_v1`."""
    return {
        row["path"]: (row["is_stub"], row["size_bytes"], row["file_sha256"] or row["skipped_reason"] or "")
        for row in rows
    }


def lines_digest(lines: Lines) -> str:
    """What a source is, by what is known of its paths."""
    told = (json.encode((path, *line)) for path, line in lines.items())
    return hashlib.sha256(b"\n".join(sorted(told))).hexdigest()


def rows_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """What a source was when it was read, by the rows of a repository in `repo_files_v1`."""
    return lines_digest(rows_lines(rows))


# Whether it is a stub, its size, and the digest of its bytes or why they were not read.
Line: TypeAlias = tuple[bool, int | None, str]
Lines: TypeAlias = Mapping[str, Line]


def _told(reading: Reading) -> Line:
    entry = reading.entry
    if reading.raw is not None:
        return entry.is_stub, len(reading.raw), hashlib.sha256(reading.raw).hexdigest()
    # What is skipped is a row, too: with its size.
    return entry.is_stub, entry.size_bytes, reading.unread.reason if reading.unread else ""
