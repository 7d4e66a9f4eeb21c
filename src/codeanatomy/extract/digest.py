"""What a source is, as one text: the same for the same paths and bytes, wherever and whenever they lie.

    source_digest(list_source(Path("requests"), options), options)     # 'f3c0...', 64 digits

Every path that was considered counts, with the reason why it is not read, or with the digest of its bytes.
Times, owners and the folder do not. Tests: `tests/test_digests.py`.
"""

from __future__ import annotations

import hashlib

from msgspec import json

from codeanatomy.extract.listing import Listing
from codeanatomy.extract.reading import Reading, read_entries
from codeanatomy.options import ExtractOptions


def source_digest(listing: Listing, options: ExtractOptions) -> str:
    """The digest of a listing and of the bytes of its files, read one at a time."""
    readings = read_entries(listing.kind, listing.root, listing.entries, options)
    lines = sorted(json.encode(_told(reading)) for reading in readings)
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def _told(reading: Reading) -> tuple[str, bool, int | None, str]:
    entry = reading.entry
    if reading.raw is not None:
        return entry.path, entry.is_stub, len(reading.raw), hashlib.sha256(reading.raw).hexdigest()
    # What is skipped is a row, too: with its size.
    return entry.path, entry.is_stub, entry.size_bytes, reading.unread.reason if reading.unread else ""
