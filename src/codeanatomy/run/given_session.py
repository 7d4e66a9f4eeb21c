"""Build in a caller's session: check what it lacks, and leave it as it is.

    session = GivenSession(spark, request)
    build(request, progress, session)           # session.start() checks it before anything is written
    session.facts                               # SessionFacts(kind="connect", spark_version="4.2.0", ...)
    session.close()                             # ends our session beside it; the caller's goes on

The build runs in a session of its own on the same Spark, so settings, temporary views and cached tables of
the caller's neither change nor matter: `newSession` of a classic session, `cloneSession` of one of Spark
Connect, whose workers get the code of codeanatomy as an artifact of that session. Only the public interface
of Spark is used. One job compares the executors with this machine (`spark.executors`); it also has them list
local sources, write a file into the folder of a local lake, and look at the store of a remote one, because
executors read and write these themselves.

| what the session lacks | found by |
|---|---|
| Delta; versions that were tested | its settings; a function of Delta's, called by SQL |
| Python, PyArrow, packages, code as here | the job of `spark.executors` |
| sources and lake at the same paths, access to the store | probes of that job |

Tests: `tests/spark/test_given_session.py`, `tests/spark/test_connect.py`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, cast
from uuid import uuid4

from pyspark.sql import SparkSession

from codeanatomy import __version__
from codeanatomy.delta.object_store import object_store, storage_errors, uses_stores
from codeanatomy.delta.store_policy import StorePolicy, is_local, local_path, register_policy
from codeanatomy.errors import CodeAnatomyError, EnvironmentProblem
from codeanatomy.extract.tools.external_tool import tool_version
from codeanatomy.extract.tools.pyrefly import find_pyrefly
from codeanatomy.lake.engine_facts import EngineFacts, SessionKind
from codeanatomy.pipeline.build_session import SessionFacts
from codeanatomy.pipeline.executors.processes import iterate_in_fork
from codeanatomy.pipeline.tools import scip_command
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.spark.environment import code_digest, pack_code
from codeanatomy.spark.executors import (
    MISSING,
    ROW_PACKAGES,
    WAIT_SECONDS,
    Probe,
    check_executors,
    scip_probe,
)
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of
from codeanatomy.spark.session import DELTA_HINT, require_delta, restore_active_session
from codeanatomy.spark.settings import DELTA_CATALOG, REQUIRED, is_local_master
from codeanatomy.spark.versions import ALLOW_UNTESTED, TESTED, Versions, is_connect, require_session

VERSIONS = "SELECT version() AS spark, java_method('io.delta.package', 'VERSION') AS delta"
FIX: Mapping[SessionKind, str] = {
    "given": f"install codeanatomy=={__version__} and its packages, in the Python of this process, on every "
    "host; or run `codeanatomy environment --output env.tar.gz` and start the session with "
    "--archives env.tar.gz#environment --conf spark.pyspark.python=./environment/bin/python "
    "--conf spark.pyspark.driver.python=python3",
    "connect": f"install the packages of codeanatomy=={__version__}, in the versions and the Python of this "
    "process, on the hosts of the server and of its executors, and start the server with PYSPARK_PYTHON as "
    "that Python; codeanatomy itself is sent to them",
}
CHECKER = "pyrefly"
WRITABLE, READABLE, UNREADABLE = "writable", "readable", "missing, or not readable"


class GivenSession:
    """A caller's session, checked before its first use; calling it returns the build's session beside it."""

    def __init__(self, spark: SparkSession, request: BuildRequest, seconds: float = WAIT_SECONDS) -> None:
        self._spark = spark
        self._request = request
        self._seconds = seconds
        self._active = None if is_connect(spark) else SparkSession.getActiveSession()
        self._lock = Lock()
        # The session of the build, and what was found of the caller's.
        self._checked: tuple[SparkSession, SessionFacts] | None = None

    def __call__(self) -> SparkSession:
        return self.start()[0]

    @property
    def facts(self) -> SessionFacts:
        return self.start()[1]

    def start(self) -> tuple[SparkSession, SessionFacts]:
        """Check the session, once. Raise EnvironmentProblem if it lacks something."""
        with self._lock:
            if self._checked is None:
                with explain_errors():
                    self._checked = self._open()
            return self._checked

    def _open(self) -> tuple[SparkSession, SessionFacts]:
        require_delta(self._spark)
        # Before a session is opened beside it: other versions may not be able to.
        versions = read_tested_versions(self._spark)
        own = open_own(self._spark)
        try:
            return own, check_session(own, versions, self._request, self._seconds)
        except BaseException:
            end_own(own)
            # The reason, if it was stopped meanwhile.
            require_session(self._spark)
            raise

    def close(self) -> None:
        """End the session of the build; the caller's goes on."""
        with self._lock:
            if self._checked is not None:
                end_own(self._checked[0])
                self._checked = None
            if self._active is not None:
                restore_active_session(self._active)


