"""Commits without a JVM: equal to Spark's, compare and set, each transaction once, rules, failures."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from msgspec import json
from msgspec.structs import replace

from codeanatomy.catalog.spec import Column, DeltaSchemaPolicy, Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.log import entries
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.write import small_rows
from codeanatomy.delta.write.small_rows import append_small, overwrite_small
from codeanatomy.errors import (
    CommitConflict,
    ConstraintViolation,
    ContractError,
    NeedsSpark,
    SchemaDrift,
    StorageFailure,
    StoreUnavailable,
    UsageError,
)
from support.manifest_rows import MANIFEST, opened, row, runs

ROUNDS = 25


def without(*names: str) -> Table:
    """The manifest as an older version of ours had it."""
    return replace(MANIFEST, columns=tuple(c for c in MANIFEST.columns if c.name not in names))


def test_files_are_written_as_the_policy_says(tmp_path: Path) -> None:
    append_small(str(tmp_path), MANIFEST, [row("run-2"), row("run-1")], Commit("run-2"))
    (file,) = opened(tmp_path).file_uris()
    metadata = pq.read_metadata(file.removeprefix("file://"))
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert pq.read_table(file.removeprefix("file://"))["run_id"].to_pylist() == ["run-1", "run-2"]
    entry = (tmp_path / MANIFEST.path / "_delta_log" / f"{0:020}.json").read_bytes()
    adds = [each["add"] for each in map(json.decode, entry.splitlines()) if "add" in each]
    stats = json.decode(adds[0]["stats"])
    assert stats["numRecords"] == 2
    assert set(stats["minValues"]) == set(MANIFEST.write.stats_columns)


def test_after_is_a_compare_and_set(tmp_path: Path) -> None:
    root = str(tmp_path)
    with pytest.raises(CommitConflict, match="is at version -1, not 0"):
        append_small(root, MANIFEST, [row()], Commit("run-1"), after=0)
    assert append_small(root, MANIFEST, [row()], Commit("run-1"), after=-1) == 0
    for stale in (-1, 1, 2):
        with pytest.raises(CommitConflict, match=f"is at version 0, not {stale}"):
            append_small(root, MANIFEST, [row("run-2")], Commit("run-2"), after=stale)
    assert overwrite_small(root, MANIFEST, [row("run-2")], Commit("run-2"), after=0) == 1
    assert runs(tmp_path) == ["run-2"]
    assert light_table(root, MANIFEST.name, ["run_id"], version=0)["run_id"].to_pylist() == ["run-1"]


def racing(count: int, attempt: Callable[[int], int]) -> list[int | str]:
    """What each of some threads gets that try at the same time: a version, or the name of an error."""
    answers: list[int | str] = [""] * count
    gate = threading.Barrier(count)

    def run(number: int) -> None:
        gate.wait()
        try:
            answers[number] = attempt(number)
        except CommitConflict as lost:
            answers[number] = type(lost).__name__

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_of_many_that_try_at_once_one_wins(tmp_path: Path) -> None:
    after = -1
    for turn in range(ROUNDS):
        lake = str(tmp_path)

        def attempt(number: int, turn: int = turn, after: int = after, lake: str = lake) -> int:
            run_id = f"run-{turn}-{number}"
            return overwrite_small(lake, MANIFEST, [row(run_id)], Commit(run_id), after=after)

        answers = racing(3, attempt)
        won = [each for each in answers if isinstance(each, int)]
        assert sorted(map(str, answers)) == sorted([str(after + 1), "CommitConflict", "CommitConflict"])
        assert runs(tmp_path) == [f"run-{turn}-{answers.index(won[0])}"]
        after = won[0]


def test_a_table_that_another_creates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, put = str(tmp_path), entries.write_entry

    def overtaken(*given: Any) -> bool:
        monkeypatch.setattr(entries, "write_entry", put)
        overwrite_small(root, MANIFEST, [row("run-2")], Commit("run-2"), after=-1)
        return put(*given)

    monkeypatch.setattr(entries, "write_entry", overtaken)
    with pytest.raises(CommitConflict, match="is at version 0, not -1"):
        overwrite_small(root, MANIFEST, [row("run-1")], Commit("run-1"), after=-1)
    assert runs(tmp_path) == ["run-2"]
    assert len(list((tmp_path / MANIFEST.path).glob("*.parquet"))) == 1


def test_appends_without_after_all_get_in(tmp_path: Path) -> None:
    def attempt(number: int) -> int:
        return append_small(str(tmp_path), MANIFEST, [row(f"run-{number}")], Commit(f"run-{number}"))

    answers = racing(6, attempt)
    assert sorted(map(int, answers)) == [0, 1, 2, 3, 4, 5]
    assert runs(tmp_path) == [f"run-{number}" for number in range(6)]


def test_a_transaction_is_committed_once(tmp_path: Path) -> None:
    def attempt(number: int) -> int:
        return append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1"))

    assert racing(3, attempt) == [0, 0, 0]
    # Repeated by somebody who does not know that it went through.
    assert append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1"), after=-1) == 0
    assert append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1", sequence=1)) == 1
    assert append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1")) == 0
    assert runs(tmp_path) == ["run-1", "run-1"]
    with pytest.raises(UsageError, match="has used sequence 1 of run_manifest for another commit"):
        append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1", 1, plan_fingerprint="other"))


def test_rows_that_break_a_rule_are_not_committed(tmp_path: Path) -> None:
    bad = [row(status="failed"), row(status="odd"), row(profile_hash="short"), row(run_id=""), row(mode=None)]
    with pytest.raises(ConstraintViolation) as caught:
        append_small(str(tmp_path), MANIFEST, [row("run-0"), *bad], Commit("run-1"))
    assert set(caught.value.violated) == {
        "failed_has_error",
        "status_known",
        "profile_hash_is_Fingerprint",
        "run_id_is_RunId",
        "mode_known",
        "mode_not_null",
    }
    assert any(each.startswith('failed_has_error: {"run_id":"run-1"') for each in caught.value.samples)
    assert not list((tmp_path / MANIFEST.path).iterdir())


def test_rows_of_another_form_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="run_manifest has no column colour"):
        append_small(str(tmp_path), MANIFEST, [row(colour="red")], Commit("run-1"))
    with pytest.raises(ContractError, match="do not fit its columns"):
        append_small(str(tmp_path), MANIFEST, [row(row_counts={"ast_files_v1": "many"})], Commit("run-1"))


def test_new_columns_are_added_to_an_older_table(tmp_path: Path) -> None:
    root, older = str(tmp_path), without("trace_id", "step_ms")
    append_small(root, older, [row("run-1")], Commit("run-1"))
    assert light_table(root, MANIFEST.name, ["trace_id", "run_id"]).to_pylist() == [
        {"trace_id": None, "run_id": "run-1"}
    ]
    # Columns, properties and rows in one commit.
    assert append_small(root, MANIFEST, [row("run-2", trace_id="t", step_ms={"a": 1})], Commit("run-2")) == 1
    now = opened(tmp_path)
    stored = {field["name"]: field for field in json.decode(now.schema().to_json())["fields"]}
    assert stored == {field["name"]: field for field in spark_schema(MANIFEST).jsonValue()["fields"]}
    append_small(str(tmp_path / "new"), MANIFEST, [row()], Commit("run-1"))
    assert now.metadata().configuration == opened(tmp_path / "new").metadata().configuration
    assert now.protocol().min_writer_version == 2
    found = light_table(root, MANIFEST.name, ["run_id", "trace_id"]).sort_by("run_id").to_pylist()
    assert found == [{"run_id": "run-1", "trace_id": None}, {"run_id": "run-2", "trace_id": "t"}]


def test_new_fields_are_added_inside_a_column(tmp_path: Path) -> None:
    def older(column: Column) -> Column:
        return replace(column, fields=tuple(field for field in column.fields if field.name != "features"))

    pin = {"table_name": "cpg_nodes", "version": 1}
    old = replace(MANIFEST, columns=tuple(map(older, MANIFEST.columns)))
    append_small(str(tmp_path), old, [row("run-1", output_pins=[pin])], Commit("run-1"))
    append_small(
        str(tmp_path), MANIFEST, [row("run-2", output_pins=[{**pin, "features": ["a"]}])], Commit("run-2")
    )
    assert json.decode(opened(tmp_path).schema().to_json()) == spark_schema(MANIFEST).jsonValue()
    found = light_table(str(tmp_path), MANIFEST.name, ["run_id", "output_pins"]).sort_by("run_id").to_pylist()
    assert [each["output_pins"][0]["features"] for each in found] == [None, ["a"]]


def test_other_words_about_a_column_change_nothing(tmp_path: Path) -> None:
    def reworded(column: Column) -> Column:
        return replace(column, doc=f"New: {column.doc}", fields=tuple(map(reworded, column.fields)))

    append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1"))
    later = replace(MANIFEST, columns=tuple(map(reworded, MANIFEST.columns)))
    append_small(str(tmp_path), later, [row("run-2")], Commit("run-2"))
    append_small(str(tmp_path), MANIFEST, [row("run-3")], Commit("run-3"))
    assert runs(tmp_path) == ["run-1", "run-2", "run-3"]


def test_a_column_of_another_type_is_refused(tmp_path: Path) -> None:
    old = replace(
        MANIFEST,
        columns=tuple(replace(c, type="int") if c.name == "trace_id" else c for c in MANIFEST.columns),
    )
    append_small(str(tmp_path), old, [row("run-1", trace_id=1)], Commit("run-1"))
    with pytest.raises(SchemaDrift, match="trace_id"):
        append_small(str(tmp_path), MANIFEST, [row("run-2", trace_id="t")], Commit("run-2"))


def test_a_policy_may_forbid_new_columns(tmp_path: Path) -> None:
    strict = replace(MANIFEST, schema=DeltaSchemaPolicy(schema_mode=None))
    append_small(str(tmp_path), without("trace_id"), [row()], Commit("run-1"))
    with pytest.raises(SchemaDrift, match="differs from its contract in trace_id"):
        append_small(str(tmp_path), strict, [row()], Commit("run-2"))


def test_features_that_need_spark_are_refused(tmp_path: Path) -> None:
    append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1"))
    table = replace(MANIFEST, write=replace(MANIFEST.write, enable_features=("row_tracking",)))
    with pytest.raises(NeedsSpark, match="needs new features"):
        append_small(str(tmp_path), table, [row()], Commit("run-2"))


def test_what_is_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "meta").write_text("in the way")
    with pytest.raises(StorageFailure, match=r"append of run_manifest at .* failed: .*Not a directory"):
        append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1"))


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free disk space and run the command again"),
        (errno.EROFS, "mount the file system of the lake writable, or use another lake"),
        (errno.EACCES, "get write permission for the lake, or use another lake"),
    ],
)
def test_a_disk_that_takes_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1"))

    def refusing(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    for module, attribute in ((small_rows, "write_files"), (entries, "write_entry")):
        with monkeypatch.context() as patched:
            patched.setattr(module, attribute, refusing)
            with pytest.raises(StorageFailure) as caught:
                append_small(tmp_path.as_uri(), MANIFEST, [row()], Commit("run-2"))
        assert caught.value.message.endswith(f"failed: {os.strerror(number)}")
        assert caught.value.hint == hint
    assert runs(tmp_path) == ["run-1"]


def test_a_failed_checkpoint_is_no_failed_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(location: str) -> int:
        raise StorageFailure("no checkpoint could be written", "")

    monkeypatch.setattr(entries, "write_checkpoint", failing)
    often = replace(MANIFEST, upkeep=replace(MANIFEST.upkeep, checkpoint_interval=1))
    assert append_small(str(tmp_path), often, [row()], Commit("run-1"), after=-1) == 0
    assert overwrite_small(str(tmp_path), often, [row("run-2")], Commit("run-2"), after=0) == 1
    assert runs(tmp_path) == ["run-2"]


def test_rows_stay_if_the_answer_of_their_commit_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(*given: Any) -> bool:
        put(*given)
        raise StoreUnavailable("the connection was cut", "try again")

    append_small(str(tmp_path), MANIFEST, [row()], Commit("run-1"))
    put = entries.write_entry
    with monkeypatch.context() as patched:
        patched.setattr(entries, "write_entry", losing)
        with pytest.raises(StoreUnavailable):
            append_small(str(tmp_path), MANIFEST, [row("run-2")], Commit("run-2"))
    # The entry is in the log, so its file is read; to commit again has no effect.
    assert runs(tmp_path) == ["run-1", "run-2"]
    assert append_small(str(tmp_path), MANIFEST, [row("run-2")], Commit("run-2")) == 1
    assert runs(tmp_path) == ["run-1", "run-2"]
    assert len(list((tmp_path / MANIFEST.path).glob("*.parquet"))) == 2
