r"""The bytes of listed files, read where the witnesses run.

Between listing and reading a tree may change, by accident or on purpose. So nothing found by the listing is
taken for granted: folders are opened part by part from the root and links are not followed, hence nobody can
swap one in to lead us out; a pipe does not make us wait; and no more than `extract.max_file_size` is held.
Whatever goes wrong is a reading with its reason (`SkippedReason`) and no bytes:

    for reading in read_entries(listing.kind, listing.root, listing.entries, options):
        reading.raw                # b"import os\n", or null
        reading.unread             # null, or Unreadable("vanished", "No such file or directory")

A file that changed while it was read (its size or time differ before and after) is read again; one that does
so each time is "changing": half an old and half a new file is a file that never was. A system that counts
time in steps of milliseconds hides a change of the same size within one step.

Members of a zip come in the order asked for. A tar has no index: its members come in its own order, in one
pass that goes from one wanted member to the next. An entry that was skipped is not opened.

Tests: `tests/unit/sources/test_reading.py`.
"""

from __future__ import annotations

import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.archives import CHUNK, HEADER_BYTES, Bounded, open_tar, open_zip, zip_refusal
from codeanatomy.sources.listing import (
    FILE_FLAGS,
    FOLDER_FLAGS,
    Entry,
    SkippedReason,
    held,
    open_below,
    portable,
    refusal,
    unported,
)
from codeanatomy.sources.source_file import Unreadable

# A file that changes is read so often again, after a pause.
TRIES = 3
PAUSE_SECONDS = 0.02
TOO_LARGE = "has more bytes than extract.max_file_size = {}"


class Reading(Struct, frozen=True):
    """An entry and its bytes, or why there are none."""

    entry: Entry
    raw: bytes | None
    mtime_ns: int | None
    unread: Unreadable | None


class Refused(Exception):
    """Why a file is not read; never leaves this module."""

    def __init__(self, reason: SkippedReason, message: str) -> None:
        super().__init__(message)
        self.unread = Unreadable(reason, message)


# Gives the bytes and the time of last change of an entry, or raises.
Read = Callable[[Entry], tuple[bytes, int | None]]


def read_entries(
    kind: str, root: str, entries: Sequence[Entry], options: ExtractOptions
) -> Iterator[Reading]:
    """One reading per entry, in order but for a tar; never raises."""
    left = {entry.path: entry for entry in entries}
    try:
        for reading in READERS[kind](unported(root), entries, options):
            del left[reading.entry.path]
            yield reading
    # The root or the archive cannot be opened, or the tar is broken from here on.
    except Exception as problem:  # noqa: BLE001
        for entry in left.values():
            yield Reading(entry, None, None, _unread(problem))


def _each(entries: Iterable[Entry], read: Read, survived: type[Exception] = Exception) -> Iterator[Reading]:
    """A reading for each entry, as long as there is no worse than what can be survived."""
    for entry in entries:
        try:
            if entry.skipped_reason is not None:
                raise Refused(entry.skipped_reason, "skipped when it was listed")
            raw, mtime_ns = read(entry)
        except survived as problem:
            yield Reading(entry, None, None, _unread(problem))
        else:
            yield Reading(entry, raw, mtime_ns, None)


def _unread(problem: Exception) -> Unreadable:
    if isinstance(problem, Refused):
        return problem.unread
    # Unpackers raise OSErrors of their own, without a number.
    if isinstance(problem, OSError) and problem.errno is not None:
        return Unreadable(refusal(problem), problem.strerror or str(problem))
    ours = isinstance(problem, MemoryError | NotImplementedError)
    return Unreadable("unreadable" if ours else "damaged", f"{type(problem).__name__}: {problem}")


def _from_folder(root: str, entries: Sequence[Entry], options: ExtractOptions) -> Iterator[Reading]:
    with held(os.open(root, FOLDER_FLAGS)) as root_fd:
        yield from _each(entries, partial(_read_file, root, root_fd, options.max_file_size))


def _read_file(root: str, root_fd: int, limit: int, entry: Entry) -> tuple[bytes, int]:
    folder, name = _below(root, unported(entry.location))
    for _ in range(TRIES + 1):
        with (
            held(open_below(root_fd, folder)) as folder_fd,
            held(os.open(name, FILE_FLAGS, dir_fd=folder_fd)) as fd,
        ):
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise Refused("not_a_file", "is no longer a regular file")
            raw = _joined(partial(os.read, fd, min(before.st_size, limit) + 1), limit)
            after = os.fstat(fd)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            return raw, after.st_mtime_ns
        time.sleep(PAUSE_SECONDS)
    raise Refused("changing", f"changed each of the {TRIES + 1} times it was read")


def _below(root: str, location: str) -> tuple[str, str]:
    """Folder and name of a file, relative to the root."""
    path = location.removeprefix(root.rstrip("/") + "/")
    if path == location or "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise Refused("unsafe_path", "is not below the root")
    folder, _, name = path.rpartition("/")
    return folder, name


def _joined(read: Callable[[], bytes], limit: int) -> bytes:
    """Pieces up to the first empty one, together not more than the limit."""
    pieces, size = [], 0
    while piece := read():
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise Refused("too_large", TOO_LARGE.format(limit))
    return b"".join(pieces)


def _from_zip(root: str, entries: Sequence[Entry], options: ExtractOptions) -> Iterator[Reading]:
    with open_zip(Path(root), options) as archive:
        yield from _each(entries, partial(_read_zipped, archive, options.max_file_size))


def _read_zipped(archive: zipfile.ZipFile, limit: int, entry: Entry) -> tuple[bytes, int | None]:
    info = archive.NameToInfo.get(entry.location)
    if info is None:
        raise Refused("vanished", "the archive has no such member")
    reason = zip_refusal(info)
    if reason is not None:
        raise Refused(reason, f"is encrypted, or compressed by method {info.compress_type}")
    with archive.open(info) as stream:
        raw = _joined(partial(stream.read, CHUNK), limit)
    return _as_declared(raw, info.file_size), entry.mtime_ns


def _as_declared(raw: bytes, size: int) -> bytes:
    if len(raw) != size:
        raise Refused("damaged", f"has {len(raw)} bytes and declares {size}")
    return raw


def _from_tar(root: str, entries: Sequence[Entry], options: ExtractOptions) -> Iterator[Reading]:
    wanted = sorted(entries, key=lambda entry: entry.position or 0)
    with open_tar(Path(root), options) as (tar, stream):
        # After a failure of the stream, nobody knows where in it we are.
        yield from _each(wanted, partial(_read_tarred, tar, stream, options.max_file_size), Refused)


def _read_tarred(tar: tarfile.TarFile, stream: Bounded, limit: int, entry: Entry) -> tuple[bytes, int | None]:
    if entry.position is None:
        raise Refused("vanished", "its place in the archive is not known")
    stream.budget = HEADER_BYTES
    stream.seek(entry.position)
    info = tarfile.TarInfo.fromtarfile(tar)
    data = tar.extractfile(info) if info.isreg() else None
    if data is None or portable(info.name) != entry.location:
        raise Refused("vanished", "the archive has no such member at its place")
    if info.size > limit:
        raise Refused("too_large", TOO_LARGE.format(limit))
    stream.budget = info.size + CHUNK
    return _as_declared(_joined(partial(data.read, CHUNK), limit), info.size), entry.mtime_ns


READERS: Mapping[str, Callable[[str, Sequence[Entry], ExtractOptions], Iterator[Reading]]] = {
    "folder": _from_folder,
    "zip": _from_zip,
    "tar": _from_tar,
}
