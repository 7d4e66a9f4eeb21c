"""Changes between two runs in a Spark session: the rows that are read without a JVM."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from codeanatomy import catalog
from codeanatomy.delta.feed import Window, read_feed
from codeanatomy.delta.light_feed import CHANGE_COLUMNS, changed_rows
from codeanatomy.delta.read.open_table import location, newest_version
from codeanatomy.delta.store import Store
from codeanatomy.errors import FeedLost, FeedOutOfRange, UnknownName, UsageError
from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.query.diff.change_windows import feed_tables
from codeanatomy.query.engines.spark import plain_value
from codeanatomy.query.lake import Lake
from codeanatomy.spark import session
from support.commands import RunCommand, command_runner
from support.light_builds import clean_lake, refreshed
from support.three_runs import ThreeRuns, copied, three_runs

FILES, RELATIONS = "repo_files_v1", "relations_v1"
MANY = 10_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    """Three runs and a restore of the first: rows in new files, deleted by vectors, and brought back."""
    lake = copied(tmp_path_factory.mktemp("changes"), three_runs(tmp_path_factory))
    lake.restore(lake.runs[0])
    return ThreeRuns(lake.folder, tuple(run.run_id for run in recorded_runs(str(lake.root))))


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame; of a changed one only the former values that differ."""
    rows = [{name: plain_value(row[name]) for name in frame.columns} for row in frame.collect()]
    for row in rows:
        if row.get("was") is not None:
            row["was"] = {name: value for name, value in row["was"].items() if value != row[name]}
    return rows


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)


@pytest.mark.parametrize(
    ("first", "last"), [(0, 2), *(pytest.param(*each, marks=pytest.mark.system) for each in ((2, 3), (0, 3)))]
)
def test_the_net_effect_is_the_same(made: ThreeRuns, spark: SparkSession, first: int, last: int) -> None:
    since, until = made.runs[first], made.runs[last]
    light, in_spark = Lake.open(made.root), Lake.open(made.root, spark=spark)
    totals = Counter[str]()
    for name in (FILES, RELATIONS, "diagnostics_norm_v1"):
        expected = light.changes(name, since, until=until, limit=MANY)
        found = in_spark.changes(name, since, until=until)
        assert found.columns == list(expected.columns)
        assert counted(rows_of(found)) == counted(list(expected))
        totals[name] = expected.total
    # The last run has undone the others.
    assert (totals.total() == 0) == ((first, last) == (0, 3))


@pytest.mark.system
def test_counts_and_repositories_are_the_same(made: ThreeRuns, spark: SparkSession) -> None:
    light, in_spark = Lake.open(made.root), Lake.open(made.root, spark=spark)
    expected = light.change_counts(made.runs[0], until=made.runs[2])
    found = in_spark.change_counts(made.runs[0], until=made.runs[2])
    assert {tuple(row) for row in found.collect()} == {
        (each.table, each.repo_id, each.inserted, each.removed, each.changed) for each in expected.counts
    }
    one = in_spark.changes(FILES, made.runs[0], until=made.runs[2], repo_id="b")
    assert [(row["change"], row["path"]) for row in one.collect()] == [("changed", "m.py")]


