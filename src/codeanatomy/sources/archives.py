r"""List the Python files of a wheel, an sdist, or another zip or tar.

The first bytes of an archive give its kind, not its name. Nothing is unpacked to disk. The entries are those
of the unpacked folder (`sources.listing`), with these differences:

    requests-2.0/requests/api.py      requests/api.py, to be read: a tar with PKG-INFO in its one top folder
                                      is an sdist, and its paths are those of the repository it comes from
    requests-2.0/.gitignore           no entry, and not applied: what was shipped is meant to be there
    requests-2.0.dist-info/RECORD     no entry, unlike entry_points.txt
    ../../etc/cron.d/job              (unsafe)/etc/cron.d/job, unsafe_path; never opened
    a.py twice                        one entry, the last: as unzip and tar do
    tool -> /bin/sh                   symlink; in a tar also hard links

>>> [safe_path(name) for name in ("./a//b.py", "../a.py", "/a.py", "C:a.py", "a\\b.py")]
['a/b.py', None, None, None, None]

Archives may be forged. Limits are checked on the declared sizes before anything is unpacked (a zip declares
the size of each member and never yields more), and again on the unpacked bytes: a tar is read through
`BoundedStream`, which stops at the allowed end and at headers that are too long. All of a tar is read once
here, so its checksum is known to be right. Times in a zip have no zone; they are taken as UTC.

In a zip only stored and deflated members are read, as in every wheel: Python unpacks the other methods
without a limit on memory. Tests: `tests/unit/sources/test_archives.py`.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import stat
import tarfile
import zipfile
from calendar import timegm
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import UsageError
from codeanatomy.sources.listing import (
    ENVIRONMENT_MARKERS,
    HEAD_BYTES,
    STUB,
    Entry,
    Listing,
    Selection,
    SkippedReason,
    encode_location,
    escape_path,
    is_python_script,
    may_be_source,
    sorted_by_path,
)
from codeanatomy.sources.packaging_files import is_packaging_file

# Decompressors of a tar, by its first bytes.
DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
BLOCK = tarfile.BLOCKSIZE
# Bytes that a tar may need for one member besides its data, and a zip in its directory on average.
TAR_OVERHEAD = 4 * BLOCK
ZIP_OVERHEAD = 512
# Limit for the extended headers of one tar member.
HEADER_BYTES = 1024 * 1024
CHUNK = 64 * 1024
# No system has longer paths, and no source tree is deeper.
MAX_NAME_BYTES, MAX_DEPTH = 4096, 100
UNSAFE = "(unsafe)"
MAX_UNSAFE_NAME_CHARS = 500
HINT = "name a folder, a wheel (.whl), an sdist (.tar.gz), a .zip or a .tar (also .bz2, .xz)"


class Member(Struct, frozen=True):
    """A member with the properties that the archive declares."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    mtime_ns: int | None
    position: int | None = None
    # Why it cannot be read, if known before reading.
    skipped_reason: SkippedReason | None = None
    # The first bytes of a file without a suffix.
    head: bytes = b""


def list_archive(path: Path, options: ExtractOptions, uri: str = "") -> Listing:
    """List the entries of an archive; `uri` names the object of a store that it is a copy of."""
    name = uri or str(path)
    try:
        kind = archive_kind(path, name)
        if kind == "zip":
            with open_zip(path, options) as archive:
                members = list(_within_limits(_zip_members(archive), name, options))
        else:
            with open_tar(path, options) as (tar, stream):
                members = list(_within_limits(_tar_members(tar, stream), name, options))
    except UsageError:
        raise
    # Parsers of hostile bytes raise all kinds of exceptions.
    except Exception as problem:
        reason = f"{type(problem).__name__}: {problem}"
        raise UsageError(f"{name} is damaged or not a supported archive: {reason}", HINT) from problem
    entries = _ArchiveTree(options).list_entries(_with_paths(members, kind))
    return Listing(encode_location(str(path)), kind, sorted_by_path(entries), uri)


