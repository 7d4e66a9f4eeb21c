r"""Read the bytes of listed files, in the process that extracts them.

Between listing and reading a tree may change, by accident or on purpose. So nothing in the listing is
trusted: folders are opened part by part from the root and links are not followed, so that a link swapped in
cannot lead out of the root; opening a pipe does not block; and at most `extract.max_file_size` bytes are
held. Every failure is a reading with a reason (`SkippedReason`) and no bytes:

    for reading in read_entries(listing.kind, listing.root, listing.entries, options):
        reading.raw                # b"import os\n", or None
        reading.failure            # None, or Unreadable("vanished", "No such file or directory")

A file that changed while it was read (its size or time differ before and after) is read again; one that does
so each time is "changing": a mix of old and new bytes is a file that never existed. A file system that counts
time in milliseconds hides a change of the same size within one millisecond.

Members of a zip are read in the given order. A tar has no index: its members are read in the order of the
archive, in one pass that skips from one wanted member to the next. An entry skipped by the listing is not
opened. Files of an object store are read from copies on this machine, which were fetched before: a copy is of
the object that was listed, so it does not change (`sources.stored_objects`).

Tests: `tests/unit/sources/test_reading.py`.
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.archives import (
    CHUNK,
    HEADER_BYTES,
    BoundedStream,
    open_tar,
    open_zip,
    zip_skip_reason,
)
from codeanatomy.sources.listing import (
    FILE_FLAGS,
    FOLDER_FLAGS,
    Entry,
    SkippedReason,
    closing_fd,
    decode_location,
    encode_location,
    open_below,
    skip_reason,
)
from codeanatomy.sources.source_file import Unreadable

# How often a file that changed while it was read is read again, after a pause.
RETRIES = 3
PAUSE_SECONDS = 0.02
COPY = re.compile(r"[0-9a-f]{40}")
TOO_LARGE = "has more bytes than extract.max_file_size = {}"


class Reading(Struct, frozen=True):
    """An entry with its bytes, or the reason why there are none."""

    entry: Entry
    raw: bytes | None
    mtime_ns: int | None
    failure: Unreadable | None


class FileSkipped(Exception):
    """Raised for a file that is not read; caught in this module."""

    def __init__(self, reason: SkippedReason, message: str) -> None:
        super().__init__(message)
        self.failure = Unreadable(reason, message)


# Returns the bytes and the modification time of an entry, or raises.
ReadEntry = Callable[[Entry], tuple[bytes, int | None]]


def read_entries(
    kind: str, root: str, entries: Sequence[Entry], options: ExtractOptions
) -> Iterator[Reading]:
    """Yield one reading per entry, in order except for a tar; never raises."""
    pending = {entry.path: entry for entry in entries}
    try:
        for reading in READERS[kind](decode_location(root), entries, options):
            del pending[reading.entry.path]
            yield reading
    # The root or the archive cannot be opened, or the tar is broken from here on.
    except Exception as problem:  # noqa: BLE001
        for entry in pending.values():
            yield Reading(entry, None, None, _failure(problem))


def _read_each(
    entries: Iterable[Entry], read: ReadEntry, caught: type[Exception] = Exception
) -> Iterator[Reading]:
    """Yield a reading for each entry, with a failure for the caught exceptions; raise others."""
    for entry in entries:
        try:
            if entry.skipped_reason is not None:
                raise FileSkipped(entry.skipped_reason, "skipped when it was listed")
            raw, mtime_ns = read(entry)
        except caught as problem:
            yield Reading(entry, None, None, _failure(problem))
        else:
            yield Reading(entry, raw, mtime_ns, None)


def _failure(problem: Exception) -> Unreadable:
    if isinstance(problem, FileSkipped):
        return problem.failure
    # Decompressors raise OSErrors of their own, without a number.
    if isinstance(problem, OSError) and problem.errno is not None:
        return Unreadable(skip_reason(problem), problem.strerror or str(problem))
    is_our_limit = isinstance(problem, MemoryError | NotImplementedError)
    return Unreadable("unreadable" if is_our_limit else "damaged", f"{type(problem).__name__}: {problem}")


def _read_folder(root: str, entries: Sequence[Entry], options: ExtractOptions) -> Iterator[Reading]:
    with closing_fd(os.open(root, FOLDER_FLAGS)) as root_fd:
        yield from _read_each(entries, partial(_read_file, root, root_fd, options.max_file_size))


def _read_file(root: str, root_fd: int, limit: int, entry: Entry) -> tuple[bytes, int]:
    folder, name = _split_below(root, decode_location(entry.location))
    for _ in range(RETRIES + 1):
        with (
            closing_fd(open_below(root_fd, folder)) as folder_fd,
            closing_fd(os.open(name, FILE_FLAGS, dir_fd=folder_fd)) as fd,
        ):
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise FileSkipped("not_a_file", "is no longer a regular file")
            raw = _read_all(partial(os.read, fd, min(before.st_size, limit) + 1), limit)
            after = os.fstat(fd)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            return raw, after.st_mtime_ns
        time.sleep(PAUSE_SECONDS)
    raise FileSkipped("changing", f"changed each of the {RETRIES + 1} times it was read")


def _split_below(root: str, location: str) -> tuple[str, str]:
    """Return folder and name of a file relative to the root; raise FileSkipped if it is not below it."""
    path = location.removeprefix(root.rstrip("/") + "/")
    if path == location or "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise FileSkipped("unsafe_path", "is not below the root")
    folder, _, name = path.rpartition("/")
    return folder, name


def _read_all(read: Callable[[], bytes], limit: int) -> bytes:
    """Read pieces up to the first empty one; raise FileSkipped if they exceed the limit."""
    pieces, size = [], 0
    while piece := read():
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise FileSkipped("too_large", TOO_LARGE.format(limit))
    return b"".join(pieces)


def _read_copies(root: str, entries: Sequence[Entry], options: ExtractOptions) -> Iterator[Reading]:
    yield from _read_each(entries, partial(_read_copy, root, options.max_file_size))


def _read_copy(root: str, limit: int, entry: Entry) -> tuple[bytes, int | None]:
    name = decode_location(entry.location).partition("/")[0]
    if not COPY.fullmatch(name):
        raise FileSkipped("unsafe_path", "its copy has no valid name")
    try:
        with Path(root, name).open("rb") as file:
            return _check_size(
                _read_all(partial(file.read, limit + 1), limit), entry.size_bytes
            ), entry.mtime_ns
    except FileNotFoundError:
        raise FileSkipped("vanished", "was deleted or replaced in the store after it was listed") from None


def _read_zip(root: str, entries: Sequence[Entry], options: ExtractOptions) -> Iterator[Reading]:
    with open_zip(Path(root), options) as archive:
        yield from _read_each(entries, partial(_read_zip_member, archive, options.max_file_size))


def _read_zip_member(archive: zipfile.ZipFile, limit: int, entry: Entry) -> tuple[bytes, int | None]:
    info = archive.NameToInfo.get(entry.location)
    if info is None:
        raise FileSkipped("vanished", "the archive has no such member")
    reason = zip_skip_reason(info)
    if reason is not None:
        raise FileSkipped(reason, f"is encrypted, or compressed by method {info.compress_type}")
    with archive.open(info) as stream:
        raw = _read_all(partial(stream.read, CHUNK), limit)
    return _check_size(raw, info.file_size), entry.mtime_ns


def _check_size(raw: bytes, size: int | None) -> bytes:
    if len(raw) != size:
        raise FileSkipped("damaged", f"has {len(raw)} bytes and declares {size}")
    return raw


def _read_tar(root: str, entries: Sequence[Entry], options: ExtractOptions) -> Iterator[Reading]:
    in_archive_order = sorted(entries, key=lambda entry: entry.position or 0)
    with open_tar(Path(root), options) as (tar, stream):
        # After a failure of the stream its position is unknown, so other exceptions end the reading.
        read = partial(_read_tar_member, tar, stream, options.max_file_size)
        yield from _read_each(in_archive_order, read, FileSkipped)


def _read_tar_member(
    tar: tarfile.TarFile, stream: BoundedStream, limit: int, entry: Entry
) -> tuple[bytes, int | None]:
    if entry.position is None:
        raise FileSkipped("vanished", "its place in the archive is not known")
    stream.budget = HEADER_BYTES
    stream.seek(entry.position)
    info = tarfile.TarInfo.fromtarfile(tar)
    data = tar.extractfile(info) if info.isreg() else None
    if data is None or encode_location(info.name) != entry.location:
        raise FileSkipped("vanished", "the archive has no such member at its place")
    if info.size > limit:
        raise FileSkipped("too_large", TOO_LARGE.format(limit))
    stream.budget = info.size + CHUNK
    return _check_size(_read_all(partial(data.read, CHUNK), limit), info.size), entry.mtime_ns


READERS: Mapping[str, Callable[[str, Sequence[Entry], ExtractOptions], Iterator[Reading]]] = {
    "folder": _read_folder,
    "copies": _read_copies,
    "zip": _read_zip,
    "tar": _read_tar,
}