@pytest.fixture(scope="module")
def without_vectors(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    """Two runs of a lake that all readers open: data files are rewritten, with change files."""
    lake = ThreeRuns(tmp_path_factory.mktemp("all"), ())
    for state in range(2):
        make = refreshed if state else clean_lake
        make(lake.root, {"a": lake.put(state)["a"]}, "delta.readers=all")
    return ThreeRuns(lake.folder, tuple(run.run_id for run in recorded_runs(str(lake.root))))


@pytest.mark.parametrize(
    ("kind", "name"), [("made", FILES), ("made", RELATIONS), ("without_vectors", RELATIONS)]
)
def test_every_commit_is_the_same(
    request: pytest.FixtureRequest, spark: SparkSession, kind: str, name: str
) -> None:
    lake: ThreeRuns = request.getfixturevalue(kind)
    light, in_spark = Lake.open(lake.root), Lake.open(lake.root, spark=spark)
    expected = light.changes(name, lake.runs[0], every_commit=True, limit=MANY)
    found = in_spark.changes(name, lake.runs[0], every_commit=True)
    assert {*found.columns} == {*expected.columns}
    rows = rows_of(found)
    assert {row["_change_type"] for row in rows} == {"insert", "delete"}
    columns = [each for each in found.columns if each != "_commit_timestamp"]
    assert counted([{each: row[each] for each in columns} for row in rows]) == counted(
        [{each: row[each] for each in columns} for row in expected]
    )
    times = found.selectExpr("_commit_version", "unix_millis(_commit_timestamp) AS ms").distinct().collect()
    assert {row._commit_version: row.ms for row in times} == {
        row["_commit_version"]: round(row["_commit_timestamp"].timestamp() * 1000) for row in expected
    }


@pytest.fixture
def ran(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark: SparkSession
) -> RunCommand:
    """Runs commands that get the session of the tests instead of one of their own."""
    monkeypatch.setattr(session, "open_session", lambda profile: spark)
    monkeypatch.setattr(session, "close_session", lambda opened: None)
    return command_runner(capfd, monkeypatch, tmp_path)


PAGES: tuple[tuple[str, ...], ...] = (
    (),
    (RELATIONS, "--limit", "7", "--offset", "7"),
    (RELATIONS, "--all-commits", "--limit", "40", "--offset", "3", "--repo", "a"),
)
MORE_PAGES: tuple[tuple[str, ...], ...] = (
    ("--repo", "b"),
    (FILES,),
    (FILES, "--all-commits"),
    (RELATIONS, "--limit", "7"),
    (RELATIONS, "--offset", "100000"),
    ("diagnostics_norm_v1",),
)


@pytest.mark.parametrize(
    "arguments",
    [*PAGES, *(pytest.param(each, marks=pytest.mark.system) for each in MORE_PAGES)],
    ids=lambda each: " ".join(each) or "counts",
)
def test_the_command_prints_the_same_pages(
    made: ThreeRuns, ran: RunCommand, arguments: tuple[str, ...]
) -> None:
    ask = ("changes", *arguments, "--since", made.runs[0], "--until", made.runs[2], "--lake", str(made.root))
    code, light, _ = ran(*ask, "--format", "json", "--engine", "local")
    assert code == 0
    answer = json.loads(light)
    assert answer["status"] == "ok"
    assert answer.get("rows") or answer.get("counts") or "100000" in arguments
    assert ran(*ask, "--format", "json", "--engine", "spark")[:2] == (0, light)


def test_errors_of_the_command_need_no_session(
    made: ThreeRuns, ran: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "open_session", None)
    lake = ("--lake", str(made.root), "--engine", "spark")
    for arguments, message in (
        (("cpg_nodes", "--since", made.runs[0]), "records no change feed"),
        ((FILES, "--since", "nope"), "unknown run 'nope'"),
        ((FILES, "--since", made.runs[0], "--repo", "z"), "unknown repository 'z'"),
    ):
        code, _, printed = ran("changes", *arguments, *lake)
        assert (code, message in printed) == (2, True), printed


def test_compaction_changes_no_row(tmp_path: Path, made: ThreeRuns, spark: SparkSession) -> None:
    lake = copied(tmp_path, made)
    root = str(lake.root)
    spark.sql(f"OPTIMIZE delta.`{location(root, RELATIONS)}`")
    first, last = lake.version(RELATIONS, 0) + 1, newest_version(root, RELATIONS)
    assert last == lake.version(RELATIONS, 3) + 1
    assert len(changed_rows(root, RELATIONS, last, last)) == 0
    light = changed_rows(root, RELATIONS, first, last)
    store = Store(spark, root)
    in_spark = read_feed(store, RELATIONS, Window(starting_version=first, ending_version=last))
    names = ["src_id", "dst_id", "relation_kind", "bstart", *list(CHANGE_COLUMNS)[:2]]
    assert Counter(tuple(row[name] for name in names) for row in light.to_pylist()) == Counter(
        map(tuple, in_spark.select(*names).collect())
    )


def test_windows(made: ThreeRuns, spark: SparkSession) -> None:
    lake, newest = Lake.open(made.root, spark=spark), made.runs[-1]
    with pytest.raises(FeedOutOfRange, match="nothing was published after run"):
        lake.changes(FILES, newest)
    for every_commit in (False, True):
        empty = lake.changes(FILES, newest, allow_out_of_range=True, every_commit=every_commit)
        assert empty.count() == 0
    assert lake.change_counts(newest, allow_out_of_range=True).count() == 0
    with pytest.raises(UsageError, match="was published after run"):
        lake.changes(FILES, newest, until=made.runs[0])
    with pytest.raises(UsageError, match="cpg_nodes records no change feed"):
        lake.changes("cpg_nodes", made.runs[0])
    with pytest.raises(UnknownName):
        lake.change_counts(made.runs[0], repo_id="z")
    assert {*feed_tables()} <= {table.name for table in catalog.TABLES}


def test_a_window_that_was_vacuumed(tmp_path: Path, made: ThreeRuns, spark: SparkSession) -> None:
    lake = copied(tmp_path, made)
    data = Path(location(str(lake.root), FILES)).glob("*.parquet")
    newest = max(data, key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    opened = Lake.open(lake.root, spark=spark)
    for call in (opened.changes, opened.change_stream):
        with pytest.raises(FeedLost, match="was vacuumed") as caught:
            call(FILES, lake.runs[0])
        assert "choose a later start" in caught.value.hint
