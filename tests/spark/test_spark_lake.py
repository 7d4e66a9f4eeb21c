"""The Spark lane: the same rows as without a JVM, in a session that is somebody else's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalog.kinds import EDGE_KINDS
from codeanatomy.catalog.views import RECORD_VIEWS, VIEWS, View
from codeanatomy.errors import (
    AmbiguousSymbol,
    SqlRefused,
    TableMissing,
    UnknownName,
    UnknownSymbol,
    UsageError,
)
from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.query.answers import COLUMNS
from codeanatomy.query.ask import VERBS, resolve_request
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.spark import FEW, SparkReader
from codeanatomy.query.engines.spark_lake import SparkLake
from codeanatomy.query.engines.statements import InlineRows, Query, Row, Slice
from codeanatomy.query.engines.views import view_query
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.spark import run_spark_sql
from support.sql_functions import FAILING, GUARDED, answers_of, differences, write_answers

SYMBOLS = (
    "shop.cart.Cart",
    "Cart.add",
    "Cart.checkout",
    "shop.cart.total",
    "shop.money.Price",
    "Price.with_tax.rate",
    "shop.money.TAX",
    "größe",
    "shop.cart",
    "werkzeug.serving.run_simple",
    "shop.sum_of",
    "flask.Flask",
    "flask.Flask.route",
    "flask.globals.current_app",
    "shop/cart.py:28",
)
# What the verbs take that are asked about a third of them each.
ABOUT = ("text", "symbol", "symbols", "place")
# What is asked besides: a verb, names, options.
QUESTIONS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("find", ("*.a*",), {}),
    ("find", ("Cart*",), {"kind": "class", "repo_id": "shop"}),
    ("callers", ("shop.cart.total",), {"depth": 3}),
    ("callees", ("sell",), {"depth": 3}),
    ("path", ("sell", "shop.cart.total"), {}),
    ("path", ("shop.cart.total.prices", "shop.cart.total.amount"), {"by": "flow"}),
    ("impact", ("Cart.add", "Cart.total"), {"depth": 2}),
    ("flows", ("Price.with_tax.rate",), {}),
    ("flows", ("shop.money.TAX",), {}),
    ("flows", ("shop.paths.values.keep.value",), {"direction": "from", "returns": True}),
    ("explain", ("sell", "Cart.add"), {}),
    ("explain", ("shop.money.Discount", "shop.money.Price"), {}),
    ("unused", (), {}),
    ("cycles", (), {}),
    ("cycles", (), {"by": "calls"}),
    ("unresolved", (), {"repo_id": "flask"}),
    ("errors", (), {}),
    ("stats", (), {}),
)
# Those that are asked in Spark from the name on; each is a few jobs.
WHOLLY: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("find", ("Flask*",), {}),
    ("callers", ("shop.money.Price",), {"depth": 2}),
    ("refs", ("shop.cart.total",), {}),
    ("explain", ("sell", "Cart.checkout"), {}),
    ("errors", (), {}),
)
# Of the tables that are views as they are, the rows of the small repositories are enough.
WHOLE = ("nodes", "edges", "properties")
HOSTILE = (
    "it's",
    '"quoted"',
    "back\\slash\\'",
    "${env:HOME}",
    "\\${spark.app.name}",
    "a?b",
    "line\nbreak",
    "\\u0041",
    "'; DROP VIEW symbols; --",
    "größe😀",
    "`tick`",
    "%_!",
    "",
)


@pytest.fixture(scope="module")
def light(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session of the user's, with confs and a view of theirs."""
    found = spark.newSession()
    found.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    # Many small statements, each run once: to compile them would take longer than they take.
    found.conf.set("spark.sql.codegen.wholeStage", "false")
    found.conf.set("spark.sql.shuffle.partitions", "1")
    found.range(3).createTempView("mine")
    return found


@pytest.fixture(scope="module")
def lake(session: SparkSession, ask_lake: Path) -> Iterator[SparkLake]:
    found = Lake.open(str(ask_lake), spark=session)
    yield found
    found.close()


