"""The files of a table, in a local folder or in an object store, with the same few operations.

    folder = folder_of("/lake/graph/cpg_nodes")              # or s3a://bucket/lake/graph/cpg_nodes
    folder.list_files("_delta_log")                          # [StoredFile("00..00.json", 812, ...), ...]
    folder.create("_delta_log/00..01.json", entry)           # False if another writer was faster
    folder.local_path("part-0e6f.zstd.parquet")              # a path for DuckDB or PyArrow
    folder.publish(["part-77ab.zstd.parquet"])               # written below folder.new_files before

Files of a table are written once and never change. So those of an object store are fetched at most once, into
a cache folder of this machine (`delta.log.remote_folder`), from which all readers open them.

A request to an object store takes as long as some hundred calls of a file system. Code that looks at many
tables, and writes none, lists the lake once:

    with listed_once("s3a://bucket/lake"):
        newest = {name: list_log(location(lake, name)).newest for name in names}      # one request

Tests: `tests/unit/delta/test_folder.py`, `tests/system/test_object_store.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import Protocol
from uuid import uuid4

from msgspec import Struct

from codeanatomy.delta.store_policy import StorePolicy, is_local, path_of, register_policy

PARQUET_MAGIC = b"PAR1"


class StoredFile(Struct, frozen=True):
    """A file of a table's folder."""

    # Relative to the listed folder.
    name: str
    size_bytes: int
    modified_ms: int
    # Differs for another content; empty for a local file.
    tag: str = ""


class Folder(Protocol):
    """The folder of a table; paths are relative to it."""

    location: str

    def list_files(self, below: str) -> list[StoredFile]:
        """List the files in a folder below, not those in its own folders; none if it does not exist."""

    def known_files(self, below: str) -> list[StoredFile]:
        """List files as `list_files` does, or return what it listed last: newer files may be missing.

        Listings before the last `forget_listings` are not used.
        """

    def list_tree(self) -> Iterator[StoredFile]:
        """List all files of the folder and of the folders below; no links."""

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return those of the files that do not exist."""

    def damaged(self, paths: Sequence[str]) -> list[str]:
        """Return those of the files that do not exist, or of which the begin or the end is lost."""

    def modified_ms(self, path: str) -> int:
        """Return when a file was written, which never changes; 0 if there is none."""

    def read(self, path: str) -> bytes:
        """Read a file. Raise FileNotFoundError if there is none."""

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        """Read several files, at the same time where that is faster."""

    def create(self, path: str, content: bytes) -> bool:
        """Write a file if there is none of that name, and return whether it was written."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files, as far as they exist."""

    def local_path(self, path: str, tag: str = "", least: int = 0) -> str:
        """Return a path of this machine for a file that never changes, or has a tag for its content.

        A copy with fewer bytes than `least` is not used.
        """

    def local_paths(self, paths: Sequence[str], sizes: Sequence[int] | None = None) -> list[str]:
        """Return the paths of this machine for several files; a copy of another size is not used."""

    @property
    def local_root(self) -> str:
        """Return the folder of this machine that contains all local paths."""

    @property
    def new_files(self) -> str:
        """Return the folder of this machine in which new files are written, at their paths."""

    def publish(self, paths: Iterable[str]) -> None:
        """Make new files, which were written below `new_files`, files of the table's folder."""


class NewFiles(Struct, frozen=True):
    """Where files of a table are written before a commit names them; passed to the processes that do it."""

    # Of the table, or a folder of this machine from which a commit publishes them.
    location: str
    # Access to the object store of the location, for a process that has not opened the lake.
    policy: StorePolicy | None = None

    def open(self) -> Folder:
        """Return the folder."""
        if self.policy is not None:
            register_policy(self.location, self.policy)
        return folder_of(self.location)


def folder_of(location: str) -> Folder:
    """Return the folder of a table, given its path or URI."""
    return LocalFolder(path_of(location)) if is_local(location) else _remote_folder(location)


class Opened:
    """How often a lake was opened in this process; what was listed before is not known any more."""

    count = 0


def forget_listings() -> None:
    """Let `known_files` list again: a lake is opened, which may have been deleted and built anew."""
    Opened.count += 1


