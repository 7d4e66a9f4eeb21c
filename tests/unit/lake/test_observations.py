"""Observations that runs record of their tables, against the Delta logs, and `codeanatomy observe`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from codeanatomy import catalog
from codeanatomy.catalog.tables.observe import TABLES as OBSERVE_TABLES
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import FeedRead
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import entries
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.write.commit import record_refusals
from codeanatomy.errors import ConstraintViolation, StepFailed, TableMissing
from codeanatomy.lake.observations import EventLog, append_rows, record_events, redactor
from codeanatomy.lake.recorded_queries import RecordedQuery
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.pipeline import drive_graph
from codeanatomy.query.lake import Lake
from codeanatomy.query.status.activity import TOPICS, Observation, observe
from codeanatomy.run import build as building
from support.commands import command_runner
from support.folders import write_sources
from support.light_builds import MODERN, clean_lake, refreshed
from support.observation_checks import (
    FIRST,
    check_mutations,
    check_snapshots,
    log_of,
    logs_of,
    recorded,
)
from support.small_lakes import NOON, SmallLake

NEW = ("delta_snapshots", "delta_mutations", "delta_scan_plans")
SECRET = "pl4nted/s3cret+value"


class Built(NamedTuple):
    lake: Path
    source: Path
    # Of the clean build and of the refresh.
    runs: tuple[str, str]
    seconds: tuple[float, float]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A lake that was built and refreshed."""
    folder = tmp_path_factory.mktemp("observed")
    lake, source = folder / "lake", write_sources(folder / "shop", FIRST)
    first = clean_lake(lake, {"shop": source}, MODERN)
    write_sources(source, {"shop/money.py": "TAX = 3\n\n\ndef price(amount):\n    return amount * TAX + 1\n"})
    second = refreshed(lake, {"shop": source})
    took = first.seconds["observe"], second.seconds["observe"]
    print(f"observed in {took[0]:.3f} s and {took[1]:.3f} s")
    return Built(lake, source, (first.run_id, second.run_id), took)


@pytest.mark.system
def test_every_commit_in_the_logs_is_a_mutation(shop: Built) -> None:
    for run_id in shop.runs:
        check_mutations(shop.lake, run_id)


def test_every_version_that_was_made_or_read_is_described(shop: Built) -> None:
    for run_id in shop.runs:
        check_snapshots(shop.lake, run_id)


def test_a_refresh_gave_some_tables_another_protocol(shop: Built) -> None:
    """So that the check above has seen a snapshot change by a commit."""
    versions = [row["min_reader_version"] for row in recorded(shop.lake, "delta_snapshots", shop.runs[1])]
    assert {*versions} == {1, 3}


def test_scans_of_a_refresh_count_the_files_of_their_version(shop: Built) -> None:
    entries = logs_of(shop.lake)
    rows = recorded(shop.lake, "delta_scan_plans", shop.runs[1])
    assert rows
    for row in rows:
        assert row["total_files"] == len(entries[row["table_name"], row["delta_version"]].held)
        assert row["total_files"] == row["candidate_files"] + row["pruned_files"]
        assert row["purpose"] == "build"
        columns = {*catalog.table(row["table_name"]).column_names}
        assert {*row["filter_columns"]} <= columns
        assert row["filter_columns"]
        assert {*row["projected_columns"]} <= columns


def test_events_are_numbered_by_run_and_table(shop: Built) -> None:
    for name in NEW:
        for run_id in shop.runs:
            numbers = [row["event_no"] for row in recorded(shop.lake, name, run_id)]
            assert numbers == list(range(len(numbers)))


def test_a_run_is_recorded_in_one_commit_per_table_and_fast(shop: Built) -> None:
    for name in NEW:
        runs = [entry.run_id for entry in log_of(shop.lake, name)]
        told = [run_id for run_id in shop.runs if recorded(shop.lake, name, run_id)]
        assert runs == told
    assert max(shop.seconds) < 2


def test_a_build_that_has_nothing_to_do_records_nothing(shop: Built) -> None:
    before = {table.name: len(log_of(shop.lake, table.name)) for table in OBSERVE_TABLES}
    assert refreshed(shop.lake, {"shop": shop.source}).status == "unchanged"
    assert {table.name: len(log_of(shop.lake, table.name)) for table in OBSERVE_TABLES} == before


