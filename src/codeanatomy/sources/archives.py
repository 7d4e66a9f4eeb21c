r"""Which members of a wheel, an sdist, or another zip or tar are read.

What an archive is, its first bytes tell, not its name. Nothing is unpacked to disk. The entries are those a
folder would give (`listing`), with these differences:

    requests-2.0/requests/api.py      requests/api.py, to be read: a tar with PKG-INFO in its one top folder
                                      is an sdist, and its paths are those of the repository it comes from
    requests-2.0/.gitignore           no entry, and not obeyed: what was shipped is meant
    requests-2.0.dist-info/RECORD     no entry
    ../../etc/cron.d/job              (unsafe)/etc/cron.d/job, unsafe_path; never opened
    a.py, later once more a.py        one entry, the last: so do unzip and tar
    tool -> /bin/sh                   symlink; of a tar also hard links

>>> [safe_path(name) for name in ("./a//b.py", "../a.py", "/a.py", "C:a.py", "a\\b.py")]
['a/b.py', None, None, None, None]

Archives lie. Limits are checked on what they declare, before anything is unpacked (a zip declares the size of
each member and never yields more), and again on what comes out: a tar is read through `Bounded`, which stops
at the end that is allowed and at headers that are too long. All of a tar is read once here, so its checksum
is known to be right. Times in a zip have no zone; they are taken as UTC.

In a zip only stored and deflated members are read, as in every wheel: Python unpacks the other kinds without
a bound. Tests: `tests/unit/sources/test_archives.py`.
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
    ENVIRONMENT,
    HEAD_BYTES,
    STUB,
    Entry,
    Listing,
    Selection,
    SkippedReason,
    is_python_script,
    may_be_python,
    portable,
    shown,
    sorted_by_path,
)

# How a packed tar begins, and what unpacks it.
PACKED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
BLOCK = tarfile.BLOCKSIZE
# What a tar may need for one member besides its data, and a zip in its directory on average.
TAR_OVERHEAD = 4 * BLOCK
ZIP_OVERHEAD = 512
# Extended headers of one tar member may be so long.
HEADER_BYTES = 1024 * 1024
CHUNK = 64 * 1024
# No system has longer paths, and no tree of sources is deeper.
NAME_BYTES, DEEPEST = 4096, 100
UNSAFE = "(unsafe)"
# Of an unsafe name.
SHOWN_CHARS = 500
HINT = "name a folder, a wheel (.whl), an sdist (.tar.gz), a .zip or a .tar (also .bz2, .xz)"


class Member(Struct, frozen=True):
    """A member as the archive declares it."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    mtime_ns: int | None
    position: int | None = None
    # Why it cannot be read, if that is known by now.
    refusal: SkippedReason | None = None
    # How a file without a suffix begins.
    head: bytes = b""


def list_archive(path: Path, options: ExtractOptions) -> Listing:
    """The entries of an archive."""
    try:
        kind = kind_of(path)
        if kind == "zip":
            with open_zip(path, options) as archive:
                members = list(_within(_zip_members(archive), path, options))
        else:
            with open_tar(path, options) as (tar, stream):
                members = list(_within(_tar_members(tar, stream), path, options))
    except UsageError:
        raise
    # Parsers of hostile bytes raise what they like.
    except Exception as problem:
        said = f"{type(problem).__name__}: {problem}"
        raise UsageError(f"{path} is damaged, or not what it looks like: {said}", HINT) from problem
    tree = _Tree(options)
    return Listing(portable(str(path)), kind, sorted_by_path(tree.entries(_named(members, kind))))


def kind_of(path: Path) -> Literal["zip", "tar"]:
    """What the bytes of an archive say it is."""
    with path.open("rb") as stream:
        head = stream.read(BLOCK)
    # A tar may end with a zip among its members, so this comes first.
    if head.startswith(tuple(PACKED)) or _is_tar_header(head):
        return "tar"
    if head.startswith(b"PK") or zipfile.is_zipfile(path):
        return "zip"
    raise UsageError(f"{path} is neither a folder nor an archive", HINT)


