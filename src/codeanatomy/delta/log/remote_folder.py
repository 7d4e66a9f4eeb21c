"""The folder of a table in an object store, with a bounded cache of its files on this machine.

    folder = RemoteFolder("s3a://bucket/lake/graph/cpg_nodes")
    folder.local_path("part-0e6f.zstd.parquet")      # <cache>/files/<hash of the URI>/part-0e6f.zstd.parquet
    folder.create("_delta_log/00..07.json", entry)   # a conditional put: False if the object exists

Data files and deletion vectors have names that are used once, so a fetched file is current for ever. A table
that was deleted and created again has log entries and checkpoints of the same names: copies of these are kept
with the tag that the store gives to their content, and used if a listing shows this tag. So the log of a
table is read by one request, which lists it, and one more for each entry that is new to this machine:

    folder.list_files("_delta_log")                  # LIST
    folder.read("_delta_log/00..07.json")            # no request: a copy has the tag of the listing
    folder.known_files("_delta_log")                 # no request: the same listing again

If the cache grows beyond CACHE_BYTES, the files that were used longest ago are deleted.

New files are written below `new_files`, by processes that may not use the network (a fork cannot use
obstore), and uploaded by `publish`; then they are in the cache already.

Tests: `tests/unit/delta/test_folder.py`, `tests/system/test_object_store.py`.
"""

from __future__ import annotations

import hashlib
import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec import structs
from obstore.exceptions import AlreadyExistsError

from codeanatomy.delta.log.folder import Opened, StoredFile
from codeanatomy.delta.object_store import ENDPOINT, object_store, storage_errors, whole_listing
from codeanatomy.delta.store_policy import policy_for
from codeanatomy.errors import EnvironmentProblem, StorageFailure
from codeanatomy.spark.jars import cache_folder

if TYPE_CHECKING:
    from obstore.store import ObjectStore

GB = 1024**3
CACHE_BYTES = 8 * GB
# The cache is measured after so many fetched bytes.
MEASURED_BYTES = GB // 4
# Files used within these seconds are not deleted.
RECENT_SECONDS = 900
# New files that were not uploaded within these seconds are of a build that died.
ABANDONED_SECONDS = 86_400
# Parallel transfers.
TRANSFERS = 16
# Hex digits of the hash of a URI.
DIGITS = 24
# More files than this are looked up by a listing, which has 1,000 names in an answer.
MAX_HEADS = 4
# Objects of a lake that are listed at once; of a lake with more, each table is listed.
MAX_LISTED = 10_000