def settings_of(session: SparkSession) -> set[tuple[str, str]]:
    return {(row.key, row.value) for row in session.sql("SET").collect()}


def tables_of(session: SparkSession) -> set[str]:
    return {table.name for table in session.catalog.listTables()}


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


class Listening:
    """The light reader, and the queries that it was asked: of each statement the one with most rows."""

    def __init__(self, reader: LightReader) -> None:
        self.snapshot = reader.snapshot
        self.reader = reader
        self.heard: dict[str, tuple[Query, list[Row]]] = {}

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        found = self.reader.rows(query, limit)
        known = self.heard.get(query.sql)
        if limit is None and (known is None or len(known[1]) < len(found)):
            self.heard[query.sql] = query, found
        return found


@pytest.mark.parametrize("every", [60, pytest.param(1, marks=pytest.mark.system)])
def test_every_statement_has_the_rows_of_the_light_lane(lake: SparkLake, light: Lake, every: int) -> None:
    # A verb is a function of what its reader says, so it is enough to compare that: a few statements for all
    # symbols. Those of `closest`, which are limited, are in another test.
    listening = Listening(light.reader)
    verbs = [verb.name for verb in VERBS.values() if verb.takes in ABOUT]
    about = [(verb, (name,), {}) for turn, verb in enumerate(verbs) for name in SYMBOLS[turn % 3 :: 3]]
    for verb, names, options in (*about, *QUESTIONS):
        try:
            found = resolve_request(listening, verb, names, **options).result
        except UsageError:
            # Not every verb has an answer for every kind of symbol.
            continue
        listening.rows(found.query)
        if (verb, names, options) in QUESTIONS:
            types = lake.reader.frame(found.query).dtypes
            assert types == [(name, COLUMNS[name].ddl) for name in found.columns]
    assert {verb for verb, _, _ in (*about, *QUESTIONS)} == set(VERBS)
    for query, expected in list(listening.heard.values())[::every]:
        rows = lake.reader.rows(query)
        if query.order:
            assert rows == expected, query.sql
        else:
            assert sorted(map(repr, rows)) == sorted(map(repr, expected)), query.sql


@pytest.mark.parametrize(
    ("verb", "names", "options"),
    [
        pytest.param(*each, marks=pytest.mark.system) if each[0] in ("callers", "explain") else each
        for each in WHOLLY
    ],
)
def test_a_verb_has_the_rows_of_the_light_lane(
    lake: SparkLake, light: Lake, verb: str, names: tuple[str, ...], options: dict[str, Any]
) -> None:
    answer = light.ask(verb, *names, limit=100_000, **options)
    frame = lake.ask(verb, *names, **options)
    assert answer.rows
    assert frame.dtypes == [(name, COLUMNS[name].ddl) for name in answer.columns]
    assert rows_of(frame) == list(answer.rows)


@pytest.mark.parametrize(
    "view",
    [
        view if view.name in ("calls", "files", "errors") else pytest.param(view, marks=pytest.mark.system)
        for view in VIEWS
    ],
    ids=lambda view: view.name,
)
def test_a_view_has_the_rows_of_the_light_lane(lake: SparkLake, light: Lake, view: View) -> None:
    query = view_query(view, lake.snapshot)
    expected = light.reader.rows(query)
    frame = lake.view(view.name)
    if view.name in WHOLE:
        expected = [row for row in expected if row[0] != "flask"]
        frame = frame.where("repo_id <> 'flask'")
    assert frame.dtypes == [(column.name, column.ddl) for column in view.columns]
    assert sorted(map(repr, map(tuple, frame.collect()))) == sorted(map(repr, expected))
    assert expected


def test_names_are_understood_as_in_the_light_lane(lake: SparkLake, light: Lake) -> None:
    for name, error in (("checkot", UnknownSymbol), ("total", AmbiguousSymbol)):
        with pytest.raises(error) as found:
            lake.show(name)
        with pytest.raises(error) as expected:
            light.show(name)
        assert found.value.candidates == expected.value.candidates
        assert found.value.candidates
    with pytest.raises(UnknownName):
        lake.unused(repo_id="nowhere")