def _is_tar_header(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


class Bounded:
    """A stream that ends with an error where an honest one would have ended long before."""

    def __init__(self, stream: IO[bytes], end: int) -> None:
        self.stream = stream
        self.end = end
        # What may be read until somebody sets it anew; seeking is free.
        self.budget = HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.budget:
            raise ValueError(f"wants to read {size} bytes at once, {self.budget} are allowed")
        self.budget -= size
        data = self.stream.read(size)
        self._refuse_beyond(self.stream.tell())
        return data

    def seek(self, place: int) -> int:
        self._refuse_beyond(place)
        return self.stream.seek(place)

    def tell(self) -> int:
        return self.stream.tell()

    def _refuse_beyond(self, place: int) -> None:
        if place > self.end:
            raise ValueError(f"unpacks to more than {self.end} bytes")


class _Directory(io.BufferedReader):
    """A zip whose directory must not be larger than `limit`: zipfile makes an object of each of its lines."""

    limit = 0

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.limit:
            raise ValueError(f"its directory has {size} bytes, more than {self.limit}")
        return super().read(size)


@contextmanager
def open_zip(path: Path, options: ExtractOptions) -> Iterator[zipfile.ZipFile]:
    """The zip; raises what zipfile does, or ValueError for too large a directory."""
    with _Directory(io.FileIO(path)) as stream:
        stream.limit = max(HEADER_BYTES, options.max_archive_entries * ZIP_OVERHEAD)
        with zipfile.ZipFile(stream) as archive:
            yield archive


@contextmanager
def open_tar(path: Path, options: ExtractOptions) -> Iterator[tuple[tarfile.TarFile, Bounded]]:
    """The tar, and the bounds that it is read in; raises what tarfile does, or ValueError beyond them."""
    with path.open("rb") as raw:
        head = raw.read(BLOCK)
        raw.seek(0)
        unpack = next((kind for magic, kind in PACKED.items() if head.startswith(magic)), None)
        plain: IO[bytes] = raw if unpack is None else unpack(raw)
        overhead = options.max_archive_entries * TAR_OVERHEAD + tarfile.RECORDSIZE
        stream = Bounded(plain, options.max_archive_size + overhead)
        with plain, tarfile.TarFile(fileobj=stream, encoding="utf-8", errors="surrogateescape") as tar:  # type: ignore[arg-type]
            yield tar, stream


def _within(members: Iterable[Member], path: Path, options: ExtractOptions) -> Iterator[Member]:
    """The members, as long as there are not too many or too large ones."""
    total = 0
    for count, member in enumerate(members, 1):
        total += member.size
        if count > options.max_archive_entries:
            said, setting = f"more than {options.max_archive_entries} entries", "max_archive_entries"
            raise UsageError(f"{path} has {said}", f"raise extract.{setting} if you trust it")
        if total > options.max_archive_size:
            said, setting = f"more than {options.max_archive_size} bytes", "max_archive_size"
            raise UsageError(f"{path} unpacks to {said}", f"raise extract.{setting} if you trust it")
        yield member


def _zip_members(archive: zipfile.ZipFile) -> Iterator[Member]:
    for info in archive.infolist():
        refusal = zip_refusal(info)
        head = b""
        if refusal is None and _needs_head(info.filename):
            try:
                with archive.open(info) as stream:
                    head = stream.read(HEAD_BYTES)
            # As above; this costs one member.
            except Exception:  # noqa: BLE001
                refusal = "damaged"
        kind = _zip_kind(info)
        # `filename` ends at the first NUL.
        yield Member(info.orig_filename, kind, info.file_size, _utc_ns(info.date_time), None, refusal, head)


def _zip_kind(info: zipfile.ZipInfo) -> Literal["file", "folder", "link", "other"]:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir() or kind == stat.S_IFDIR:
        return "folder"
    if kind == stat.S_IFLNK:
        return "link"
    return "file" if kind in {0, stat.S_IFREG} else "other"


def zip_refusal(info: zipfile.ZipInfo) -> SkippedReason | None:
    """Why a member cannot be read, if that is seen without trying."""
    if info.flag_bits & 0x41:
        return "encrypted"
    return None if info.compress_type in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} else "unreadable"


def _utc_ns(date_time: tuple[int, int, int, int, int, int]) -> int | None:
    try:
        # Only to refuse a 31 February.
        datetime(*date_time)  # noqa: DTZ001
    except ValueError:
        return None
    return timegm((*date_time, 0, 0, 0)) * 10**9


def _tar_members(tar: tarfile.TarFile, stream: Bounded) -> Iterator[Member]:
    while (info := _next(tar, stream)) is not None:
        kind = _tar_kind(info)
        head = b""
        if kind == "file" and _needs_head(info.name) and (data := tar.extractfile(info)):
            stream.budget = CHUNK
            head = data.read(HEAD_BYTES)
        yield Member(info.name, kind, info.size, _tar_ns(info.mtime), info.offset, None, head)
    # tarfile takes a broken header for the end.
    stream.seek(tar.offset)
    if stream.read(BLOCK).strip(b"\0"):
        raise tarfile.ReadError(f"no header at {tar.offset}")
    stream.budget = CHUNK
    while stream.read(CHUNK):
        stream.budget = CHUNK