class LakeListing:
    """The objects of a lake, listed when the first table is looked up; nothing for a lake with too many."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self._files: list[StoredFile] | None = None
        self._is_usable = True

    def below(self, location: str) -> list[StoredFile] | None:
        """Return the objects of a table; None if they must be listed."""
        if not location.startswith(f"{self.root}/"):
            return None
        if self._is_usable and self._files is None:
            self._files = self._list()
        if not self._is_usable or self._files is None:
            return None
        prefix = f"{location.removeprefix(f'{self.root}/')}/"
        start = bisect_left(self._files, prefix, key=_name)
        # The character after the slash.
        end = bisect_left(self._files, f"{prefix[:-1]}0", key=_name)
        return [_renamed(file, file.name[len(prefix) :]) for file in self._files[start:end]]

    def _list(self) -> list[StoredFile] | None:
        def list_objects() -> list[StoredFile]:
            files: list[StoredFile] = []
            for batch in object_store(self.root).list():
                files += map(_stored_file, batch)
                if len(files) > MAX_LISTED:
                    break
            return files

        with storage_errors(self.root):
            files = whole_listing(list_objects)
        if len(files) > MAX_LISTED:
            self._is_usable = False
            return None
        return sorted(files, key=_name)

    def forget(self) -> None:
        """List each table from now on: an object was written or deleted."""
        self._is_usable = False


_SHARED: ContextVar[LakeListing | None] = ContextVar("codeanatomy_lake_listing", default=None)


@contextmanager
def shared_listing(root: str) -> Iterator[None]:
    """Use one listing of a lake for all its tables in this block."""
    token = _SHARED.set(LakeListing(root))
    try:
        yield
    finally:
        _SHARED.reset(token)


class RemoteFolder:
    """A folder of an object store."""

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        # The same URI may be of another server. Credentials may change.
        options = policy_for(self.location).options_for(self.location)
        place = f"{self.location} {options.get(ENDPOINT, '')}"
        digest = hashlib.sha256(place.encode()).hexdigest()[:DIGITS]
        self._cache = cache_folder() / "files" / digest
        self._unmeasured = MEASURED_BYTES
        # By path, as listed or written last.
        self._known: dict[str, StoredFile] = {}
        # By folder: the last listing, and when it was made (`Opened.count`).
        self._listed: dict[str, tuple[int, list[StoredFile]]] = {}

    @property
    def _store(self) -> ObjectStore:
        return object_store(self.location)

    def list_files(self, below: str) -> list[StoredFile]:
        """List objects with a common prefix, up to the next slash."""
        prefix, opened = f"{below}/", Opened.count
        files = self._shared()
        if files is None:
            with storage_errors(self.location):
                listing = whole_listing(lambda: self._store.list_with_delimiter(prefix))
            files = [*map(_stored_file, listing["objects"])]
        else:
            files = [file for file in files if file.name.startswith(prefix)]
        present = {file.name: file for file in files}
        # A table that was created again may have fewer entries than before.
        for path in tuple(self._known):
            if path not in present and path.rpartition("/")[0] == below:
                self._known.pop(path, None)
        self._known |= present
        listed = [_renamed(file, name) for file in files if "/" not in (name := file.name[len(prefix) :])]
        self._listed[below] = opened, listed
        return listed

    def known_files(self, below: str) -> list[StoredFile]:
        """Return the last listing of this process."""
        opened, files = self._listed.get(below, (-1, []))
        return files if opened == Opened.count else self.list_files(below)

    def list_tree(self) -> Iterator[StoredFile]:
        """List all objects below the folder."""
        files = self._shared()
        if files is not None:
            yield from files
            return
        with storage_errors(self.location):
            batches = whole_listing(lambda: list(self._store.list()))
        for batch in batches:
            yield from map(_stored_file, batch)

    def _shared(self) -> list[StoredFile] | None:
        """Return the objects of this folder from the listing of the lake, if there is one."""
        shared = _SHARED.get()
        return None if shared is None else shared.below(self.location)

    def missing(self, paths: Sequence[str]) -> list[str]:
        """List the objects; ask for the head of each if they are few."""
        if len(paths) <= MAX_HEADS and self._shared() is None:
            with ThreadPoolExecutor(MAX_HEADS) as pool:
                return [
                    path
                    for path, there in zip(paths, pool.map(self._exists, paths), strict=True)
                    if not there
                ]
        present = {file.name for file in self.list_tree()}
        return [path for path in paths if path not in present]

    def damaged(self, paths: Sequence[str]) -> list[str]:
        """Return the missing ones: a store has an object as a whole or not at all."""
        return self.missing(paths)

    def _exists(self, path: str) -> bool:
        with storage_errors(self.location), suppress(FileNotFoundError):
            self._store.head(path)
            return True
        return False

    def modified_ms(self, path: str) -> int:
        """Look the file up in the last listing, or in a new one."""
        below, _, name = path.rpartition("/")
        for listing in (self.known_files, self.list_files):
            for file in listing(below):
                if file.name == name:
                    return file.modified_ms
        return 0

    def read(self, path: str) -> bytes:
        """Return the content of a copy that has the tag and size of the object, or get the object."""
        known = self._known.get(path)
        copy = None if known is None or not known.tag else self._copy(path, known.tag)
        if known is not None and copy is not None and _use(copy, known.size_bytes):
            # Another process may delete it.
            with suppress(FileNotFoundError):
                return copy.read_bytes()
        try:
            with storage_errors(self.location):
                answer = self._store.get(path)
                content, tag = bytes(answer.bytes()), answer.meta["e_tag"]
        except FileNotFoundError:
            # Without the cause: it has the answer of the server.
            raise FileNotFoundError(f"{self.location}/{path} does not exist") from None
        self._keep(path, tag, content)
        return content

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        """Get objects at the same time."""
        if len(paths) < 2:
            return [self.read(path) for path in paths]
        with ThreadPoolExecutor(min(len(paths), TRANSFERS)) as pool:
            return list(pool.map(self.read, paths))

    def _copy(self, path: str, tag: str) -> Path:
        """Return where the copy of an object with this tag is."""
        return self._cache / f"{path}.{hashlib.sha256(tag.encode()).hexdigest()[:DIGITS]}"

    def _keep(self, path: str, tag: str | None, content: bytes) -> None:
        """Keep a copy of an object; without one it is read again."""
        if not tag:
            return
        self._known[path] = StoredFile(path, len(content), 0, tag)
        copy = self._copy(path, tag)
        temporary = copy.with_name(f".{copy.name}.{uuid4()}.tmp")
        with suppress(OSError):
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.write_bytes(content)
                temporary.replace(copy)
            finally:
                temporary.unlink(missing_ok=True)

    def create(self, path: str, content: bytes) -> bool:
        """Put an object if there is none of that name.

        A request may be repeated after the first has created the object: then the content is this one.
        """
        self._forget(path)
        with storage_errors(self.location):
            try:
                answer = self._store.put(path, content, mode="create")
            except AlreadyExistsError:
                return self.read(path) == content
        self._keep(path, answer["e_tag"], content)
        return True

    def _forget(self, path: str) -> None:
        """Forget what was listed of an object that is about to be written or deleted."""
        self._known.pop(path, None)
        shared = _SHARED.get()
        if shared is not None:
            shared.forget()

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, many by one request where the store has that, and their copies on this machine."""
        waiting = list(paths)
        for path in waiting:
            self._forget(path)
            for copy in (self._cache / path, Path(self.new_files, path)):
                copy.unlink(missing_ok=True)
        if not waiting:
            return
        with storage_errors(self.location):
            try:
                self._store.delete(waiting)
            except FileNotFoundError:
                # Only some stores report it, and may not have deleted the others.
                for path in waiting:
                    with suppress(FileNotFoundError):
                        self._store.delete(path)

    def local_path(self, path: str, tag: str = "", least: int = 0) -> str:
        """Return the path of the cached copy, which is fetched if it is missing or incomplete."""
        copy = self._copy(path, tag) if tag else self._cache / path
        if not _use(copy, least=least):
            self._limit(self._fetch(path, copy))
        return str(copy)

    def local_paths(self, paths: Sequence[str], sizes: Sequence[int] | None = None) -> list[str]:
        """Return the paths of cached copies; those that are missing are fetched at the same time."""
        copies = [self._cache / path for path in paths]
        known: Sequence[int | None] = sizes or [None] * len(paths)
        missing = [
            (path, copy)
            for path, copy, size in zip(paths, copies, known, strict=True)
            if not _use(copy, size)
        ]
        if missing:
            with ThreadPoolExecutor(TRANSFERS) as pool:
                fetched = list(pool.map(lambda each: self._fetch(*each), missing))
            self._limit(sum(fetched))
        return [str(copy) for copy in copies]

    def _fetch(self, path: str, copy: Path) -> int:
        """Fetch an object into the cache, and return its size; no reader sees a partial copy."""
        copy.parent.mkdir(parents=True, exist_ok=True)
        temporary = copy.with_name(f".{copy.name}.{uuid4()}.tmp")
        size = 0
        try:
            with storage_errors(self.location), temporary.open("wb") as file:
                for chunk in self._store.get(path):
                    size += file.write(chunk)
            temporary.replace(copy)
        except FileNotFoundError:
            # Without the cause: it has the answer of the server.
            raise StorageFailure(
                f"{self.location}/{path} does not exist",
                "run the command again; if it stays missing, restore it from a backup or build again",
            ) from None
        except OSError as problem:
            # Not a problem of the lake, as which callers explain an OSError.
            raise EnvironmentProblem(
                f"{copy.name} cannot be written to the cache in {copy.parent}: {problem.strerror}",
                "free disk space, or set CODEANATOMY_CACHE to another folder",
            ) from problem
        finally:
            temporary.unlink(missing_ok=True)
        return size

    def _limit(self, fetched: int) -> None:
        """Delete the files that were used longest ago if all lakes have too many.

        Files that were used a short time ago stay: other tables of a statement, and other processes, may be
        about to open them.
        """
        self._unmeasured += fetched
        if self._unmeasured < MEASURED_BYTES:
            return
        self._unmeasured, now = 0, time.time()
        files: list[tuple[float, int, Path]] = []
        for folder, _, names in os.walk(self._cache.parent):
            # New files are in `new` until they are uploaded; those of a build that died stay there.
            is_new = Path(folder).relative_to(self._cache.parent).parts[1:2] == ("new",)
            for path in (Path(folder, name) for name in names):
                # Another process may have deleted it.
                with suppress(FileNotFoundError):
                    info = path.stat()
                    if not is_new:
                        files.append((info.st_mtime, info.st_size, path))
                    elif now - info.st_mtime > ABANDONED_SECONDS:
                        path.unlink()
        total = sum(size for _, size, _ in files)
        for used, size, path in sorted(files):
            if total <= CACHE_BYTES or now - used < RECENT_SECONDS:
                return
            path.unlink(missing_ok=True)
            total -= size

    @property
    def local_root(self) -> str:
        """Return the cache of this folder."""
        return str(self._cache)

    @property
    def new_files(self) -> str:
        """Return the folder of new files on this machine."""
        return str(self._cache / "new")

    def publish(self, paths: Iterable[str]) -> None:
        """Upload new files at the same time; files that are not on this machine were uploaded elsewhere.

        Raise StorageFailure if one is nowhere: no commit may name it.
        """
        waiting, others = list[str](), list[str]()
        for path in paths:
            if Path(self.new_files, path).exists():
                waiting.append(path)
            elif not (self._cache / path).exists():
                others.append(path)
        if others and (missing := self.missing(others)):
            raise StorageFailure(
                f"{missing[0]} of {self.location} was deleted from {self.new_files} before it was uploaded",
                "run the command again, and delete nothing from the cache while it runs",
            )
        for path in waiting:
            self._forget(path)
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._upload, waiting))

    def _upload(self, path: str) -> None:
        new, copy = Path(self.new_files, path), self._cache / path
        with storage_errors(self.location):
            self._store.put(path, new)
        copy.parent.mkdir(parents=True, exist_ok=True)
        new.replace(copy)


def _use(copy: Path, size: int | None = None, least: int = 0) -> bool:
    """Record the use of a cached file, and return whether it is there and has its size, or the least one.

    Another process may have deleted it.
    """
    try:
        os.utime(copy)
        stored = copy.stat().st_size
    except FileNotFoundError:
        return False
    return stored >= least if size is None else stored == size


def _stored_file(listed: Any) -> StoredFile:
    """Describe an object of a listing, whose type obstore declares in its stubs only."""
    modified: datetime = listed["last_modified"]
    return StoredFile(listed["path"], listed["size"], int(modified.timestamp() * 1000), listed["e_tag"] or "")


def _renamed(file: StoredFile, name: str) -> StoredFile:
    return structs.replace(file, name=name)


def _name(file: StoredFile) -> str:
    return file.name
