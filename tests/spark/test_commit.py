from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from delta import DeltaTable
from msgspec import structs
from pyspark.sql import SparkSession

from codeanatomy.catalog.spec import Column
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import CommitRefused, Committed, Event
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from codeanatomy.errors import (
    ConstraintViolation,
    EnvironmentProblem,
    StorageFailure,
    UsageError,
)
from codeanatomy.spark.session import clone_session
from support.delta_log import delta_log
from support.item_table import ITEMS, changed, file_id, frame, item

MakeStore = Callable[..., Store]


def numbers(store: Store) -> list[int]:
    """What is in the table, by first byte."""
    return sorted(row.bstart for row in scan(store, "items").rows.select("bstart").collect())


def test_append_reports_what_delta_reports(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    done = append(store, "items", frame(spark, item(1), item(2), item(3)), Commit("r1"))
    files = list(Path(store.location("items")).rglob("*.parquet"))
    assert (done.version, done.created, done.rows, done.files, done.attempts) == (0, True, 3, 2, 1)
    assert done.size_bytes == sum(file.stat().st_size for file in files)
    assert done.seconds > 0
    assert numbers(store) == [1, 2, 3]


def test_replace_by_owner_swaps_only_the_owners_rows(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, *(item(n) for n in (1, 2, 11, 12, 21))), Commit("r1"))
    new = frame(spark, item(3), item(13))
    done = replace_by_owner(store, "items", new, [file_id(0), file_id(1)], Commit("r2"))
    assert numbers(store) == [3, 13, 21]
    assert (done.version, done.created, done.rows, done.rows_deleted) == (1, False, 2, 4)


def test_an_owner_without_new_rows_loses_its_rows(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1), item(11)), Commit("r1"))
    replace_by_owner(store, "items", frame(spark), [file_id(0)], Commit("r2"))
    assert numbers(store) == [11]


