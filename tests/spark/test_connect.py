"""A lake in a session of Spark Connect, of a real server: what is read and what a build writes.

The rows that are read are those without a JVM; `test_spark_lake.py` and `test_changes.py` compare these with
the rows of a classic session. Built tables have the rows of local processes, for a first build and a refresh.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pyspark.sql import DataFrame, SparkSession

import codeanatomy
from codeanatomy.catalog.views import VIEWS
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.restore import restore_with_fallback
from codeanatomy.errors import EnvironmentProblem, SqlRefused, UnknownSymbol, UsageError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain.features import enable_feature
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from codeanatomy.query.diff.change_windows import open_window
from codeanatomy.query.engines.public_store import PublicStore
from codeanatomy.query.engines.spark import plain_value
from codeanatomy.query.engines.spark_change_pages import change_page, change_totals
from codeanatomy.query.engines.spark_lake import SparkLake
from codeanatomy.query.engines.statements import Query, Slice
from codeanatomy.query.engines.views import view_query
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.spark import run_spark_sql
from codeanatomy.run.given_session import GivenSession, SessionFacts
from codeanatomy.spark.versions import has_internals, is_connect
from support import corpus, two_repositories
from support.aged_lake import copied
from support.caller_table import UNDO
from support.connect import DELTA_SETTINGS, remote_session, running_server
from support.given import make_request
from support.interpreters import interpreter_without
from support.maintenance_runs import SETTINGS, run_maintenance
from support.three_runs import ThreeRuns, three_runs

CHANGED = "spark.sql.shuffle.partitions"
PAGE = Path(__file__).parents[2] / "docs/ask.md"
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
FILES, RELATIONS = "repo_files_v1", "relations_v1"
MANY = 100_000
# A verb, names, options; of the small lake.
QUESTIONS: tuple[Any, ...] = (
    ("callers", ("two.k",), {"depth": 1}),
    ("errors", (), {}),
    pytest.param("find", ("*",), {}, marks=pytest.mark.system),
)
# Of the large one.
MORE_QUESTIONS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("find", ("Flask*",), {}),
    ("show", ("Cart.add",), {}),
    ("callers", ("shop.money.Price",), {"depth": 2}),
    ("callees", ("sell",), {"depth": 2}),
    ("refs", ("shop.cart.total",), {}),
    ("path", ("sell", "shop.cart.total"), {}),
    ("impact", ("Cart.add", "Cart.total"), {"depth": 2}),
    ("flows", ("Price.with_tax.rate",), {}),
    ("explain", ("sell", "Cart.checkout"), {}),
    ("unused", (), {"repo_id": "shop"}),
    ("cycles", (), {}),
    ("unresolved", (), {"repo_id": "shop"}),
    ("stats", (), {}),
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server whose Python has the packages of codeanatomy, but not codeanatomy."""
    folder = tmp_path_factory.mktemp("server")
    with running_server(folder, python=interpreter_without(folder, "codeanatomy")) as address:
        yield address


@pytest.fixture(scope="module")
def remote(url: str) -> Iterator[SparkSession]:
    with remote_session(url) as session:
        yield session


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    """A small lake."""
    return three_runs(tmp_path_factory)


@pytest.fixture(scope="module")
def light(runs: ThreeRuns) -> Lake:
    return Lake.open(runs.root)


@pytest.fixture(scope="module")
def lake(remote: SparkSession, runs: ThreeRuns) -> Iterator[SparkLake]:
    opened = Lake.open(runs.root, spark=remote)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def large(remote: SparkSession, ask_lake: Path) -> Iterator[SparkLake]:
    opened = Lake.open(ask_lake, spark=remote)
    yield opened
    opened.close()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [{name: plain_value(row[name]) for name in frame.columns} for row in frame.collect()]


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)


def test_a_session_of_connect_has_no_internals(remote: SparkSession, lake: SparkLake) -> None:
    assert is_connect(remote)
    assert not has_internals(remote)
    assert isinstance(lake.reader.store, PublicStore)


@pytest.mark.parametrize(("verb", "names", "options"), QUESTIONS)
def test_a_verb_has_the_rows_of_the_light_reader(
    lake: SparkLake, light: Lake, verb: str, names: tuple[str, ...], options: dict[str, Any]
) -> None:
    answer = light.ask(verb, *names, limit=MANY, **options)
    assert answer.rows
    assert rows_of(lake.ask(verb, *names, **options)) == list(answer.rows)


@pytest.mark.system
@pytest.mark.parametrize(("verb", "names", "options"), MORE_QUESTIONS)
def test_every_verb_has_the_rows_of_the_light_reader(
    large: SparkLake, ask_lake: Path, verb: str, names: tuple[str, ...], options: dict[str, Any]
) -> None:
    answer = Lake.open(ask_lake).ask(verb, *names, limit=MANY, **options)
    assert answer.rows
    assert rows_of(large.ask(verb, *names, **options)) == list(answer.rows)


