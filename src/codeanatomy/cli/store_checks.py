"""Check that the store of a lake can be used, with the settings that all commands use.

`examine_store` returns one `Check` per requirement, always the same ones in the same order for a kind of
store. The error of the first request shows whether endpoint, region, credentials or bucket are wrong; what
follows the wrong one is not checked.

    for check in examine_store("s3a://bucket/lake", settings.runtime):
        print(f"{check.status:5} {check.name:15} {check.detail}", check.next_step and f"-> {check.next_step}")

    ok    jars             3 jars for s3a://
    ok    endpoint         http://127.0.0.1:9000
    ok    region           us-east-1, by default
    fail  credentials      the store does not accept the credentials (InvalidAccessKeyId) -> check fs.s3a...
    skip  bucket           not checked

Of credentials only their source is shown. Commits rely on creating an object only if it does not exist: a
store that overwrites it instead would let two writers both publish.

Tests: `tests/unit/cli/test_store_checks.py`, `tests/system/test_object_store.py`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from uuid import uuid4

from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError

from codeanatomy.cli.doctor import Check
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.lake_tables import normalize_root
from codeanatomy.delta.object_store import classify, object_store
from codeanatomy.delta.store_policy import FAMILIES, StorePolicy, is_local, path_of, register_policy
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.spark.jars import CONNECTOR_OF_SCHEME, CONNECTORS, cache_folder, has_connector

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# In the order in which a store looks at them.
ACCESS: Final = ("endpoint", "region", "credentials", "bucket")
USE: Final = ("list", "write", "conditional put", "read", "delete")
NOT_CHECKED = "not checked"
CONTENT = b"written by codeanatomy doctor"
# Folder of the objects that are written and deleted.
FOLDER = "_doctor"
OVERWRITES = "use a store with conditional writes (If-None-Match), such as S3, a newer MinIO, Azure or Google"


def examine_store(lake: str, profile: RuntimeProfile) -> tuple[Check, ...]:
    """Check the store of a lake. Raise UsageError or RemotePathRefused if the path itself is not valid."""
    policy = StorePolicy.from_profile(profile)
    root = normalize_root(lake, policy.require_local_paths)
    if is_local(root):
        return tuple(_local_checks(Path(path_of(root))))
    register_policy(root, policy)
    options = policy.options_for(root)
    return (_jars(root, profile), *_remote_checks(root, options))


def _jars(root: str, profile: RuntimeProfile) -> Check:
    scheme = urlsplit(root).scheme.lower()
    name = CONNECTOR_OF_SCHEME.get(scheme)
    if name is not None:
        try:
            present = has_connector(cache_folder() / "jars", name)
        except CodeAnatomyError as problem:
            return Check("jars", "fail", problem.message, problem.hint)
        if present:
            return Check("jars", "ok", f"{len(CONNECTORS[name])} jars for {scheme}://")
        return Check("jars", "fail", f"Spark has no jars for {scheme}://", f"codeanatomy setup --with {name}")
    if scheme == "s3":
        return Check("jars", "fail", "Spark does not open s3:// URIs", "write the URI with s3a://")
    given = [key for key in ("spark.jars", "spark.jars.packages") if key in profile.spark]
    if given:
        return Check("jars", "ok", f"those of {' and '.join(given)}, for {scheme}://")
    hint = f"set runtime.spark.spark.jars to the Hadoop connector for {scheme}://"
    return Check("jars", "warn", f"Spark has no jars for {scheme}://: commands without Spark work", hint)


def _remote_checks(root: str, options: Mapping[str, str]) -> Iterator[Check]:
    names: list[str] = []
    failed: Check | None = None
    try:
        store = object_store(root)
        names = [each["path"] for each in next(iter(store.list(chunk_size=10)), ())]
    except CodeAnatomyError as problem:
        about = "endpoint" if "endpoint" in problem.message else "credentials"
        failed = Check(about, "fail", problem.message.removeprefix(f"{root}: "), problem.hint)
    except (BaseError, OSError) as problem:
        error = classify(root, problem)
        failed = Check(error.about if error.about in ACCESS else "list", "fail", error.message, error.hint)
    details = _access_details(root, options)
    reached = ACCESS.index(failed.name) if failed and failed.name in ACCESS else len(ACCESS)
    yield from (Check(name, "ok", details[name]) for name in ACCESS[:reached])
    if failed and reached < len(ACCESS):
        yield failed
        yield from (Check(name, "skip", NOT_CHECKED) for name in (*ACCESS[reached + 1 :], *USE))
        return
    yield failed or Check("list", "ok", "objects are there" if names else "nothing is there yet")
    yield from _StoreUse(root, store, names).checks()


def _access_details(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return what is configured, without values that are secret."""
    parts = urlsplit(root)
    family = FAMILIES.get(parts.scheme.lower(), "")
    container, _, account = parts.netloc.rpartition("@")
    if family != "fs.s3a.":
        return {
            "endpoint": account if container else "the default of the store",
            "region": "that of the bucket",
            "credentials": "from the settings" if _has_secret(options) else "those of this machine",
            "bucket": container or account,
        }
    env = os.environ
    region = options.get("aws_region") or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")
    if "aws_access_key_id" in options:
        source = "fs.s3a.access.key in the settings"
    elif "AWS_ACCESS_KEY_ID" in env:
        source = "AWS_ACCESS_KEY_ID in the environment"
    else:
        source = "those of this machine or its role"
    endpoint = options.get("aws_endpoint_url") or env.get("AWS_ENDPOINT_URL")
    return {
        "endpoint": _without_user(endpoint) if endpoint else "that of AWS",
        "region": region or "us-east-1, by default",
        "credentials": source,
        "bucket": parts.netloc,
    }