@pytest.mark.system
def test_what_a_failed_run_has_done_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, source = tmp_path / "lake", write_sources(tmp_path / "shop", FIRST)
    clean_lake(lake, {"shop": source})
    write_sources(source, {"shop/new.py": "def new():\n    return 1\n"})

    def fail(*_: object) -> None:
        raise StepFailed("no room", "make some")

    monkeypatch.setattr(drive_graph, "_refuse_collisions", fail)
    with pytest.raises(StepFailed):
        refreshed(lake, {"shop": source})
    failed = observe(str(lake), 1).runs[0]
    check_mutations(lake, failed)
    [graph] = [line for line in observe(str(lake), 1, "steps").steps if line.step == "graph"]
    assert (graph.runs, graph.failed, graph.slowest_run) == (1, 1, failed)


def test_a_record_that_fails_changes_nothing_of_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(building, "record_events", fail)
    lake = tmp_path / "lake"
    report = clean_lake(lake, {"shop": write_sources(tmp_path / "shop", FIRST)})
    assert report.status == "succeeded"
    assert Snapshot.open(str(lake)).run_id == report.run_id
    assert "not recorded: OSError: No space left" in caplog.text


@pytest.mark.system
def test_a_commit_that_lost_is_told_with_its_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, source = tmp_path / "lake", write_sources(tmp_path / "shop", FIRST)
    real = entries.write_entry
    lost: list[int] = []

    def lose_once(location: str, version: int, *more: Any) -> bool:
        if location.endswith("cpg_nodes") and not lost:
            lost.append(version)
            return False
        return real(location, version, *more)

    monkeypatch.setattr(entries, "write_entry", lose_once)
    run_id = clean_lake(lake, {"shop": source}).run_id
    [row] = [row for row in recorded(lake, "delta_mutations") if row["attempts"] > 1]
    assert (row["table_name"], row["attempts"]) == ("cpg_nodes", 2)
    [line] = observe(str(lake), 5, "retries").retries
    assert (line.run_id, line.table, line.attempts, line.version) == (run_id, "cpg_nodes", 2, 0)
    assert line.conflicts == ("ConcurrentWriteException",)


def refuse(store: LakeTables, run_id: str, *samples: str) -> None:
    rules = {"span_ordered": "bstart <= bend", "kind_known": "node_kind IN ('CLASS')"}
    with (
        pytest.raises(ConstraintViolation),
        record_refusals(store, catalog.table("cpg_nodes"), "append", Commit(run_id, 3)),
    ):
        raise ConstraintViolation("cpg_nodes", rules, samples)


