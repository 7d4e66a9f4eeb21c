"""Delta's own log, seen through the JVM: snapshots, commits and data files.

Delta's internal classes are called over py4j, here and in `transaction`. Public API would answer the
same questions with a Spark job each; the log answers in milliseconds.

>>> log = DeltaLog(spark, "/lake/graph/cpg_nodes")                        # doctest: +SKIP
>>> log.snapshot().version, log.snapshot().min_writer_version             # doctest: +SKIP
(4, 2)
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
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, sql_text
from codeanatomy.spark.session import active

__all__ = ["CommitRecord", "DeltaLog", "Pin", "SnapshotInfo"]

# None: the newest version; an int: that version; a time: the version that was current then.
Pin = int | datetime | None


class CommitRecord(Struct, frozen=True):
    """What one commit says about itself."""

    version: int
    operation: str
    metrics: dict[str, str]
    user_metadata: str | None


class DeltaLog:
    """The log of one table; every call looks at the storage anew."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._jvm = cast("Any", spark._jvm)
        self.location = location
        delta = self._jvm.org.apache.spark.sql.delta
        with self._readable():
            self._log = delta.DeltaLog.forTable(spark._jsparkSession, location)

    def exists(self) -> bool:
        """Whether there is a table at the location."""
        return int(self._latest().version()) >= 0

    def snapshot(self, pin: Pin = None) -> SnapshotInfo:
        """The pinned version, resolved to its number."""
        return self._info(self._at(pin))

    def size_bytes(self) -> int:
        """What the data files of the newest version take."""
        latest = self._latest()
        with self._readable():
            return int(latest.sizeInBytes())

    def transaction(self, app_id: str) -> int | None:
        """The newest transaction version recorded for an application id."""
        latest = self._latest()
        with self._readable():
            known = latest.setTransactionsIfKnown()
            recorded = known.get() if known.isDefined() else latest.setTransactions()
        for found in self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(recorded):
            if found.appId() == app_id:
                return int(found.version())
        return None

    def commit(self, version: int) -> CommitRecord:
        """The commit that made a version, from the first line of its log entry."""
        for action in self.actions(version):
            if info := action.get("commitInfo"):
                return CommitRecord(
                    version=version,
                    operation=info.get("operation", ""),
                    metrics={key: str(value) for key, value in info.get("operationMetrics", {}).items()},
                    user_metadata=info.get("userMetadata"),
                )
        raise TableMissing(f"version {version} of {self.location} does not say what made it")

    def actions(self, version: int) -> Iterator[dict[str, Any]]:
        """The actions of one commit, read lazily."""
        names = self._jvm.org.apache.spark.sql.delta.util.FileNames
        path = names.unsafeDeltaFile(self._log.logPath(), version)
        try:
            lines = self._log.store().readAsIterator(path, self._log.newDeltaHadoopConf())
        except ENGINE_ERRORS as problem:
            raise TableMissing(
                f"the log of {self.location} has no entry for version {version}",
                "it was cleaned up or never written; use a newer version",
            ) from problem
        try:
            while lines.hasNext():
                yield json.decode(lines.next())
        finally:
            lines.close()

    def versions(self) -> range:
        """The versions whose log entries are there."""
        first = self._jvm.org.apache.spark.sql.delta.DeltaHistoryManager.getEarliestDeltaFile(self._log)
        return range(int(first), int(self._latest().version()) + 1)

    def data_exists(self, path: str) -> bool:
        """Whether a data file named in the log is still there."""
        full = self._jvm.org.apache.hadoop.fs.Path(self._log.dataPath(), self._decoded(path))
        return bool(full.getFileSystem(self._log.newDeltaHadoopConf()).exists(full))

    def read_files(self, pin: Pin, files: Sequence[str]) -> DataFrame:
        """A scan of chosen data files of one version; paths as the log spells them."""
        snapshot = self._at(pin)
        names = ", ".join(sql_text(name) for name in sorted(set(files)))
        chosen = list(snapshot.allFiles().filter(f"path IN ({names})").collect()) if files else []
        missing = set(files) - {action.path() for action in chosen}
        if missing:
            known = (action.path() for action in snapshot.allFiles().limit(5).collect())
            raise UnknownName(f"data file of {self.location}", min(missing), known)
        adds = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(chosen)
        return DataFrame(self._log.createDataFrame(snapshot, adds, False, self._none()), self._spark)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """A log that cannot be read is an error of ours, with the engine's reason.

        Where a checksum is missing beside the newest commit, Delta reads the state of the table as rows, and
        asks this thread for its session.
        """
        try:
            with active(self._spark):
                yield
        except ENGINE_ERRORS as problem:
            raise StorageFailure(
                f"cannot read the log of {self.location}: {cause_of(problem)}",
                "check the path, the rights and that no entry of _delta_log is missing",
            ) from problem

    def _latest(self) -> Any:
        with self._readable():
            return self._log.update(False, self._none(), self._none())

    def _at(self, pin: Pin) -> Any:
        latest = self._latest()
        newest = int(latest.version())
        if newest < 0:
            raise TableMissing(f"there is no table at {self.location}", "write it first")
        if pin is None or pin == newest:
            return latest
        if isinstance(pin, datetime):
            pin = self._version_at(pin)
        if type(pin) is not int or not 0 <= pin < 2**63:
            raise UsageError(f"{pin!r} is no version", "pin a version number or a datetime with a time zone")
        try:
            return self._log.getSnapshotAt(pin, self._none(), self._none(), False)
        except ENGINE_ERRORS as problem:
            raise TableMissing(
                f"{self.location} has no version {pin}", f"its newest version is {newest}"
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
                f"its first version is of {first.isoformat()}",
            ) from problem
        return int(commit.version())

    def _first(self) -> Any:
        return self._log.getSnapshotAt(self.versions().start, self._none(), self._none(), False)

    def _info(self, snapshot: Any) -> SnapshotInfo:
        # As JSON, in one call each: every step through a map of the JVM would be a call of its own.
        with self._readable():
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
        """The log spells paths as URIs; a file name may hold escaped characters."""
        return self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(path))

    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()