def archive_kind(path: Path, name: str) -> Literal["zip", "tar"]:
    """Detect the kind of an archive by its bytes; `name` is for messages."""
    with path.open("rb") as stream:
        head = stream.read(BLOCK)
    # The last member of a tar may be a zip, so this comes first.
    if head.startswith(tuple(DECOMPRESSORS)) or _is_tar_header(head):
        return "tar"
    if head.startswith(b"PK") or zipfile.is_zipfile(path):
        return "zip"
    raise UsageError(f"{name} is neither a folder nor an archive", HINT)


def _is_tar_header(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


class BoundedStream:
    """A stream that raises ValueError if more is read than an archive within the limits can need."""

    def __init__(self, stream: IO[bytes], end: int) -> None:
        self.stream = stream
        self.end = end
        # Bytes that may be read until it is set again; seeking costs nothing.
        self.budget = HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.budget:
            raise ValueError(f"wants to read {size} bytes at once, {self.budget} are allowed")
        self.budget -= size
        data = self.stream.read(size)
        self._refuse_beyond(self.stream.tell())
        return data

    def seek(self, position: int) -> int:
        self._refuse_beyond(position)
        return self.stream.seek(position)

    def tell(self) -> int:
        return self.stream.tell()

    def _refuse_beyond(self, position: int) -> None:
        if position > self.end:
            raise ValueError(f"unpacks to more than {self.end} bytes")


class _BoundedReader(io.BufferedReader):
    """A zip file with a directory of at most `limit` bytes: zipfile makes an object for each entry."""

    limit = 0

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.limit:
            raise ValueError(f"its directory has {size} bytes, more than {self.limit}")
        return super().read(size)


@contextmanager
def open_zip(path: Path, options: ExtractOptions) -> Iterator[zipfile.ZipFile]:
    """Open a zip; raise the exceptions of zipfile, or ValueError if its directory is too large."""
    with _BoundedReader(io.FileIO(path)) as stream:
        stream.limit = max(HEADER_BYTES, options.max_archive_entries * ZIP_OVERHEAD)
        with zipfile.ZipFile(stream) as archive:
            yield archive


@contextmanager
def open_tar(path: Path, options: ExtractOptions) -> Iterator[tuple[tarfile.TarFile, BoundedStream]]:
    """Open a tar and its bounded stream; raise the exceptions of tarfile, or ValueError beyond the bounds."""
    with path.open("rb") as raw:
        head = raw.read(BLOCK)
        raw.seek(0)
        decompress = next((each for magic, each in DECOMPRESSORS.items() if head.startswith(magic)), None)
        plain: IO[bytes] = raw if decompress is None else decompress(raw)
        overhead = options.max_archive_entries * TAR_OVERHEAD + tarfile.RECORDSIZE
        stream = BoundedStream(plain, options.max_archive_size + overhead)
        with plain, tarfile.TarFile(fileobj=stream, encoding="utf-8", errors="surrogateescape") as tar:  # type: ignore[arg-type]
            yield tar, stream


def _within_limits(members: Iterable[Member], name: str, options: ExtractOptions) -> Iterator[Member]:
    """Yield the members; raise UsageError if there are too many or they are too large."""
    total = 0
    for count, member in enumerate(members, 1):
        total += member.size
        if count > options.max_archive_entries:
            raise UsageError(
                f"{name} has more than {options.max_archive_entries} entries",
                "raise extract.max_archive_entries if you trust it",
            )
        if total > options.max_archive_size:
            raise UsageError(
                f"{name} unpacks to more than {options.max_archive_size} bytes",
                "raise extract.max_archive_size if you trust it",
            )
        yield member


def _zip_members(archive: zipfile.ZipFile) -> Iterator[Member]:
    for info in archive.infolist():
        skipped_reason = zip_skip_reason(info)
        head = b""
        if skipped_reason is None and _needs_head(info.filename):
            try:
                with archive.open(info) as stream:
                    head = stream.read(HEAD_BYTES)
            # As in `list_archive`, but only one member is lost.
            except Exception:  # noqa: BLE001
                skipped_reason = "damaged"
        kind = _zip_kind(info)
        # `filename` ends at the first NUL.
        yield Member(
            info.orig_filename, kind, info.file_size, _utc_ns(info.date_time), None, skipped_reason, head
        )


def _zip_kind(info: zipfile.ZipInfo) -> Literal["file", "folder", "link", "other"]:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir() or kind == stat.S_IFDIR:
        return "folder"
    if kind == stat.S_IFLNK:
        return "link"
    return "file" if kind in {0, stat.S_IFREG} else "other"


def zip_skip_reason(info: zipfile.ZipInfo) -> SkippedReason | None:
    """Return why a member cannot be read, judged by its header, or None."""
    if info.flag_bits & 0x41:
        return "encrypted"
    return None if info.compress_type in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} else "unreadable"