def open_own(spark: SparkSession) -> SparkSession:
    """Return a session on the same Spark, which can be changed without the caller's."""
    if not is_connect(spark):
        own = spark.newSession()
    else:
        # A server knows a session after its first call, and clones only those.
        _ = spark.version
        own = cast("Any", spark).cloneSession()
        with TemporaryDirectory() as folder:
            code = Path(folder, f"codeanatomy-{code_digest()}.zip")
            pack_code(code)
            own.addArtifacts(str(code), pyfile=True)
    for key, value in REQUIRED.items():
        if str(own.conf.get(key, value)).lower() != value:
            own.conf.set(key, value)
    return own


def end_own(own: SparkSession) -> None:
    """End a session of ours; one beside a classic session has nothing to end."""
    if is_connect(own):
        client = cast("Any", own).client
        # Not `own.stop()`: it fails for a clone in PySpark 4.2, and ends a server that has only this client.
        with suppress(Exception):
            client.release_session()
            client.close()


@contextmanager
def explain_errors() -> Iterator[None]:
    """Raise EnvironmentProblem for an error of Spark itself, such as of a server that cannot be reached."""
    try:
        yield
    except ENGINE_ERRORS as problem:
        raise EnvironmentProblem(
            f"the given Spark session cannot be used: {cause_of(problem)}",
            "see the log of its driver or server, or start another one",
        ) from problem


def read_tested_versions(spark: SparkSession) -> Versions:
    """Return the versions of Spark and Delta. Raise EnvironmentProblem if they were not tested."""
    try:
        row = spark.sql(VERSIONS).collect()[0]
    except ENGINE_ERRORS as problem:
        if not any(name in str(problem) for name in ("io.delta.", DELTA_CATALOG)):
            raise
        raise EnvironmentProblem(
            "the given Spark session has the settings of Delta, but not its jar", DELTA_HINT
        ) from problem
    versions = Versions(str(row["spark"]).split()[0], str(row["delta"]))
    if versions not in TESTED and str(spark.conf.get(ALLOW_UNTESTED, "false")).lower() != "true":
        raise EnvironmentProblem(
            f"{versions} of the given Spark session was not tested (tested: {'; '.join(map(str, TESTED))})",
            f"use one of these, or start the session with {ALLOW_UNTESTED}=true at your own risk",
        )
    return versions


def check_session(
    own: SparkSession, versions: Versions, request: BuildRequest, seconds: float
) -> SessionFacts:
    """Check the executors. Raise EnvironmentProblem if something is missing or differs."""
    kind, master = kind_of(own), master_of(own)
    fix = fix_of(kind, master)
    packages = [name for name in ROW_PACKAGES if name != CHECKER]
    with lake_probe(request) as lake:
        probes = [lake, *source_probes(request)]
        if request.types != "off":
            # Its package may be there, and its program not.
            probes.append(Probe("the type checker pyrefly", find_checker, find_checker(), fix))
        if request.scip.auto:
            probes.append(scip_probe(scip_command()))
        parallelism = check_executors(own, None, seconds, probes, packages, fix)
    return SessionFacts(kind, versions.spark, str(versions.delta), master, parallelism)


def fix_of(kind: SessionKind, master: str | None) -> str:
    """Return what to do where the Python of executors is not as that of this process."""
    if kind == "given" and is_local_master(master or ""):
        return (
            f"set the variable PYSPARK_PYTHON={sys.executable} before the session is started, or "
            "spark.pyspark.python of spark-submit: its tasks run in another Python"
        )
    return FIX[kind]