def test_texts_arrive_as_they_are(lake: SparkLake, light: Lake) -> None:
    marks = ", ".join(f"? AS t{place}" for place in range(len(HOSTILE)))
    typed = Query(f"SELECT {marks}", args=HOSTILE)
    assert lake.reader.rows(typed) == light.reader.rows(typed) == [HOSTILE]
    shape = tuple(COLUMNS[name] for name in ("symbol", "line", "confidence", "amount", "test"))
    for times in (1, FEW):
        rows = [(text, None, 0.1, 10**12 + i, i % 2 == 0) for i in range(times) for text in HOSTILE]
        held = Query("SELECT h.* FROM h", {"h": InlineRows(shape, rows)}, order=("symbol", "amount"))
        assert lake.reader.rows(held) == light.reader.rows(held)


def test_many_values_and_nulls_that_are_sorted(lake: SparkLake, light: Lake) -> None:
    nodes = Query("SELECT node_id FROM n", {"n": Slice("cpg_nodes", node_kind=("FUNCTION", "BINDING"))})
    ids = [row[0] for row in light.reader.rows(nodes)]
    assert len(ids) > FEW
    query = Query(
        "SELECT node_id, subkind, line FROM n",
        {"n": Slice("cpg_nodes", node_kind=("FUNCTION", "BINDING", "CLASS"), node_id=ids)},
        order=("line DESC", "subkind", "node_id"),
    )
    found = lake.reader.rows(query)
    assert found == light.reader.rows(query)
    assert len(found) == len(ids)
    assert found[-1][2] is None
    assert lake.reader.rows(query, 3) == light.reader.rows(query, 3)
    assert lake.reader.rows(Query("SELECT * FROM n", {"n": Slice("cpg_nodes", node_kind=())})) == []


def test_a_slice_opens_the_files_that_may_hold_it(session: SparkSession, light: Lake) -> None:
    reader = SparkReader(light.snapshot, session)
    nodes = Slice("cpg_nodes", node_kind=("CLASS",))
    query = Query("SELECT node_id FROM n", {"n": nodes}, order=("node_id",))
    frame = reader.frame(query)
    assert [tuple(row) for row in frame.collect()] == light.reader.rows(query)
    wanted = {file.path for file in light.reader.files(nodes)}
    read = {path.split("/cpg_nodes/")[1] for path in frame.inputFiles()}
    assert read == wanted
    assert 0 < len(wanted) < len(light.reader.files(Slice("cpg_nodes")))
    # The same question has the same view; where no file is spared, it is that of the table.
    before = tables_of(session)
    reader.frame(Query("SELECT name FROM n", {"n": Slice("cpg_nodes", node_kind=["CLASS"])}))
    assert tables_of(session) == before
    every = Query("SELECT node_id FROM n", {"n": Slice("cpg_nodes", subkind=("no such",))})
    assert (
        reader.relation(every.relations["n"])
        .partition(" FROM ")[2]
        .startswith(f"{reader._prefix}_cpg_nodes WHERE")
    )
    reader.close()


def test_tables_and_kinds(lake: SparkLake, light: Lake) -> None:
    query = Query(
        "SELECT node_id FROM n", {"n": Slice("cpg_nodes", node_kind=("CLASS",))}, order=("node_id",)
    )
    classes = lake.nodes("CLASS").select("node_id").orderBy("node_id")
    assert list(map(tuple, classes.collect())) == light.reader.rows(query)
    assert lake.table("repo_files_v1").columns[0] == "repo_id"
    assert lake.edges().columns == lake.table("cpg_edges").columns
    with pytest.raises(UnknownName, match="CLAS"):
        lake.nodes("CLAS")
    with pytest.raises(UnknownName):
        lake.table("cpg_node")
    with pytest.raises(TableMissing):
        lake.table("run_lease")