def test_rows_of_another_owner_are_refused(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    with pytest.raises(ConstraintViolation, match="owned"):
        replace_by_owner(store, "items", frame(spark, item(11)), [file_id(0)], Commit("r2"))
    assert numbers(store) == [1]


def test_replace_needs_owners_and_an_owner_column(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    with pytest.raises(UsageError, match="no owners"):
        replace_by_owner(store, "items", frame(spark), [], Commit("r1"))
    with pytest.raises(UsageError, match="no owner column"):
        replace_by_owner(make_store(changed(owner=None)), "items", frame(spark), ["x"], Commit("r1"))
    quoted_owner = "it's \\ `odd`"
    done = replace_by_owner(
        store, "items", frame(spark, item(1, kind=quoted_owner)), [quoted_owner], Commit("r2"), by="kind"
    )
    assert done.rows == 1


def test_every_verb_gives_birth(make_store: MakeStore, spark: SparkSession) -> None:
    rows = frame(spark, item(1), item(2))
    verbs: dict[str, Callable[[Store, str], Committed]] = {
        "by_append": lambda store, name: append(store, name, rows, Commit("r1")),
        "by_replace": lambda store, name: replace_by_owner(store, name, rows, [file_id(0)], Commit("r1")),
    }
    for name, verb in verbs.items():
        store = make_store(structs.replace(ITEMS, name=name))
        done = verb(store, name)
        assert (done.version, done.created, done.rows) == (0, True, 2)
        assert scan(store, name).rows.count() == 2


def test_the_same_commit_twice_is_one_commit(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r0"))
    rows = frame(spark, item(2))
    verbs: dict[str, Callable[[Commit], Committed]] = {
        "append": lambda commit: append(store, "items", rows, commit),
        "replace_by_owner": lambda commit: replace_by_owner(store, "items", rows, [file_id(0)], commit),
        "of_no_rows": lambda commit: replace_by_owner(store, "items", frame(spark), [file_id(9)], commit),
    }
    made = {name: verb(Commit(name, sequence=3)) for name, verb in verbs.items()}
    append(store, "items", frame(spark, item(50)), Commit("other"))
    for name, verb in verbs.items():
        first, again = made[name], verb(Commit(name, sequence=3))
        assert (first.committed, again.committed, again.repeated) == (True, False, True)
        assert (again.version, again.rows) == (first.version, first.rows)
    assert numbers(store) == [2, 50]


def test_a_smaller_sequence_after_a_larger_one_is_an_error(
    make_store: MakeStore, spark: SparkSession
) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1", sequence=5))
    with pytest.raises(UsageError, match="sequence"):
        append(store, "items", frame(spark, item(2)), Commit("r1", sequence=4))
    with pytest.raises(UsageError, match="for another commit"):
        replace_by_owner(store, "items", frame(spark, item(2)), [file_id(0)], Commit("r1", sequence=5))
    with pytest.raises(UsageError, match="for another commit"):
        append(store, "items", frame(spark, item(2)), Commit("r1", sequence=5, plan_fingerprint="b"))


def test_delta_history_carries_run_fingerprint_and_pins(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    commit = Commit("r1", plan_fingerprint="abc", inputs={"repo_files_v1": 4})
    append(store, "items", frame(spark, item(1)), commit)
    newest = DeltaTable.forPath(spark, store.location("items")).history(1).first()
    assert newest is not None
    assert msgspec.json.decode(newest.userMetadata, type=Commit) == commit


@pytest.mark.system
def test_a_commit_leaves_the_callers_session_as_it_was(make_store: MakeStore, spark: SparkSession) -> None:
    before = sorted(
        spark.sparkContext._jvm.scala.jdk.javaapi.CollectionConverters.asJava(  # type: ignore[union-attr]
            spark._jsparkSession.conf().getAll()
        ).items()
    )
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    replace_by_owner(store, "items", frame(spark), [file_id(0)], Commit("r2"))
    after = sorted(
        spark.sparkContext._jvm.scala.jdk.javaapi.CollectionConverters.asJava(  # type: ignore[union-attr]
            spark._jsparkSession.conf().getAll()
        ).items()
    )
    assert after == before
    assert SparkSession.getActiveSession() is spark


def test_every_commit_and_refusal_is_told(
    make_store: MakeStore, spark: SparkSession, events: list[Event]
) -> None:
    store = make_store(ITEMS)
    done = append(store, "items", frame(spark, item(1)), Commit("r1"))
    with pytest.raises(ConstraintViolation):
        append(store, "items", frame(spark, item(1, bstart=9, bend=2)), Commit("r2"))
    told = [event for event in events if isinstance(event, (Committed, CommitRefused))]
    assert told[0] == done
    assert isinstance(told[1], CommitRefused)
    assert (told[1].code, told[1].run_id) == ("CA034", "r2")


@pytest.mark.system
def test_a_lake_in_a_folder_with_an_odd_name(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path / "a b#c%20é+&'x"), tables=(ITEMS,))
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    replace_by_owner(store, "items", frame(spark, item(2)), [file_id(0)], Commit("r3"))
    assert numbers(store) == [2]


def test_a_root_that_delta_cannot_address_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="path of a lake"):
        Store(spark, "/tmp/a`b")


@pytest.mark.system
def test_settings_of_the_caller_do_not_change_what_is_written(tmp_path: Path, spark: SparkSession) -> None:
    callers = clone_session(spark, {})
    for key, value in {
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
        "spark.databricks.delta.write.txnAppId": "mine",
        "spark.databricks.delta.write.txnVersion": "1",
        "spark.sql.adaptive.enabled": "false",
    }.items():
        callers.conf.set(key, value)
    store = Store(callers, str(tmp_path / "lake"), tables=(ITEMS,))
    append(store, "items", frame(callers, item(1), item(2)), Commit("r1"))
    replace_by_owner(store, "items", frame(callers, item(4)), [file_id(0)], Commit("r2"))
    assert numbers(store) == [4]
    assert delta_log(store, "items").snapshot().min_reader_version == 1
    wider = changed(columns=(*ITEMS.columns, Column("added", "string", "New.")))
    append(replace(store, tables=(wider,)), "items", frame(callers, item(6)), Commit("r3"))
    assert callers.conf.get("spark.databricks.delta.write.txnAppId") == "mine"
    with pytest.raises(EnvironmentProblem, match="escapedStringLiterals"):
        Store(clone_session(spark, {"spark.sql.parser.escapedStringLiterals": "true"}), str(tmp_path))


def test_a_lake_that_cannot_be_written_says_why(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where a folder should be")
    with pytest.raises(UsageError, match="is a file"):
        Store(spark, str(tmp_path / "file"), tables=(ITEMS,))
    store = Store(spark, str(tmp_path / "lake"), tables=(ITEMS,))
    folder = Path(store.location("items"))
    folder.parent.mkdir(parents=True)
    folder.write_text("a file where a folder should be")
    with pytest.raises(StorageFailure) as caught:
        append(store, "items", frame(spark, item(1)), Commit("r1"))
    assert "An error occurred while calling" not in caught.value.message
    assert str(tmp_path) in caught.value.message


@pytest.mark.system
def test_a_log_with_a_gap_says_so(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    for number in (1, 2, 3):
        append(store, "items", frame(spark, item(number)), Commit(f"r{number}"))
    log = Path(store.location("items")) / "_delta_log"
    for path in log.glob("*00000000000000000001.*"):
        path.unlink()
    store.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    with pytest.raises(StorageFailure, match="cannot read the log"):
        scan(store, "items")


def test_the_rows_of_a_python_function_that_fails_name_its_error(
    make_store: MakeStore, spark: SparkSession
) -> None:
    def failing(batches: object) -> object:
        raise RuntimeError("the witness fell asleep")

    rows = frame(spark, item(1))
    with pytest.raises(StorageFailure, match="the witness fell asleep"):
        append(make_store(ITEMS), "items", rows.mapInArrow(failing, rows.schema), Commit("r1"))  # type: ignore[arg-type]