def _next(tar: tarfile.TarFile, stream: Bounded) -> tarfile.TarInfo | None:
    stream.budget = HEADER_BYTES
    info = tar.next()
    # tarfile would go backwards, and round and round.
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
    """The path of a member below its archive; null if its name may lead anywhere else, or nowhere."""
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:|.*[\\\0]", name, re.DOTALL):
        return None
    if len(name.encode("utf-8", "surrogateescape")) > NAME_BYTES or len(parts) > DEEPEST:
        return None
    return "/".join(parts)


def harmless(name: str) -> str:
    r"""Something to show of a name that is not safe.

    >>> harmless("C:\\..\\x\0.py")
    '(unsafe)/C%3a/x%00.py'
    """
    parts = [part for part in re.split(r"[/\\]", name[-SHOWN_CHARS:]) if part not in {"", ".", ".."}]
    kept = "/".join(parts[-DEEPEST + 1 :]) or "unnamed"
    return f"{UNSAFE}/" + re.sub(r"[\0-\x1f\x7f:\\]", lambda found: f"%{ord(found[0]):02x}", shown(kept))


# A member and its path below the root; null if that is not safe.
_Named = tuple[Member, str | None]


def _named(members: Sequence[Member], kind: str) -> list[_Named]:
    """The members with their paths, without the top folder of an sdist."""
    named = [(member, safe_path(member.name)) for member in members]
    files = {path for member, path in named if member.kind != "folder"}
    tops = {None if path is None else path.partition("/")[0] for _, path in named if path != ""}
    top = tops.pop() if len(tops) == 1 else None
    if kind == "zip" or top is None or top in files or f"{top}/PKG-INFO" not in files:
        return named
    return [(member, (path or "")[len(top) + 1 :]) for member, path in named]


class _Tree:
    """The folders of an archive, as far as its members tell of them."""

    def __init__(self, options: ExtractOptions) -> None:
        self.selection = Selection(options)
        self.max_size = options.max_file_size
        # By path: why it is not entered, or null; whether the include patterns want it.
        self.folders: dict[str, tuple[SkippedReason | None, bool]] = {"": (None, False)}
        self.environments: set[str] = set()
        self.found: dict[str, Entry] = {}

    def entries(self, named: Sequence[_Named]) -> list[Entry]:
        self.environments = {home for _, path in named if path for home in _homes(path)}
        unsafe = []
        for member, path in named:
            if path is None or (path == "" and member.kind != "folder"):
                location = portable(member.name)
                unsafe.append(Entry(harmless(member.name), location, None, None, False, "unsafe_path"))
            elif path and ".dist-info/" not in path:
                self.add(member, path)
        return [*self.found.values(), *unsafe]

    def add(self, member: Member, path: str) -> None:
        reason, included = self.folder(path if member.kind == "folder" else path.rpartition("/")[0])
        if reason is not None or member.kind == "folder":
            return
        entry = Entry(shown(path), portable(member.name), None, None, False, None, member.position)
        if member.kind != "file":
            reason = "symlink" if member.kind == "link" else "not_a_file"
            self.found[path] = replace(entry, skipped_reason=reason)
        elif may_be_python(path.rpartition("/")[2]):
            self.found[path] = replace(
                entry,
                size_bytes=member.size,
                mtime_ns=member.mtime_ns,
                is_stub=path.lower().endswith(STUB),
                skipped_reason=self.selection.file(path, included) or self.reason(member),
            )

    def folder(self, path: str) -> tuple[SkippedReason | None, bool]:
        """What is known of a folder; the first time it is met, that of each folder on the way."""
        if path in self.folders:
            return self.folders[path]
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            here = "/".join(parts[:count])
            reason, included = self.folders["/".join(parts[: count - 1])]
            if here not in self.folders and reason is None:
                reason = "virtual_environment" if here in self.environments else self.selection.folder(here)
                included = self.selection.included(here, True, included)
                if reason is not None:
                    self.found[here] = Entry(shown(here), portable(here), None, None, False, reason)
            self.folders.setdefault(here, (reason, included))
        return self.folders[path]

    def reason(self, member: Member) -> SkippedReason | None:
        """Why a file that is wanted is not read."""
        if member.refusal is None and _needs_head(member.name) and not is_python_script(member.head):
            return "not_python"
        return member.refusal or ("too_large" if member.size > self.max_size else None)


def _homes(path: str) -> Iterator[str]:
    """The virtual environments, but for the root, that a path shows to be there."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)) if parts[count] in ENVIRONMENT)
