"""Small tables written by Python and by Spark are the same table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from pathlib import Path

from msgspec import json
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit, CommitStamp, decode_stamp
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.delta.write.spark_rows import append
from support.delta_log import delta_log
from support.manifest_rows import MANIFEST, NOON, opened, row, runs


def test_the_same_table_whoever_makes_it(
    spark: SparkSession, make_store: Callable[..., Store], tmp_path: Path
) -> None:
    """Spark appends to a table made here, and the other way round."""
    store = make_store()
    rows = spark.createDataFrame([row("run-0")], spark_schema(MANIFEST))
    append(store, MANIFEST.name, rows, Commit("run-0"))
    root = tmp_path / "other"
    append_small(str(root), MANIFEST, [row("run-1")], Commit("run-1", inputs={"ast_files_v1": 3}))

    mine, sparks = opened(root), opened(Path(store.root))
    assert json.decode(mine.schema().to_json()) == json.decode(sparks.schema().to_json())
    assert json.decode(mine.schema().to_json()) == spark_schema(MANIFEST).jsonValue()
    assert mine.metadata().configuration == sparks.metadata().configuration
    assert mine.metadata().description == sparks.metadata().description == MANIFEST.doc
    assert mine.metadata().partition_columns == []
    assert mine.protocol() == sparks.protocol()
    assert (mine.protocol().min_reader_version, mine.protocol().min_writer_version) == (1, 2)

    both = Store(spark, str(root), tables=catalog.TABLES)
    done = append(both, MANIFEST.name, rows, Commit("run-0"))
    assert (done.version, done.committed, done.created) == (1, True, False)
    assert delta_log(both, MANIFEST.name).transaction("run-1") == 0
    assert append_small(str(root), MANIFEST, [row("run-2")], Commit("run-2"), after=1) == 2
    assert append_small(str(root), MANIFEST, [row("run-0")], Commit("run-0")) == 1
    history = spark.sql(f"DESCRIBE HISTORY delta.`{root / MANIFEST.path}`").collect()
    assert {each["version"]: decode_stamp(each["userMetadata"]) for each in history} == {
        0: CommitStamp("run-1", inputs={"ast_files_v1": 3}, operation="append"),
        1: CommitStamp("run-0", operation="append"),
        2: CommitStamp("run-2", operation="append"),
    }
    seen = spark.read.format("delta").load(str(root / MANIFEST.path)).orderBy("run_id").collect()
    assert [each["run_id"] for each in seen] == ["run-0", "run-1", "run-2"] == runs(root)
    assert all(each["started_at"].astimezone(UTC) == NOON for each in seen)
    assert all(each["row_counts"] == {"ast_files_v1": 18} for each in seen)