def test_rows_that_break_a_rule_are_told_with_a_sample(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.publish("one", {"a": {}})
    observed = EventLog()
    store = LakeTables(str(lake.root), record=observed)
    refuse(store, "one", 'span_ordered: {"bstart":9,"bend":3}', "span_ordered, kind_known: {}")
    record_events(store, "one", observed, RuntimeProfile())
    [row] = recorded(lake.root, "delta_mutations")
    assert (row["constraint_status"], row["delta_version"], row["rows"]) == ("violated", None, None)
    assert (row["app_id"], row["app_version"], row["operation"]) == ("one", 3, "append")
    assert row["error"].startswith("[CA034] rows for cpg_nodes break span_ordered")
    assert row["constraint_violations"] == [
        {
            "name": "span_ordered",
            "expression": "bstart <= bend",
            "sample": 'span_ordered: {"bstart":9,"bend":3}',
        },
        {
            "name": "kind_known",
            "expression": "node_kind IN ('CLASS')",
            "sample": "span_ordered, kind_known: {}",
        },
    ]
    found = observe(str(lake.root), 5, "violations").violations
    assert [(line.run_id, line.table, line.rule) for line in found] == [
        ("one", "cpg_nodes", "span_ordered"),
        ("one", "cpg_nodes", "kind_known"),
    ]


def texts_of(lake: Path) -> str:
    """Every byte of a lake, and every cell of its tables: files are compressed."""
    raw = b"\n".join(path.read_bytes() for path in sorted(lake.rglob("*")) if path.is_file())
    there = [table.name for table in catalog.TABLES if (lake / table.path / "_delta_log").is_dir()]
    cells = (light_table(str(lake), name, catalog.table(name).column_names).to_pylist() for name in there)
    return raw.decode("latin-1") + "\n".join(map(repr, cells))


@pytest.mark.system
def test_no_byte_of_a_lake_has_the_value_of_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, source = tmp_path / "lake", write_sources(tmp_path / "shop", FIRST)
    options = (
        f"runtime.storage_options.fs.s3a.secret.key={SECRET}",
        f"runtime.spark.spark.driver.extraJavaOptions=-Dtrust.password={SECRET}2",
        f"runtime.storage_options.fs.s3a.endpoint=http://user:{SECRET}3@minio",
    )
    clean_lake(lake, {"shop": source})
    write_sources(source, {"shop/new.py": "def new():\n    return 1\n"})
    refreshed(lake, {"shop": source}, *options)
    write_sources(source, {"shop/new.py": "def new():\n    return 2\n"})

    def fail(passes: Any, *_: object) -> None:
        run = passes.run
        with (
            pytest.raises(ConstraintViolation),
            record_refusals(run.store, catalog.table("cpg_nodes"), "append", run.commit("graph")),
        ):
            raise ConstraintViolation("cpg_nodes", {"rule": SECRET}, (f"rule: {SECRET}3",))
        raise StepFailed(f"403 Forbidden: {SECRET}, {SECRET}2, http://user:{SECRET}3@minio", "")

    monkeypatch.setattr(drive_graph, "_refuse_collisions", fail)
    with pytest.raises(StepFailed):
        refreshed(lake, {"shop": source}, *options)
    found = texts_of(lake)
    assert SECRET not in found
    assert "403 Forbidden: ***" in found
    newest = recorded(lake, "delta_snapshots")[-1]["storage_options"]
    assert newest.keys() == {"spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.endpoint"}
    assert all(len(value) == 16 for value in newest.values())


def test_the_parts_of_secrets_are_hidden_and_short_words_are_not() -> None:
    redact = redactor(
        RuntimeProfile(
            spark={"spark.a": "jdbc://admin:pw@host", "spark.ssl.keyPassword": "k"},
            storage_options={"fs.s3a.path.style.access": "true", "fs.s3a.endpoint": "http://minio:9000"},
        )
    )
    assert redact("admin:pw knows true") == "*** ***nows true"
    assert redact({"at": ["http://minio:9000/x"], "rows": 3}) == {"at": ["***/x"], "rows": 3}
    assert redactor(RuntimeProfile())("true") == "true"


def test_statements_may_ask_what_runs_did(shop: Built) -> None:
    lake = Lake.open(str(shop.lake))
    for name in NEW:
        asked = lake.sql(f"SELECT * FROM {name} ORDER BY run_id, event_no", limit=1000)
        assert asked.columns == catalog.table(name).column_names
        assert [*map(normal, asked.rows)] == [*map(normal, recorded(shop.lake, name))]
    text = "SELECT table_name, sum(rows) AS n FROM delta_mutations GROUP BY table_name"
    sums: Counter[str] = Counter()
    for entry in logs_of(shop.lake).values():
        sums[entry.table] += entry.rows
    assert {row["table_name"]: row["n"] for row in lake.sql(text)} == sums
    # Nothing was cached or maintained here, so there are no such tables.
    assert not (shop.lake / catalog.table("delta_maintenance").path).exists()
    assert lake.sql("SELECT * FROM delta_maintenance").total == 0


def normal(row: Mapping[str, Any]) -> Any:
    """A row, whoever has read it."""
    return msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(dict(row), builtin_types=(datetime,))))


def test_growth_is_that_of_the_logs(shop: Built) -> None:
    found = {line.table: line for line in observe(str(shop.lake), 10, "growth").growth}
    logs = logs_of(shop.lake)
    assert found.keys() == {name for name, _ in logs}
    for name, line in found.items():
        versions = [entry for entry in logs.values() if entry.table == name]
        newest = versions[-1]
        sizes = {
            path.name: path.stat().st_size
            for path in (shop.lake / catalog.table(name).path).rglob("*.parquet")
        }
        assert line.files == len(newest.held)
        assert line.bytes == sum(sizes[path.rpartition("/")[2]] for path in newest.held)
        assert line.bytes_written == sum(entry.size_bytes for entry in versions)
        assert [each.run_id for each in line.runs] == [shop.runs[1], shop.runs[0]]
        for each in line.runs:
            made = [entry for entry in versions if entry.run_id == each.run_id]
            assert (each.commits, each.rows_written) == (len(made), sum(entry.rows for entry in made))
            assert each.files_written == sum(entry.files for entry in made)
    assert found["repo_files_v1"].rows == len(FIRST)
    assert found["repo_files_v1"].rows_added == 0


def test_pruning_adds_up_by_table_and_purpose(shop: Built) -> None:
    rows = [row for run_id in shop.runs for row in recorded(shop.lake, "delta_scan_plans", run_id)]
    lines = observe(str(shop.lake), 10, "pruning").pruning
    assert len({(line.table, line.purpose) for line in lines}) == len(lines)
    assert sum(line.scans for line in lines) == len(rows)
    assert sum(line.total_files for line in lines) == sum(row["total_files"] for row in rows)
    assert sum(line.pruned_files for line in lines) == sum(row["pruned_files"] for row in rows)