def _has_secret(options: Mapping[str, str]) -> bool:
    return any(name.endswith(("_key", "_secret", "service_account")) for name in options)


def _without_user(endpoint: str) -> str:
    """Return a URL without the part that may be a password."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class _StoreUse:
    """Write, create, read and delete two objects of a store."""

    def __init__(self, root: str, store: ObjectStore, listed: list[str]) -> None:
        self._root = root
        self._store = store
        self._listed = listed
        self._name = f"{FOLDER}/{uuid4().hex}"
        self._created = f"{self._name}-created"
        self._written: list[str] = []

    def checks(self) -> Iterator[Check]:
        """Run the checks; all objects are deleted even if one fails."""
        yield self._run("write", self._write)
        if self._written:
            yield self._run("conditional put", self._create)
            yield self._run("read", self._read)
            yield self._run("delete", self._delete)
            return
        yield Check("conditional put", "skip", NOT_CHECKED)
        if self._listed:
            yield self._run("read", self._read_listed)
        else:
            yield Check("read", "skip", "nothing to read")
        yield Check("delete", "skip", NOT_CHECKED)

    def _run(self, name: str, check: Callable[[], Check]) -> Check:
        try:
            return check()
        except (BaseError, OSError) as problem:
            error = classify(self._root, problem)
            left = f"; {FOLDER}/ is left in the lake" if name == "delete" else ""
            return Check(name, "fail", error.message + left, error.hint)

    def _write(self) -> Check:
        self._store.put(self._name, CONTENT)
        self._written.append(self._name)
        return Check("write", "ok", f"an object below {FOLDER}/")

    def _create(self) -> Check:
        try:
            self._store.put(self._created, CONTENT, mode="create")
            self._written.append(self._created)
            self._store.put(self._name, b"again", mode="create")
        except (AlreadyExistsError, PreconditionError):
            return Check("conditional put", "ok", "an object is created only if it does not exist")
        except NotSupportedError:
            return Check("conditional put", "fail", "the store has no conditional writes", OVERWRITES)
        return Check("conditional put", "fail", "the store overwrites an object that exists", OVERWRITES)

    def _read(self) -> Check:
        size = len(self._store.get(self._name).bytes())
        return Check("read", "ok", f"{size} bytes")

    def _read_listed(self) -> Check:
        size = len(self._store.get_range(self._listed[0], start=0, length=1))
        return Check("read", "ok", f"{size} byte of an object")

    def _delete(self) -> Check:
        self._store.delete(self._written)
        return Check("delete", "ok", "what was written")


def _local_checks(folder: Path) -> Iterator[Check]:
    """Check a folder of this machine, or, if it does not exist, the one in which it would be created."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    note = str(folder) if place == folder else f"{folder} does not exist yet; {place} does"
    if not place.is_dir():
        yield Check("folder", "fail", f"{place} is a file", "choose another folder for the lake")
        yield from (Check(name, "skip", NOT_CHECKED) for name in USE)
        return
    yield Check("folder", "ok", note)
    yield _local("list", lambda: f"{sum(1 for _ in os.scandir(place))} entries", f"permit to read {place}")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{FOLDER}-", dir=place)
    except OSError as problem:
        hint = f"permit to write to {place}, or choose another folder"
        yield Check("write", "fail", problem.strerror or str(problem), hint)
        yield from (Check(each, "skip", NOT_CHECKED) for each in USE[2:])
        return
    path, linked = Path(name), Path(f"{name}-created")
    with os.fdopen(handle, "wb") as file:
        file.write(CONTENT)
    yield Check("write", "ok", "a file in the folder")
    twice = "use a file system with hard links, which commits need"
    yield from (
        _local("conditional put", lambda: _create_twice(path, linked), twice),
        _local("read", lambda: f"{len(path.read_bytes())} bytes", f"permit to read {place}"),
        _local("delete", lambda: _delete_files(path, linked), f"permit to delete in {place}"),
    )


def _delete_files(*paths: Path) -> str:
    for path in paths:
        path.unlink(missing_ok=True)
    return "what was written"


def _create_twice(path: Path, linked: Path) -> str:
    os.link(path, linked)
    with suppress(FileExistsError):
        os.link(path, linked)
        raise OSError("the file system overwrites a file that exists")
    return "a file is created only if it does not exist"


def _local(name: str, check: Callable[[], str], hint: str) -> Check:
    try:
        return Check(name, "ok", check())
    except OSError as problem:
        return Check(name, "fail", problem.strerror or str(problem), hint)