def test_a_graph_is_shaped_for_graphframes(lake: SparkLake) -> None:
    vertices, edges = lake.graph(kind="INHERITS")
    assert "id" in vertices.columns
    assert {"src", "dst", "relationship"} <= set(edges.columns)
    ends = EDGE_KINDS["INHERITS"].ends[0]
    known = {row.id: row.node_kind for row in vertices.select("id", "node_kind").collect()}
    assert set(known.values()) == {*ends.src, *ends.dst}
    found = edges.select("src", "dst", "relationship").collect()
    assert {row.relationship for row in found} == {"INHERITS"}
    assert {row.src for row in found} | {row.dst for row in found} <= set(known)
    assert lake.graph(("CALL_GRAPH", "INHERITS")).edges.columns == edges.columns
    assert lake.graph().vertices.columns == vertices.columns


def test_a_statement_over_the_views(lake: SparkLake, session: SparkSession) -> None:
    before = settings_of(session)
    # The inner name is the view, the outer one what is made of it; and there is no variable in a text.
    found = lake.sql(
        "WITH calls AS (SELECT caller, '${env:HOME}' AS home FROM calls WHERE caller = 'shop.cart.sell')"
        " SELECT caller, home, count(*) FROM calls GROUP BY caller, home"
    )
    assert found.columns == ["caller", "home", "count"]
    assert [tuple(row)[:2] for row in found.collect()] == [("shop.cart.sell", "${env:HOME}")]
    with pytest.raises(UsageError):
        lake.sql("SELECT caller AS `${env:HOME}` FROM calls")
    with pytest.raises(SqlRefused):
        lake.sql("DROP VIEW mine")
    with pytest.raises(SqlRefused):
        lake.sql("SELECT id FROM mine")
    assert settings_of(session) == before


def test_functions_have_the_values_of_the_light_lane(
    lake: SparkLake, session: SparkSession, request: pytest.FixtureRequest
) -> None:
    # In four statements; `tests/unit/query/test_sql_functions.py` asks DuckDB the same.
    found = answers_of(lambda text: run_spark_sql(lake, text, limit=100, seconds=120))
    if request.config.getoption("--regenerate"):
        write_answers(found)
    else:
        assert differences(found) == {}
    assert not [tag for tag in session.sparkContext.getJobTags() if tag.startswith("codeanatomy")]


def test_what_cannot_be_computed_is_an_error_as_in_the_light_lane(lake: SparkLake) -> None:
    for expression in FAILING:
        with pytest.raises(SqlRefused):
            run_spark_sql(lake, f"SELECT {expression} FROM calls WHERE line > 1", limit=1, seconds=60)
    guarded = ", ".join(f"{expression} AS c{number}" for number, expression in enumerate(GUARDED))
    run_spark_sql(lake, f"SELECT {guarded} FROM calls WHERE line > 1", limit=1, seconds=60)


@pytest.mark.system
def test_the_session_of_the_user_stays_as_it_is(
    spark: SparkSession, session: SparkSession, ask_lake: Path
) -> None:
    settings, tables, others = settings_of(session), tables_of(session), tables_of(spark)
    lake = Lake.open(str(ask_lake), spark=session)
    assert lake.callers("Cart.add", limit=1).count() == 1
    gained = tables_of(session) - tables
    assert gained
    assert all(name.startswith("codeanatomy_") for name in gained)
    lake.close()
    assert (settings_of(session), tables_of(session), tables_of(spark)) == (settings, tables, others)


def test_views_are_registered_for_statements_of_the_user(lake: SparkLake, session: SparkSession) -> None:
    before = tables_of(session)
    names = lake.register("lake_")
    assert names == [f"lake_{view.name}" for view in (*VIEWS, *RECORD_VIEWS)]
    assert lake.register("lake_") == names
    # Beside them are those of the reader, which have a prefix of their own.
    assert {name for name in tables_of(session) - before if not name.startswith("codeanatomy_")} == set(names)
    counted = session.sql("SELECT count(*) FROM lake_repositories JOIN mine ON mine.id = 0")
    assert counted.collect()[0][0] == 3
    # What runs have recorded, too; a table that no run has written yet has no rows.
    manifest = session.table("lake_run_manifest").select("run_id").distinct().collect()
    assert {row[0] for row in manifest} == {run.run_id for run in recorded_runs(lake.snapshot.root)}
    steps = session.sql("SELECT DISTINCT step_name FROM lake_plan_artifacts WHERE frame_no IS NULL")
    assert {row[0] for row in steps.collect()} == {"extract", "normalize", "relate", "graph"}
    assert session.table("lake_delta_maintenance").count() == 0
    for name in names:
        session.catalog.dropTempView(name)


