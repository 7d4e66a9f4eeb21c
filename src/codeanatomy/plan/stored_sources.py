"""List sources in object stores, and fetch their files into a cache of this machine.

    register_sources(["s3a://bucket/src/requests"], settings.runtime)      # credentials and endpoint
    listing = list_stored("s3a://bucket/src/requests", options)            # its files are copied on the way
    listing.kind, listing.root                                             # copies, <cache>/sources/5b1e...

    work = StoredSources(policy, {"requests": "s3a://bucket/src/requests"})
    work.fetch("requests", listing.kind, listing.root, entries)            # on an executor: the root there

A URI with objects below it is a folder; otherwise it has to be an archive, which is opened like a local one.
A copy has a name that depends on the object's key, size and entity tag (`sources.stored_objects`): one that
exists is never fetched again, so a refresh fetches changed files only. The process of the command fetches all
files that are to be read, because their digests decide what is done; local processes, which may not use the
network (a fork cannot use obstore), find them in the cache. An executor on another host fetches the files of
its tasks there, with the options that travel with the work.

If there are more than CACHE_BYTES of copies, those used longest ago are deleted, but none that was used
within KEPT_SECONDS: a run may still need it. An object that is deleted or replaced after it was listed has no
copy, and its file is recorded as vanished.

Tests: `tests/unit/plan/test_stored_sources.py`, `tests/system/test_remote_sources.py`.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.lake_tables import normalize_root
from codeanatomy.delta.store_policy import StorePolicy, is_local, register_policy
from codeanatomy.errors import UsageError
from codeanatomy.sources.archives import list_archive
from codeanatomy.sources.listing import Entry, Listing, decode_location
from codeanatomy.sources.stored_objects import StoredObject, copy_name, heads_needed, list_objects
from codeanatomy.spark.jars import cache_folder, lock

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

CACHE_BYTES = 4 * 1024**3
KEPT_SECONDS = 24 * 3600
# Parallel requests.
REQUESTS = 16
# Hex digits of the hash of a URI.
DIGITS = 24
HINT = "name a folder or an archive (.whl, .tar.gz, .zip) of the store"


def is_stored(source: Path | str) -> bool:
    """Return whether a source is a URI of an object store; a path may be text, too.

    >>> is_stored("s3a://bucket/src"), is_stored("file:///src"), is_stored("a:b/src"), is_stored(Path("src"))
    (True, False, False, False)
    """
    return isinstance(source, str) and "://" in source and not is_local(source)


def register_sources(sources: Iterable[Path | str], profile: RuntimeProfile) -> None:
    """Use the storage options of a profile for sources in object stores.

    Raise RemotePathRefused if `runtime.require_local_paths` is set, UsageError for credentials in a URI,
    which would be recorded in the lake.
    """
    policy = StorePolicy.from_profile(profile)
    for source in sources:
        if not is_stored(source):
            continue
        uri = normalize_root(str(source), policy.require_local_paths)
        user, _, host = urlsplit(uri).netloc.rpartition("@")
        if ":" in user:
            raise UsageError(
                f"the URI of a source at {urlsplit(uri).scheme}://{host} contains credentials",
                "remove them, and set them in runtime.storage_options",
            )
        register_policy(uri, policy)


class StoredSources(Struct, frozen=True):
    """URIs of repositories in object stores, and access to them; passed to the processes that read files."""

    policy: StorePolicy = StorePolicy()
    uris: dict[str, str] = {}

    def fetch(self, repo_id: str, kind: str, root: str, entries: Sequence[Entry]) -> str:
        """Fetch missing copies of files into the cache of this machine; return the root to read them from.

        A repository that is not in an object store keeps its root.
        """
        uri = self.uris.get(repo_id)
        if uri is None:
            return root
        register_policy(uri, self.policy)
        if kind == "copies":
            _fetch_files(uri, entries)
            return str(copies_folder(uri))
        copy = copies_folder(uri) / Path(root).name
        _fetch_archive(uri, copy)
        return str(copy)


def list_stored(uri: str, options: ExtractOptions) -> Listing:
    """List the entries of a folder or an archive in an object store, and fetch what is to be read.

    Raise UsageError if there is neither, StorageFailure if the store cannot be used.
    """
    objects = _objects(uri)
    if any(each.key for each in objects):
        heads = _heads(uri, objects)
        listing = list_objects(uri, str(copies_folder(uri)), objects, heads, options)
        _fetch_files(uri, listing.entries)
        return listing
    archive = _archive(uri, options)
    copy = copies_folder(uri) / archive.copy
    if not _fetch_archive(uri, copy):
        raise UsageError(f"{uri} was replaced while it was fetched", "run the command again")
    return list_archive(copy, options, uri)


def copies_folder(uri: str) -> Path:
    """Return the folder with the copies of a source on this machine."""
    digest = hashlib.sha256(uri.rstrip("/").encode("utf-8", "surrogatepass")).hexdigest()
    return cache_folder() / "sources" / digest[:DIGITS]


@contextmanager
def _open_store(uri: str) -> Iterator[ObjectStore]:
    """Yield the store below a URI, with errors that name the URI."""
    # Imported here: most sources are local.
    from codeanatomy.delta.object_store import object_store, storage_errors

    with storage_errors(uri):
        yield object_store(uri)


def _objects(uri: str) -> list[StoredObject]:
    """List all objects below a URI."""
    from obstore.exceptions import InvalidPathError

    with _open_store(uri) as store:
        try:
            return [_described(each["path"], each) for batch in store.list() for each in batch]
        except InvalidPathError:
            # Its text is of several lines, and repeats the key as it is.
            raise UsageError(
                f"an object below {uri} has a name that no file can have, such as one with `..`, an empty"
                " part or a control character",
                "delete or rename it, or name a folder without it",
            ) from None
        except FileNotFoundError:
            return []


def _described(key: str, meta: ObjectMeta) -> StoredObject:
    mtime_ns = (meta["last_modified"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    return StoredObject(key, meta["size"], mtime_ns, meta["e_tag"] or str(mtime_ns))


def _heads(uri: str, objects: Sequence[StoredObject]) -> dict[str, bytes]:
    """Read the first bytes of the objects that decide about entries; without those that do not exist."""
    needed = heads_needed(objects)

    def head(each: StoredObject) -> bytes | None:
        with _open_store(uri) as store, suppress(FileNotFoundError):
            if each.size_bytes:
                return bytes(store.get_range(each.key, start=0, end=min(each.size_bytes, needed[each.key])))
            store.head(each.key)
            return b""
        return None

    wanted = [each for each in objects if each.key in needed]
    with ThreadPoolExecutor(REQUESTS) as pool:
        contents = zip(wanted, pool.map(head, wanted), strict=True)
        return {each.key: content for each, content in contents if content is not None}


def _archive(uri: str, options: ExtractOptions) -> StoredObject:
    """Describe the object of a URI; raise UsageError if there is none, or one too large for an archive."""
    missing = UsageError(f"there is no object at {uri}, and none below it", HINT)
    if not urlsplit(uri).path.strip("/"):
        raise missing
    with _open_store(uri) as store:
        try:
            archive = _described("", store.head(""))
        except FileNotFoundError:
            raise missing from None
    if archive.size_bytes > options.max_archive_size:
        raise UsageError(
            f"{uri} has {archive.size_bytes} bytes, more than extract.max_archive_size",
            "raise extract.max_archive_size if it is an archive that you trust",
        )
    return archive


def _fetch_files(uri: str, entries: Sequence[Entry]) -> None:
    """Fetch the copies of files that are to be read and have none, at the same time."""
    folder = copies_folder(uri)
    missing: dict[Path, str] = {}
    for entry in entries:
        if entry.skipped_reason is None:
            name, _, key = decode_location(entry.location).partition("/")
            if not _use(folder / name, entry.size_bytes):
                missing[folder / name] = key
    if missing:
        with ThreadPoolExecutor(REQUESTS) as pool:
            list(pool.map(lambda each: _fetch(uri, each[1], each[0]), missing.items()))
        _limit_copies()


def _fetch_archive(uri: str, copy: Path) -> bool:
    """Fetch an archive unless it has a copy; return whether it has one now."""
    if _use(copy):
        return True
    copy.parent.mkdir(parents=True, exist_ok=True)
    # Several tasks of a host may need it at the same time.
    with lock(copy.parent):
        if not _use(copy):
            _fetch(uri, "", copy)
            _limit_copies()
    return copy.exists()


def _use(copy: Path, size_bytes: int | None = None) -> bool:
    """Return whether there is a copy, of this size; note that it was used."""
    try:
        if size_bytes not in (None, copy.stat().st_size):
            return False
        os.utime(copy)
    except FileNotFoundError:
        return False
    return True


def _fetch(uri: str, key: str, copy: Path) -> None:
    """Fetch an object, if it is still the one that the copy is named for; no reader sees a partial copy."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    temporary = copy.with_name(f".{copy.name}.{uuid4()}.tmp")
    try:
        with _open_store(uri) as store:
            try:
                result = store.get(key)
            except FileNotFoundError:
                return
            stored = _described(key, result.meta)
            if copy_name(key, stored.size_bytes, stored.tag) == copy.name:
                with temporary.open("wb") as file:
                    file.writelines(result)
                temporary.replace(copy)
    finally:
        temporary.unlink(missing_ok=True)


def _limit_copies() -> None:
    """Delete the copies that were used longest ago if there are too many."""
    copies = []
    for folder, _, names in os.walk(cache_folder() / "sources"):
        for path in (Path(folder, name) for name in names):
            # Another process may have deleted it.
            with suppress(FileNotFoundError):
                info = path.stat()
                copies.append((info.st_mtime, info.st_size, path))
    total, oldest = sum(size for _, size, _ in copies), time.time() - KEPT_SECONDS
    for used, size, path in sorted(copies):
        if total <= CACHE_BYTES or used > oldest:
            return
        path.unlink(missing_ok=True)
        total -= size
