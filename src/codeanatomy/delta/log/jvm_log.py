"""Read chosen data files of a version as a DataFrame, through Delta's classes in the JVM.

    read_files(spark, "/lake/graph/cpg_nodes", 4, ["node_kind=CLASS/part-0e6f.zstd.parquet"])

Delta applies deletion vectors and column mapping; its public API has no such scan. Its internal classes are
called over py4j, here and in `delta.log.transaction`. All else about a table is read in Python
(`delta.log.replay`).

Tests: `tests/spark/test_scan.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from codeanatomy.errors import StorageFailure, UnknownName
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, spark_literal
from codeanatomy.spark.session import activate_session


def read_files(spark: SparkSession, location: str, version: int, files: Sequence[str]) -> DataFrame:
    """Scan only the given data files of one version; paths are spelled as in the log."""
    jvm = cast("Any", spark._jvm)
    none = jvm.scala.Option.empty()
    try:
        # Delta may read the table's state as rows, with the session that is active in this thread.
        with activate_session(spark):
            log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)
            snapshot = log.getSnapshotAt(version, none, none, False)
            names = ", ".join(spark_literal(name) for name in sorted(set(files)))
            selected = list(snapshot.allFiles().filter(f"path IN ({names})").collect()) if files else []
            missing = set(files) - {action.path() for action in selected}
            if missing:
                known = (action.path() for action in snapshot.allFiles().limit(5).collect())
                raise UnknownName(f"data file of {location}", min(missing), known)
            adds = jvm.org.apache.spark.api.python.PythonUtils.toSeq(selected)
            return DataFrame(log.createDataFrame(snapshot, adds, False, none), spark)
    except ENGINE_ERRORS as problem:
        raise StorageFailure(
            f"cannot read the log of {location}: {cause_of(problem)}",
            "check the path, the permissions and that no entry of _delta_log is missing",
        ) from problem