@pytest.mark.parametrize("name", ["calls", pytest.param("files", marks=pytest.mark.system)])
def test_a_view_has_the_rows_of_the_light_reader(lake: SparkLake, light: Lake, name: str) -> None:
    expect_view(lake, light, name)


@pytest.mark.system
@pytest.mark.parametrize("name", [view.name for view in VIEWS])
def test_every_view_has_the_rows_of_the_light_reader(large: SparkLake, ask_lake: Path, name: str) -> None:
    expect_view(large, Lake.open(ask_lake), name)


def expect_view(lake: SparkLake, light: Lake, name: str) -> None:
    view = next(each for each in VIEWS if each.name == name)
    expected = light.reader.rows(view_query(view, lake.snapshot))
    frame = lake.view(name)
    assert frame.dtypes == [(column.name, column.ddl) for column in view.columns]
    found = [tuple(map(plain_value, row)) for row in frame.collect()]
    assert Counter(map(repr, found)) == Counter(map(repr, expected)) != Counter()


@pytest.mark.system
def test_tables_kinds_and_the_graph(lake: SparkLake, light: Lake) -> None:
    columns = ["node_id", "node_kind", "name"]
    nodes = Query(f"SELECT {', '.join(columns)} FROM n", {"n": Slice("cpg_nodes", node_kind=("FUNCTION",))})
    found = lake.nodes("FUNCTION").select(*columns).collect()
    assert sorted(map(tuple, found)) == sorted(light.reader.rows(nodes)) != []
    (expected,) = light.reader.rows(Query("SELECT count(*) FROM f", {"f": Slice(FILES)}))
    assert (lake.table(FILES).count(),) == expected
    vertices, edges = lake.graph(kind="CALL_GRAPH")
    known = {row.id for row in vertices.select("id").collect()}
    ends = {end for row in edges.select("src", "dst").collect() for end in row}
    assert set() < ends <= known


@pytest.mark.system
def test_statements_and_functions(lake: SparkLake, light: Lake, remote: SparkSession) -> None:
    made = "node_id('CLASS', definition_key(repo_id, path, 'H'))"
    for text in (
        f"SELECT name, symbol_id, span_len(1, 4) AS n FROM symbols WHERE symbol_id = {made}",
        "SELECT '${env:HOME}' AS home FROM repositories LIMIT 1",
    ):
        rows = list(light.sql(text, limit=10_000).rows)
        assert rows_of(lake.sql(text)) == rows != []
    with pytest.raises(UnknownSymbol):
        lake.show("nowhere")
    names = lake.register("lake_")
    assert remote.sql("SELECT count(*) FROM lake_repositories").collect()[0][0] == 3
    for name in names:
        remote.catalog.dropTempView(name)


def test_a_statement_over_the_views(lake: SparkLake, light: Lake) -> None:
    text = "SELECT caller, count(*) AS n FROM calls GROUP BY caller ORDER BY caller"
    assert rows_of(lake.sql(text)) == list(light.sql(text).rows) != []
    with pytest.raises(SqlRefused):
        lake.sql("DROP VIEW calls")


def test_changes_have_the_rows_of_the_light_reader(runs: ThreeRuns, remote: SparkSession) -> None:
    light, in_spark = Lake.open(runs.root), Lake.open(runs.root, spark=remote)
    since, until = runs.runs[0], runs.runs[2]
    for name in (FILES, RELATIONS):
        expected = light.changes(name, since, until=until, limit=MANY)
        frame = in_spark.changes(name, since, until=until)
        assert frame.columns == list(expected.columns)
        found = rows_of(frame)
        for row in found:
            if row["was"] is not None:
                row["was"] = {key: value for key, value in row["was"].items() if value != row[key]}
        assert counted(found) == counted(list(expected)) != Counter()
    every = light.changes(FILES, since, until=until, every_commit=True, limit=MANY)
    frame = in_spark.changes(FILES, since, until=until, every_commit=True).drop("_commit_timestamp")
    without_time = [
        {key: value for key, value in row.items() if key != "_commit_timestamp"} for row in every.rows
    ]
    assert counted(rows_of(frame)) == counted(without_time) != Counter()
    in_spark.close()


@pytest.mark.system
def test_pages_and_counts_of_changes(runs: ThreeRuns, remote: SparkSession) -> None:
    light, since, until = Lake.open(runs.root), runs.runs[0], runs.runs[2]
    store, window = PublicStore(remote, str(runs.root)), open_window(str(runs.root), since, until)
    for every_commit in (False, True):
        expected = light.changes(FILES, since, until=until, limit=2, every_commit=every_commit)
        assert change_page(store, window, FILES, limit=2, every_commit=every_commit) == expected
    assert change_totals(store, window) == light.change_counts(since, until=until)