def _utc_ns(date_time: tuple[int, int, int, int, int, int]) -> int | None:
    try:
        # Refuses dates such as 31 February.
        datetime(*date_time)  # noqa: DTZ001
    except ValueError:
        return None
    return timegm((*date_time, 0, 0, 0)) * 10**9


def _tar_members(tar: tarfile.TarFile, stream: BoundedStream) -> Iterator[Member]:
    while (info := _next_header(tar, stream)) is not None:
        kind = _tar_kind(info)
        head = b""
        if kind == "file" and _needs_head(info.name) and (data := tar.extractfile(info)):
            stream.budget = CHUNK
            head = data.read(HEAD_BYTES)
        yield Member(info.name, kind, info.size, _tar_ns(info.mtime), info.offset, None, head)
    # tarfile takes a broken header for the end of the archive.
    stream.seek(tar.offset)
    if stream.read(BLOCK).strip(b"\0"):
        raise tarfile.ReadError(f"no header at {tar.offset}")
    stream.budget = CHUNK
    while stream.read(CHUNK):
        stream.budget = CHUNK


def _next_header(tar: tarfile.TarFile, stream: BoundedStream) -> tarfile.TarInfo | None:
    stream.budget = HEADER_BYTES
    info = tar.next()
    # tarfile would go backwards, in an endless loop.
    if info is not None and (info.size < 0 or tar.offset <= info.offset):
        raise tarfile.ReadError(f"a negative size at {info.offset}")
    return info


def _tar_kind(info: tarfile.TarInfo) -> Literal["file", "folder", "link", "other"]:
    if info.issym() or info.islnk():
        return "link"
    return "file" if info.isreg() else "folder" if info.isdir() else "other"


def _tar_ns(mtime: float) -> int | None:
    try:
        ns = int(mtime * 10**9)
    except (OverflowError, ValueError):
        return None
    return ns if abs(ns) < 2**63 else None


def _needs_head(name: str) -> bool:
    return "." not in name.rpartition("/")[2]


def safe_path(name: str) -> str | None:
    """Return the path of a member relative to its archive; None if its name may lead out of it."""
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:|.*[\\\0]", name, re.DOTALL):
        return None
    if len(name.encode("utf-8", "surrogateescape")) > MAX_NAME_BYTES or len(parts) > MAX_DEPTH:
        return None
    return "/".join(parts)


def display_unsafe_name(name: str) -> str:
    r"""Return a harmless path to show for a member with an unsafe name.

    >>> display_unsafe_name("C:\\..\\x\0.py")
    '(unsafe)/C%3a/x%00.py'
    """
    end = name[-MAX_UNSAFE_NAME_CHARS:]
    parts = [part for part in re.split(r"[/\\]", end) if part not in {"", ".", ".."}]
    path = escape_path("/".join(parts[-MAX_DEPTH + 1 :]) or "unnamed")
    return f"{UNSAFE}/" + re.sub(r"[\0-\x1f\x7f:\\]", lambda match: f"%{ord(match[0]):02x}", path)


