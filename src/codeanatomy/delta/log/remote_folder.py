"""The folder of a table in an object store, with a bounded cache of its files on this machine.

    folder = RemoteFolder("s3a://bucket/lake/graph/cpg_nodes")
    folder.local_path("part-0e6f.zstd.parquet")      # <cache>/files/<hash of the URI>/part-0e6f.zstd.parquet
    folder.create("_delta_log/00..07.json", entry)   # a conditional put: False if the object exists

Data files and deletion vectors have names that are used once, so a fetched file is current for ever. A table
that was deleted and created again has log entries and checkpoints of the same names: entries are not cached,
and checkpoints with the tag that the store gives to their content.
If the cache grows beyond CACHE_BYTES, the files that were used longest ago are deleted.

New files are written below `new_files`, by processes that may not use the network (a fork cannot use
obstore), and uploaded by `publish`; then they are in the cache already.

Tests: `tests/unit/delta/test_folder.py`, `tests/system/test_object_store.py`.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from obstore.exceptions import AlreadyExistsError

from codeanatomy.delta.log.folder import StoredFile
from codeanatomy.delta.object_store import ENDPOINT, object_store, storage_errors
from codeanatomy.delta.store_policy import policy_for
from codeanatomy.errors import StorageFailure
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


class RemoteFolder:
    """A folder of an object store."""

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        # The same URI may be of another server. Credentials may change.
        options = policy_for(self.location).for_deltalake(self.location)
        place = f"{self.location} {options.get(ENDPOINT, '')}"
        digest = hashlib.sha256(place.encode()).hexdigest()[:DIGITS]
        self._cache = cache_folder() / "files" / digest
        self._unmeasured = MEASURED_BYTES

    @property
    def _store(self) -> ObjectStore:
        return object_store(self.location)

    def list_files(self, below: str) -> list[StoredFile]:
        """List objects with a common prefix, up to the next slash."""
        with storage_errors(self.location):
            listed = self._store.list_with_delimiter(f"{below}/")["objects"]
        return [
            StoredFile(
                each["path"].rpartition("/")[2],
                each["size"],
                _milliseconds(each["last_modified"]),
                each["e_tag"] or "",
            )
            for each in listed
        ]

    def list_tree(self) -> Iterator[StoredFile]:
        """List all objects below the folder."""
        with storage_errors(self.location):
            for batch in self._store.list():
                for each in batch:
                    modified = _milliseconds(each["last_modified"])
                    yield StoredFile(each["path"], each["size"], modified, each["e_tag"] or "")

    def read(self, path: str) -> bytes:
        """Get an object."""
        try:
            with storage_errors(self.location):
                return bytes(self._store.get(path).bytes())
        except FileNotFoundError:
            # Without the cause: it has the answer of the server.
            raise FileNotFoundError(f"{self.location}/{path} does not exist") from None

    def create(self, path: str, content: bytes) -> bool:
        """Put an object if there is none of that name.

        A request may be repeated after the first has created the object: then the content is this one.
        """
        with storage_errors(self.location):
            try:
                self._store.put(path, content, mode="create")
            except AlreadyExistsError:
                return self.read(path) == content
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects at the same time, and their copies on this machine."""
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._delete, paths))

    def _delete(self, path: str) -> None:
        for copy in (self._cache / path, Path(self.new_files, path)):
            copy.unlink(missing_ok=True)
        with storage_errors(self.location), suppress(FileNotFoundError):
            self._store.delete(path)

    def stat(self, path: str) -> StoredFile | None:
        """Ask the store for the head of an object."""
        with storage_errors(self.location):
            try:
                head = self._store.head(path)
            except FileNotFoundError:
                return None
        return StoredFile(path, head["size"], _milliseconds(head["last_modified"]), head["e_tag"] or "")

    def local_path(self, path: str, tag: str = "") -> str:
        """Return the path of the cached copy, which is fetched if it is missing."""
        if not tag:
            return self.local_paths([path])[0]
        copy = self._cache / f"{path}.{hashlib.sha256(tag.encode()).hexdigest()[:DIGITS]}"
        if not _use(copy):
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
        """Upload new files at the same time; files that are not on this machine were uploaded elsewhere."""
        waiting = [path for path in paths if Path(self.new_files, path).exists()]
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._upload, waiting))

    def _upload(self, path: str) -> None:
        new, copy = Path(self.new_files, path), self._cache / path
        with storage_errors(self.location):
            self._store.put(path, new)
        copy.parent.mkdir(parents=True, exist_ok=True)
        new.replace(copy)


def _use(copy: Path, size: int | None = None) -> bool:
    """Record the use of a cached file, and return whether it is there and has its size.

    Another process may have deleted it.
    """
    try:
        os.utime(copy)
        return size is None or copy.stat().st_size == size
    except FileNotFoundError:
        return False


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