def test_only_the_last_runs_are_looked_at(shop: Built) -> None:
    found = observe(str(shop.lake), 1)
    assert found.runs == (shop.runs[1],)
    assert {each.run_id for line in found.growth for each in line.runs} == {shop.runs[1]}
    assert {step.runs for step in found.steps} == {1}


def event(run_id: str, number: int, minute: int, **more: Any) -> dict[str, Any]:
    return {"event_time": NOON + timedelta(minutes=minute), "table_name": "cpg_nodes", **more}


@pytest.fixture
def by_hand(tmp_path: Path) -> SmallLake:
    """A lake whose record is written by hand."""
    lake = SmallLake(tmp_path / "lake")
    lake.publish("one", {"a": {"step_ms": {"relate_step": 900, "extract_step": 100, "relate": 1}}})
    lake.publish("two", {"a": {"step_ms": {"relate_step": 300, "extract_step": 700}}})
    store = LakeTables(str(lake.root))
    done = {"operation": "optimize", "reason": "96 small files", "outcome": "done"}
    work = [
        event("three", 0, 5, **done, files_added=1, files_removed=96, bytes_removed=2**20, duration_ms=1500)
    ]
    append_rows(store, "three", {"delta_maintenance": work})
    return lake


def test_steps_and_maintenance(by_hand: SmallLake) -> None:
    found = observe(str(by_hand.root), 10)
    assert [(line.step, line.last_ms, line.slowest_ms, line.slowest_run) for line in found.steps] == [
        ("relate", 300, 900, "one"),
        ("extract", 700, 700, "two"),
    ]
    [done] = found.maintenance
    assert (done.run_id, done.operation, done.files_removed, done.milliseconds) == (
        "three",
        "optimize",
        96,
        1500,
    )
    assert not (*found.retries, *found.violations, *found.pruning)


def test_a_limit_says_what_it_left_out(by_hand: SmallLake) -> None:
    found = observe(str(by_hand.root), 10, "steps", limit=1)
    assert (len(found.steps), found.cut, found.maintenance) == (1, {"steps": 1}, ())


def test_a_lake_that_is_older_than_the_record(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.publish("one", {"a": {}})
    found = observe(str(lake.root), 10)
    assert {line.table for line in found.growth} == {"extract_error_artifacts", "relations_v1"}
    assert all(not getattr(found, topic) for topic in TOPICS if topic != "growth")
    assert Lake.open(str(lake.root)).sql("SELECT * FROM delta_mutations").total == 0


def test_a_lake_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TableMissing, match="a lake was never written"):
        observe(str(tmp_path / "lake"), 10)


def test_the_command(
    by_hand: SmallLake,
    shop: Built,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    run = command_runner(capfd, monkeypatch, tmp_path)
    code, out, told = run("observe", "--lake", str(by_hand.root))
    assert code == 0
    assert "Maintenance, the newest first" in out
    assert "96 small files" in out
    assert "2 runs, from one to two" in told
    # One screen.
    code, out, told = run("observe", "--lake", str(shop.lake))
    assert (code, len(out.splitlines()) < 50) == (0, True)
    assert "not shown (codeanatomy observe growth)" in told
    code, out, _ = run("observe", "growth", "--lake", str(shop.lake))
    assert len(out.splitlines()) == 2 + 2 * len({name for name, _ in logs_of(shop.lake)})
    code, out, _ = run("observe", "pruning", "--lake", str(shop.lake), "--format", "json", "--last", "1")
    assert msgspec.json.decode(out, type=Observation) == observe(str(shop.lake), 1, "pruning")
    code, _, told = run("observe", "nothing", "--lake", str(shop.lake))
    assert (code, "'steps'" in told) == (2, True)
    code, _, told = run("observe", "--lake", str(tmp_path / "none"))
    assert (code, "a lake was never written" in told) == (6, True)


def test_others_may_add_scans_with_a_purpose(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.publish("one", {"a": {}})
    observed = EventLog()
    observed.add(RecordedQuery(NOON, "callers", "relations_v1", 0, total_files=8, candidate_files=3, count=2))
    observed(FeedRead(table="relations_v1", first_version=0, last_version=1))
    store = LakeTables(str(lake.root))
    # What others say of versions is not looked at.
    assert record_events(store, "one", observed, RuntimeProfile()) == {"delta_scan_plans": 1}
    [line] = observe(str(lake.root), 5, "pruning").pruning
    assert (line.purpose, line.scans, line.counted) == ("callers", 2, 2)
    assert (line.total_files, line.candidate_files, line.pruned_files) == (16, 6, 10)
    [row] = recorded(lake.root, "delta_scan_plans")
    assert (row["event_time"], row["scans"], row["pruned_files"]) == (NOON, 2, 5)