def test_functions_of_our_own_are_called_in_statements_and_registered(
    lake: SparkLake, session: SparkSession, ask_lake: Path
) -> None:
    made = "node_id('CLASS', definition_key(repo_id, path, 'Cart'))"
    text = f"SELECT name, symbol_id, span_len(1, 4) AS n FROM symbols WHERE symbol_id = {made}"
    light = Lake.open(str(ask_lake)).sql(text).rows
    assert [row.asDict() for row in lake.sql(text).collect()] == [*light] != []
    assert not session.catalog.functionExists("node_id")
    names = lake.register("own_")
    assert lake.register("own_") == names
    by_hand = text.replace("FROM symbols", "FROM own_symbols")
    for name in ("node_id", "definition_key", "span_len"):
        by_hand = by_hand.replace(f"{name}(", f"own_{name}(")
    assert [row.asDict() for row in session.sql(by_hand).collect()] == [*light]
    session.sql("CREATE TEMPORARY FUNCTION other_edge_id(a INT) RETURNS INT RETURN a")
    with pytest.raises(UsageError, match="other_edge_id"):
        lake.register("other_")
    for name in names:
        session.catalog.dropTempView(name)


def test_what_the_user_has_is_not_replaced(session: SparkSession, lake: SparkLake) -> None:
    session.range(1).createTempView("ours_calls")
    before = tables_of(session)
    with pytest.raises(UsageError, match="ours_calls"):
        lake.register("ours_")
    with pytest.raises(UsageError):
        lake.register("x; DROP VIEW mine; --")
    assert tables_of(session) == before
    assert session.table("ours_calls").columns == ["id"]


class Remote:
    """A session with what Spark Connect has: no JVM, no SparkContext, nothing private; nothing is set."""

    def __init__(self, session: SparkSession) -> None:
        self.given = session
        self.conf = Settings(session)

    def __getattr__(self, name: str) -> Any:
        assert name in {"sql", "read", "range", "table", "createDataFrame", "catalog"}, name
        return getattr(self.given, name)


class Settings:
    """Settings that can be read only."""

    def __init__(self, session: SparkSession) -> None:
        self.get = session.conf.get


@pytest.mark.system
def test_nothing_but_the_public_interface_is_used(session: SparkSession, light: Lake) -> None:
    lake = SparkLake(light.snapshot, Remote(session))  # type: ignore[arg-type]
    assert rows_of(lake.callees("Cart.total")) == list(light.callees("Cart.total").rows)
    assert lake.view("repositories").count() == 3
    lake.close()


@pytest.mark.system
def test_an_earlier_run(session: SparkSession, ask_lake: Path) -> None:
    first = recorded_runs(str(ask_lake))[0].run_id
    for as_of, symbols in ((first, ["old.retired"]), (None, [])):
        lake = Lake.open(str(ask_lake), as_of, spark=session)
        assert [row.symbol for row in lake.find("retired").collect()] == symbols
        lake.close()


@pytest.mark.system
def test_a_lake_that_moves_on(session: SparkSession, ask_lake: Path, tmp_path: Path) -> None:
    copy = tmp_path / "lake"
    shutil.copytree(ask_lake, copy)
    lake = Lake.open(str(copy), spark=session)
    before = rows_of(lake.find("Cart"))
    assert before
    for name in ("cpg_nodes", "cpg_edges"):
        DeltaTable(str(copy / "graph" / name)).delete("repo_id IS NOT NULL")
    assert rows_of(lake.find("Cart")) == before
    # Neither a table that was read before it moved on nor one that was not.
    assert lake.nodes("CLASS").count() > 0
    assert lake.edges("INHERITS").count() > 0
    lake.close()