def describe_unchecked(spark: SparkSession) -> EngineFacts:
    """Return kind, master and Spark version; the version of Delta is known after the check."""
    require_session(spark)
    with explain_errors():
        return EngineFacts("spark", master_of(spark), kind_of(spark), str(spark.version))


def kind_of(spark: SparkSession) -> SessionKind:
    return "connect" if is_connect(spark) else "given"


def master_of(spark: SparkSession) -> str | None:
    return spark.conf.get("spark.master", None)


@contextmanager
def lake_probe(request: BuildRequest) -> Iterator[Probe]:
    """Yield a probe of the lake: executors write into its folder, or read and write objects of its store."""
    policy = StorePolicy.from_profile(request.settings.runtime)
    if not is_local(request.lake):
        yield _store_probe(f"the store of the lake {request.lake}", request.lake, policy)
        return
    folder = Path(local_path(request.lake)).absolute()
    # A new lake has no folder yet.
    existing = next(each for each in (folder, *folder.parents) if each.is_dir())
    common = existing / f".codeanatomy-{uuid4().hex}"
    try:
        common.mkdir()
    except OSError as problem:
        raise EnvironmentProblem(
            f"the lake {folder} cannot be written: {problem.strerror}",
            "name a folder that this user can write",
        ) from problem
    try:
        yield Probe(
            f"the folder of the lake {folder}",
            partial(try_to_write, str(common)),
            WRITABLE,
            "executors write the files of a lake themselves: use a lake in an object store, such as "
            "s3a://bucket/lake, or a folder that all hosts have at the same path, and can write",
        )
    finally:
        shutil.rmtree(common, ignore_errors=True)


def source_probes(request: BuildRequest) -> list[Probe]:
    """Return a probe for each source, and each SCIP index: executors read them."""
    policy = StorePolicy.from_profile(request.settings.runtime)
    hint = (
        "executors read sources themselves: name them in an object store, such as NAME=s3a://bucket/folder, "
        "or in a folder that all hosts have at the same path"
    )
    paths = [each.root for each in request.repositories]
    paths += [str(each.absolute()) for each in request.scip.given.values()]
    return [
        Probe(f"the source {path}", partial(summarize_path, path), summarize_path(path), hint)
        if is_local(path)
        else _store_probe(f"the source {path}", path, policy)
        for path in paths
    ]


def _store_probe(name: str, uri: str, policy: StorePolicy) -> Probe:
    return Probe(
        name,
        partial(try_store, uri, policy),
        READABLE,
        "executors get the options of the settings (runtime.storage_options), but not the environment of "
        "this process: give them the role or the variables that it has, or name credentials in the settings",
    )


def find_checker() -> str:
    """Return the version of the type checker, on this machine or on an executor."""
    tool = find_pyrefly()
    return MISSING if tool is None else tool_version(tool)


def try_to_write(folder: str) -> str:
    """Write a file into a folder, on an executor; return `writable`, or why not."""
    try:
        Path(folder, uuid4().hex).write_bytes(b"")
    except OSError as problem:
        return str(problem.strerror)
    return WRITABLE


def summarize_path(path: str) -> str:
    """Return the names in a folder, or the size of a file, as a short text that is equal on each host."""
    try:
        if not Path(path).is_dir():
            return f"a file of {Path(path).stat().st_size:,} bytes"
        names = sorted(os.listdir(path))  # noqa: PTH208
    except OSError:
        return UNREADABLE
    digest = hashlib.sha256("\n".join(names).encode(errors="surrogateescape")).hexdigest()[:8]
    return f"a folder of {len(names):,} names ({digest})"


def try_store(uri: str, policy: StorePolicy) -> str:
    """Look at the store of a URI, on an executor; return `readable`, or the error of the store."""

    def look() -> Iterator[str]:
        try:
            register_policy(uri, policy)
            with storage_errors(uri):
                # An archive is a single object, which the listing below it does not have.
                next(iter(object_store(uri).list(chunk_size=1)), None)
        except CodeAnatomyError as problem:
            yield problem.message
        else:
            yield READABLE

    # A process that has used a store cannot be forked any more, as the extractors do.
    return next(look() if uses_stores() else iterate_in_fork(look))
