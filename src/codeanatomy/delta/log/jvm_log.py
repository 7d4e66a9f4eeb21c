"""Read the log of a table through Delta's classes in the JVM: snapshots, commits and data files.

Delta's internal classes are called over py4j, here and in `delta.log.transaction`. The public API would need
a Spark job for each of these calls; the log answers in milliseconds.

>>> log = DeltaLog(spark, "/lake/graph/cpg_nodes")                        # doctest: +SKIP
>>> log.snapshot().version, log.snapshot().min_writer_version             # doctest: +SKIP
(4, 2)

Tests: `tests/spark/test_scan.py`, `tests/spark/test_commit.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

from msgspec import Struct, json
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.errors import StorageFailure, TableMissing, UnknownName, UsageError
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, spark_literal
from codeanatomy.spark.session import activate_session

__all__ = ["CommitRecord", "DeltaLog", "Pin", "SnapshotInfo"]

# None: the newest version; an int: that version; a time: the version that was current at that time.
Pin = int | datetime | None


class CommitRecord(Struct, frozen=True):
    """The commitInfo action of one commit."""

    version: int
    operation: str
    metrics: dict[str, str]
    user_metadata: str | None


class DeltaLog:
    """The log of one table; every call reads the storage again."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._jvm = cast("Any", spark._jvm)
        self.location = location
        delta = self._jvm.org.apache.spark.sql.delta
        with self._translate_errors():
            self._log = delta.DeltaLog.forTable(spark._jsparkSession, location)

    def exists(self) -> bool:
        """Return whether there is a table at the location."""
        return int(self._latest().version()) >= 0

    def snapshot(self, pin: Pin = None) -> SnapshotInfo:
        """Describe the pinned version; the pin is resolved to a version number."""
        return self._info(self._at(pin))

    def size_bytes(self) -> int:
        """Return the total size of the data files of the newest version."""
        latest = self._latest()
        with self._translate_errors():
            return int(latest.sizeInBytes())

    def transaction(self, app_id: str) -> int | None:
        """Return the newest transaction version recorded for an application id; None if there is none."""
        latest = self._latest()
        with self._translate_errors():
            known = latest.setTransactionsIfKnown()
            recorded = known.get() if known.isDefined() else latest.setTransactions()
        for transaction in self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(recorded):
            if transaction.appId() == app_id:
                return int(transaction.version())
        return None

    def commit(self, version: int) -> CommitRecord:
        """Return the commit of a version, from the commitInfo in its log entry."""
        for action in self.actions(version):
            if info := action.get("commitInfo"):
                return CommitRecord(
                    version=version,
                    operation=info.get("operation", ""),
                    metrics={key: str(value) for key, value in info.get("operationMetrics", {}).items()},
                    user_metadata=info.get("userMetadata"),
                )
        raise TableMissing(
            f"the log entry of version {version} of {self.location} has no commitInfo",
            "use a version that was committed by Spark or by this program",
        )

    def actions(self, version: int) -> Iterator[dict[str, Any]]:
        """Yield the actions of one commit, read lazily."""
        names = self._jvm.org.apache.spark.sql.delta.util.FileNames
        path = names.unsafeDeltaFile(self._log.logPath(), version)
        try:
            lines = self._log.store().readAsIterator(path, self._log.newDeltaHadoopConf())
        except ENGINE_ERRORS as problem:
            raise TableMissing(
                f"the log of {self.location} has no entry for version {version}",
                "the entry was cleaned up or never written; use a newer version",
            ) from problem
        try:
            while lines.hasNext():
                yield json.decode(lines.next())
        finally:
            lines.close()

    def versions(self) -> range:
        """Return the versions that still have log entries."""
        first = self._jvm.org.apache.spark.sql.delta.DeltaHistoryManager.getEarliestDeltaFile(self._log)
        return range(int(first), int(self._latest().version()) + 1)

    def data_exists(self, path: str) -> bool:
        """Return whether a data file named in the log still exists."""
        full = self._jvm.org.apache.hadoop.fs.Path(self._log.dataPath(), self._decoded(path))
        return bool(full.getFileSystem(self._log.newDeltaHadoopConf()).exists(full))

    def read_files(self, pin: Pin, files: Sequence[str]) -> DataFrame:
        """Scan only the given data files of one version; paths are spelled as in the log."""
        snapshot = self._at(pin)
        names = ", ".join(spark_literal(name) for name in sorted(set(files)))
        selected = list(snapshot.allFiles().filter(f"path IN ({names})").collect()) if files else []
        missing = set(files) - {action.path() for action in selected}
        if missing:
            known = (action.path() for action in snapshot.allFiles().limit(5).collect())
            raise UnknownName(f"data file of {self.location}", min(missing), known)
        adds = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(selected)
        return DataFrame(self._log.createDataFrame(snapshot, adds, False, self._none()), self._spark)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise StorageFailure, with the engine's reason, if the log cannot be read.

        If the newest commit has no checksum file, Delta reads the table's state as rows, with the session
        that is active in this thread.
        """
        try:
            with activate_session(self._spark):
                yield
        except ENGINE_ERRORS as problem:
            raise StorageFailure(
                f"cannot read the log of {self.location}: {cause_of(problem)}",
                "check the path, the permissions and that no entry of _delta_log is missing",
            ) from problem

    def _latest(self) -> Any:
        with self._translate_errors():
            return self._log.update(False, self._none(), self._none())

    def _at(self, pin: Pin) -> Any:
        latest = self._latest()
        newest = int(latest.version())
        if newest < 0:
            raise TableMissing(f"there is no table at {self.location}", "build the lake first")
        if pin is None or pin == newest:
            return latest
        if isinstance(pin, datetime):
            pin = self._version_at(pin)
        if type(pin) is not int or not 0 <= pin < 2**63:
            raise UsageError(
                f"{pin!r} is not a table version", "pin a version number or a datetime with a time zone"
            )
        try:
            return self._log.getSnapshotAt(pin, self._none(), self._none(), False)
        except ENGINE_ERRORS as problem:
            raise TableMissing(
                f"{self.location} has no version {pin}", f"choose a version up to {newest}, the newest"
            ) from problem

    def _version_at(self, moment: datetime) -> int:
        if moment.tzinfo is None:
            raise UsageError(
                f"{moment.isoformat()} has no time zone", "write it like 2026-01-31T12:00:00+00:00"
            )
        stamp = self._jvm.java.sql.Timestamp(int(moment.timestamp() * 1000))
        try:
            commit = self._log.history().getActiveCommitAtTime(stamp, self._none(), True, False, False)
        except ENGINE_ERRORS as problem:
            first = datetime.fromtimestamp(self._info(self._first()).timestamp_ms / 1000, UTC)
            raise TableMissing(
                f"{self.location} did not exist at {moment.isoformat()}",
                f"choose a time after its first version, {first.isoformat()}",
            ) from problem
        return int(commit.version())

    def _first(self) -> Any:
        return self._log.getSnapshotAt(self.versions().start, self._none(), self._none(), False)

    def _info(self, snapshot: Any) -> SnapshotInfo:
        # As JSON, in one call each: iterating over a JVM map takes a py4j call per element.
        with self._translate_errors():
            protocol = json.decode(snapshot.protocol().json())["protocol"]
            metadata = json.decode(snapshot.metadata().json())["metaData"]
        return SnapshotInfo(
            location=self.location,
            version=int(snapshot.version()),
            timestamp_ms=int(snapshot.timestamp()),
            min_reader_version=protocol["minReaderVersion"],
            min_writer_version=protocol["minWriterVersion"],
            reader_features=tuple(sorted(protocol.get("readerFeatures", ()))),
            writer_features=tuple(sorted(protocol.get("writerFeatures", ()))),
            properties=metadata.get("configuration", {}),
            schema_json=metadata["schemaString"],
            partition_columns=tuple(metadata.get("partitionColumns", ())),
        )

    def _decoded(self, path: str) -> Any:
        """Decode a path of the log: the log spells paths as URIs, with escaped characters."""
        return self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(path))

    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()