@pytest.mark.system
def test_a_stream_of_changes(runs: ThreeRuns, remote: SparkSession, tmp_path: Path) -> None:
    light, in_spark = Lake.open(runs.root), Lake.open(runs.root, spark=remote)
    stream = in_spark.change_stream(FILES, runs.runs[0])
    query = (
        stream.drop("_commit_timestamp")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "rows"))
    )
    assert query.awaitTermination(120)
    expected = light.changes(FILES, runs.runs[0], every_commit=True, limit=MANY).rows
    found = rows_of(remote.read.parquet(str(tmp_path / "rows")))
    assert counted(found) == counted(
        [{key: value for key, value in row.items() if key != "_commit_timestamp"} for row in expected]
    )


@pytest.mark.system
def test_the_session_stays_as_it_is(remote: SparkSession, runs: ThreeRuns) -> None:
    def state() -> tuple[set[Any], set[str]]:
        settings = {(row.key, row.value) for row in remote.sql("SET").collect()}
        return settings, {table.name for table in remote.catalog.listTables()}

    before = state()
    opened = Lake.open(runs.root, spark=remote)
    assert opened.callers("two.k", limit=1).count() == 1
    assert state()[1] > before[1]
    opened.close()
    assert state() == before


def test_a_statement_with_a_time_limit(lake: SparkLake, light: Lake, remote: SparkSession) -> None:
    text = "SELECT kind, count(*) AS n FROM symbols GROUP BY kind ORDER BY kind"
    limited = run_spark_sql(lake, text, limit=100, seconds=120)
    assert structs.replace(limited, sql="") == structs.replace(light.sql(text), sql="")
    assert run_spark_sql(lake, text, limit=1, seconds=120).more == "--limit 10"
    many = "nodes a CROSS JOIN nodes b CROSS JOIN nodes c CROSS JOIN (SELECT * FROM nodes LIMIT 9) d"
    began = time.monotonic()
    with pytest.raises(SqlRefused, match=r"no answer in 0\.5 seconds"):
        run_spark_sql(lake, f"SELECT count(*) FROM {many}", limit=1, seconds=0.5)
    assert time.monotonic() - began < 60
    # The session goes on, without the tag.
    assert remote.getTags() == set()
    assert remote.range(3).count() == 3


def test_differences_of_runs_are_those_of_the_light_reader(
    runs: ThreeRuns, lake: SparkLake, light: Lake
) -> None:
    found = lake.diff(runs.runs[0], runs.runs[2], limit=MANY)
    assert found == light.diff(runs.runs[0], runs.runs[2], limit=MANY)
    assert found.rows


@contextmanager
def refusal() -> Iterator[None]:
    """Expect the one error of whatever a session of Spark Connect cannot do."""
    with pytest.raises(EnvironmentProblem) as caught:
        yield
    assert caught.value.message == "this needs a classic Spark session, and the given one is of Spark Connect"
    assert "SparkSession.builder.master(...)" in caught.value.hint
    assert "Lake.open(uri, spark=session)" in caught.value.hint


def test_sparks_own_writer_needs_a_classic_session(remote: SparkSession, lake: SparkLake) -> None:
    """Builds do without it."""
    with refusal():
        Store(remote, lake.snapshot.root)
    with pytest.raises(UsageError, match="ibis needs a classic Spark session"):
        lake.ibis()


def test_maintenance_needs_a_classic_session(remote: SparkSession, aged_lake: Path, tmp_path: Path) -> None:
    copy = copied(aged_lake, tmp_path)
    before = Snapshot.open(str(copy)).pins
    with refusal():
        run_maintenance(copy, lambda: remote, "file_line_index_v1")
    with refusal():
        progress = Progress(io.StringIO())
        enable_feature(str(copy), SETTINGS, ("cpg_nodes",), "deletion_vectors", progress, lambda: remote)
    assert Snapshot.open(str(copy)).pins == before
    # A table that only Spark can restore.
    store = PublicStore(remote, str(tmp_path / "other"))
    place = store.location(RELATIONS)
    properties = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    remote.sql(f"CREATE TABLE delta.`{place}` (src_qname string) USING delta {properties}").collect()
    remote.sql(f"INSERT INTO delta.`{place}` VALUES ('f')").collect()
    with refusal():
        restore_with_fallback(store.root, RELATIONS, 0, UNDO, lambda: Store(remote, store.root))


def test_a_lake_that_the_server_cannot_reach(remote: SparkSession, lake: SparkLake) -> None:
    elsewhere = structs.replace(lake.snapshot, root="/no/such/lake")
    with pytest.raises(EnvironmentProblem, match=r"cannot open \w+ of the lake /no/such/lake") as caught:
        SparkLake(elsewhere, remote)
    assert "same path or URI" in caught.value.hint