# A member and its path relative to the root; None if the path is not safe.
_MemberPath = tuple[Member, str | None]


def _with_paths(members: Sequence[Member], kind: str) -> list[_MemberPath]:
    """Return the members with their paths, without the top folder of an sdist."""
    pairs = [(member, safe_path(member.name)) for member in members]
    files = {path for member, path in pairs if member.kind != "folder"}
    tops = {None if path is None else path.partition("/")[0] for _, path in pairs if path != ""}
    top = tops.pop() if len(tops) == 1 else None
    if kind == "zip" or top is None or top in files or f"{top}/PKG-INFO" not in files:
        return pairs
    return [(member, (path or "")[len(top) + 1 :]) for member, path in pairs]


class _ArchiveTree:
    """The folders of an archive, derived from the paths of its members, and its entries."""

    def __init__(self, options: ExtractOptions) -> None:
        self.selection = Selection(options)
        self.max_size = options.max_file_size
        # By path: why a folder is not entered, or None; whether the include patterns select it.
        self.folders: dict[str, tuple[SkippedReason | None, bool]] = {"": (None, False)}
        self.environments: set[str] = set()
        self.entries: dict[str, Entry] = {}

    def list_entries(self, members: Sequence[_MemberPath]) -> list[Entry]:
        self.environments = {folder for _, path in members if path for folder in _environments(path)}
        unsafe = []
        for member, path in members:
            if path is None or (path == "" and member.kind != "folder"):
                shown, location = display_unsafe_name(member.name), encode_location(member.name)
                unsafe.append(Entry(shown, location, None, None, False, "unsafe_path"))
            elif path and (".dist-info/" not in path or is_packaging_file(path)):
                self.add(member, path)
        return [*self.entries.values(), *unsafe]

    def add(self, member: Member, path: str) -> None:
        reason, included = self.folder_state(path if member.kind == "folder" else path.rpartition("/")[0])
        if reason is not None or member.kind == "folder":
            return
        entry = Entry(
            escape_path(path), encode_location(member.name), None, None, False, None, member.position
        )
        if member.kind != "file":
            reason = "symlink" if member.kind == "link" else "not_a_file"
            self.entries[path] = replace(entry, skipped_reason=reason)
        elif may_be_source(path):
            self.entries[path] = replace(
                entry,
                size_bytes=member.size,
                mtime_ns=member.mtime_ns,
                is_stub=path.lower().endswith(STUB),
                skipped_reason=self.selection.file_reason(path, included) or self.file_reason(member),
            )

    def folder_state(self, path: str) -> tuple[SkippedReason | None, bool]:
        """Return the state of a folder; the first time, decide it for each folder of its path."""
        if path in self.folders:
            return self.folders[path]
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            here = "/".join(parts[:count])
            reason, included = self.folders["/".join(parts[: count - 1])]
            if here not in self.folders and reason is None:
                is_environment = here in self.environments
                reason = "virtual_environment" if is_environment else self.selection.folder_reason(here)
                included = self.selection.is_included(here, True, included)
                if reason is not None:
                    shown, location = escape_path(here), encode_location(here)
                    self.entries[here] = Entry(shown, location, None, None, False, reason)
            self.folders.setdefault(here, (reason, included))
        return self.folders[path]

    def file_reason(self, member: Member) -> SkippedReason | None:
        """Return why a selected file is not read because of its contents, or None."""
        if member.skipped_reason is None and _needs_head(member.name) and not is_python_script(member.head):
            return "not_python"
        return member.skipped_reason or ("too_large" if member.size > self.max_size else None)


def _environments(path: str) -> Iterator[str]:
    """Yield the folders (except the root) that a path inside of them proves to be virtual environments."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)) if parts[count] in ENVIRONMENT_MARKERS)
