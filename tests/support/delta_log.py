"""Read the log of a table through Delta's classes in the JVM: what Delta itself has in a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from msgspec import Struct, json
from pyspark.sql import SparkSession

from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.store import Store
from codeanatomy.errors import StorageFailure, TableMissing, UsageError
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of
from codeanatomy.spark.session import activate_session


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

    def snapshot(self, pin: int | None = None) -> SnapshotInfo:
        """Describe the pinned version; the pin is resolved to a version number."""
        return self._info(self._at(pin))

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

    def _at(self, pin: int | None) -> Any:
        latest = self._latest()
        newest = int(latest.version())
        if newest < 0:
            raise TableMissing(f"there is no table at {self.location}", "build the lake first")
        if pin is None or pin == newest:
            return latest
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

    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()


def delta_log(store: Store, name: str) -> DeltaLog:
    """Return Delta's log of a table."""
    return DeltaLog(store.spark, store.location(name))