@contextmanager
def listed_once(root: str) -> Iterator[None]:
    """List a lake in an object store by one request for all listings of its tables in this block.

    For the thread of the block. What other writers commit after the first listing is not seen, as if all
    tables had been listed at that time.
    """
    if is_local(root):
        yield
        return
    from codeanatomy.delta.log.remote_folder import shared_listing

    with shared_listing(root):
        yield


@cache
def _remote_folder(location: str) -> Folder:
    # Imported here: most lakes are local.
    from codeanatomy.delta.log.remote_folder import RemoteFolder

    return RemoteFolder(location)


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, location: str) -> None:
        # The folder of the process may change.
        self.location = str(Path(location).absolute())

    def list_files(self, below: str) -> list[StoredFile]:
        """List files by the system's directory listing."""
        try:
            with os.scandir(f"{self.location}/{below}") as entries:
                return [file for each in entries if (file := _stored_file(each)) is not None]
        except (FileNotFoundError, ValueError):
            # A path with a null byte is no path.
            return []

    def known_files(self, below: str) -> list[StoredFile]:
        """List the files again, which takes microseconds."""
        return self.list_files(below)

    def list_tree(self) -> Iterator[StoredFile]:
        """Walk through the folders."""
        for folder, _, names in os.walk(self.location):
            for name in names:
                path = Path(folder, name)
                # Files may be deleted meanwhile.
                with suppress(FileNotFoundError):
                    info = path.lstat()
                    if S_ISREG(info.st_mode):
                        relative = str(path.relative_to(self.location))
                        yield StoredFile(relative, info.st_size, info.st_mtime_ns // 1_000_000)

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Ask the file system for each file."""
        return [path for path in paths if not Path(self.location, path).exists()]

    def damaged(self, paths: Sequence[str]) -> list[str]:
        """Look at each file: a Parquet file begins and ends with its magic number."""
        return [path for path in paths if not _is_whole(f"{self.location}/{path}")]

    def modified_ms(self, path: str) -> int:
        """Ask the file system."""
        try:
            return Path(self.location, path).stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0

    def read(self, path: str) -> bytes:
        """Read a file."""
        return Path(self.location, path).read_bytes()

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        """Read one file after another."""
        return [self.read(path) for path in paths]

    def create(self, path: str, content: bytes) -> bool:
        """Write a temporary file and link it to its name, which fails if the name exists.

        No reader sees a partial file.
        """
        target = Path(self.location, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid4()}.tmp")
        try:
            temporary.write_bytes(content)
            os.link(temporary, target)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """Unlink files."""
        for path in paths:
            Path(self.location, path).unlink(missing_ok=True)

    def local_path(self, path: str, tag: str = "", least: int = 0) -> str:
        """Return the file itself."""
        return str(Path(self.location, path))

    def local_paths(self, paths: Sequence[str], sizes: Sequence[int] | None = None) -> list[str]:
        """Return the files themselves."""
        return [f"{self.location}/{path}" for path in paths]

    @property
    def local_root(self) -> str:
        """Return the folder itself."""
        return self.location

    @property
    def new_files(self) -> str:
        """Return the folder itself: readers ignore a file until a commit names it."""
        return self.location

    def publish(self, paths: Iterable[str]) -> None:
        """Do nothing: the files are where they belong."""


def _is_whole(path: str) -> bool:
    """Return whether a file exists and, if it is of Parquet, neither its begin nor its end is lost."""
    if not path.endswith(".parquet"):
        return Path(path).exists()
    try:
        with Path(path).open("rb", buffering=0) as file:
            if file.read(len(PARQUET_MAGIC)) != PARQUET_MAGIC:
                return False
            file.seek(-len(PARQUET_MAGIC), os.SEEK_END)
            return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError:
        return False


def _stored_file(entry: os.DirEntry[str]) -> StoredFile | None:
    """Describe an entry of a folder; None if it is no file, or gone: writers remove their temporary files."""
    try:
        info = entry.stat()
    except FileNotFoundError:
        return None
    return StoredFile(entry.name, info.st_size, info.st_mtime_ns // 1_000_000) if entry.is_file() else None