@pytest.mark.system
def test_the_example_of_the_page_runs_in_a_client_without_a_jvm(url: str, ask_lake: Path) -> None:
    (block,) = (each for each in PYTHON_BLOCK.findall(PAGE.read_text()) if ".remote(" in each)
    script = block.replace("sc://127.0.0.1:15002", url).replace('"lake"', repr(str(ask_lake)))
    script += "from pyspark import SparkContext\nassert SparkContext._gateway is None\n"
    env = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = Lake.open(ask_lake).callers("Flask.make_response").rows
    shown = [tuple(map(str.strip, line.split("|")[1:-1])) for line in done.stdout.splitlines() if "|" in line]
    assert shown[1:] == [(row["symbol"], row["path"], str(row["line"])) for row in expected] != []
    assert "[Row(n=3)]" in done.stdout


# Builds


@pytest.fixture(scope="module")
def builder(url: str) -> Iterator[SparkSession]:
    """A session of its own, whose settings a test changes."""
    with remote_session(url) as session:
        yield session


def assert_equal_rows(lake: Path, clean: Path) -> None:
    compared = compare_lakes(str(lake), str(clean))
    assert (compared.total, compared.differences) == (0, ())
    assert compared.rows["cpg_edges"] > 0
    assert not verify(str(lake)).findings


def test_a_build_and_a_refresh_have_the_rows_of_local_processes(
    builder: SparkSession, tmp_path: Path
) -> None:
    sources = {name: two_repositories.put(tmp_path, name) for name in ("a", "b")}
    lake = tmp_path / "lake"
    builder.conf.set(CHANGED, "3")
    builder.range(3).createOrReplaceTempView("view_of_the_caller")

    def state() -> tuple[dict[str, str | None], set[str], set[str]]:
        return (
            builder.conf.getAll,
            {table.name for table in builder.catalog.listTables()},
            builder.getTags(),
        )

    before = state()
    for number in range(2):
        if number:
            (sources["a"] / "added.py").write_text("def added():\n    return 1\n")
        report = codeanatomy.build(sources, lake, spark=builder, types="off")
        assert report.status == "succeeded"
        clean = tmp_path / f"clean{number}"
        codeanatomy.build(sources, clean, engine="local", types="off")
        assert_equal_rows(lake, clean)
        assert state() == before
    # How many jobs there were is not known, which is not zero.
    steps = light_table(str(lake), "plan_artifacts", ["jobs", "frame_no"]).to_pylist()
    assert steps
    assert {row["jobs"] for row in steps} == {None}
    assert builder.table("view_of_the_caller").count() == 3


def test_facts_of_a_session(builder: SparkSession, tmp_path: Path) -> None:
    given = GivenSession(builder, make_request(tmp_path / "lake", {"a": two_repositories.put(tmp_path, "a")}))
    assert given.facts == SessionFacts("connect", "4.2.0", "4.4.0", "local[2]", 2)
    given.close()
    assert builder.range(3).count() == 3


@pytest.mark.system
def test_whole_packages_built_and_refreshed(builder: SparkSession, tmp_path: Path) -> None:
    names = ("requests", "flask", "click")
    sources = {name: Path(shutil.copytree(corpus.package(name), tmp_path / name)) for name in names}
    lake = tmp_path / "lake"
    for number in range(2):
        if number:
            with (sources["requests"] / "requests/utils.py").open("a") as file:
                file.write("\n\ndef added(value: int) -> str:\n    return str(value)\n")
        report = codeanatomy.build(sources, lake, spark=builder)
        assert (report.status, bool(report.redone)) == ("succeeded", bool(number))
        clean = tmp_path / f"clean{number}"
        codeanatomy.build(sources, clean, engine="local")
        assert_equal_rows(lake, clean)


@pytest.mark.system
@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("delta", "the given Spark session does not support Delta: its spark.sql.extensions is not set"),
        ("pyarrow", "the executors cannot import pyarrow"),
        ("msgspec", "lacks msgspec"),
    ],
)
def test_what_a_server_lacks_is_named(tmp_path: Path, lacking: str, message: str) -> None:
    source = two_repositories.put(tmp_path, "a")
    settings = {} if lacking == "delta" else DELTA_SETTINGS
    python = interpreter_without(tmp_path, lacking)
    with running_server(tmp_path, settings, python=python) as url, remote_session(url) as session:
        with pytest.raises(EnvironmentProblem) as caught:
            codeanatomy.build({"a": source}, tmp_path / "lake", spark=session)
        assert message in caught.value.message
        assert session.range(3).count() == 3
    assert not (tmp_path / "lake").exists()
