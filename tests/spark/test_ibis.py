"""The Ibis lane: verbs said in Ibis, on DuckDB and on Spark, have the rows of the verbs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from pyspark.sql import SparkSession

from codeanatomy.catalog.views import VIEWS
from codeanatomy.errors import EnvironmentProblem, UnknownName
from codeanatomy.query.answers import Answer
from codeanatomy.query.engines.ibis import Artifact, IbisViews
from codeanatomy.query.lake import Lake
from codeanatomy.query.symbols import DEFINITIONS, EXTERNAL_KINDS

# Ibis 12 calls DuckDB by names that DuckDB 2 wants to be called otherwise.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_:DeprecationWarning")


@pytest.fixture(scope="module")
def light(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


@pytest.fixture(scope="module", params=["duckdb", "pyspark"])
def lane(request: pytest.FixtureRequest, light: Lake, ask_lake: Path) -> IbisViews:
    if request.param == "duckdb":
        return light.ibis()
    spark: SparkSession = request.getfixturevalue("spark")
    return Lake.open(str(ask_lake), spark=spark).ibis()


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """The rows of a pandas DataFrame, with None for what is missing."""
    plain = frame.astype(object).where(frame.notna(), None)
    return list(plain.itertuples(index=False, name=None))


def rows_in(answer: Answer, *columns: str) -> list[tuple[Any, ...]]:
    assert answer.rows
    return [tuple(map(row.__getitem__, columns)) for row in answer]


def test_callers(lane: IbisViews, light: Lake) -> None:
    calls = lane.calls
    asked = (
        calls.filter(calls.callee == "shop.cart.Cart.add")
        .order_by("caller", "path", "line", "caller_id")
        .select("caller", "caller_kind", "path", "line", "confidence", "method", "repo_id", "caller_id")
    )
    answer = light.callers("shop.cart.Cart.add")
    columns = ("symbol", "kind", "path", "line", "confidence", "method", "repo_id", "symbol_id")
    assert rows_of(lane.execute(asked)) == rows_in(answer, *columns)


def test_refs(lane: IbisViews, light: Lake) -> None:
    references = lane.references
    meant = references.filter(references.symbol == "shop.money.Price", references.repo_id == "shop")
    asked = meant.select("path", "line").distinct().order_by("path", "line")
    answer = light.refs("shop.money.Price")
    assert rows_of(lane.execute(asked)) == sorted(set(rows_in(answer, "path", "line")))


def test_find(lane: IbisViews, light: Lake) -> None:
    symbols = lane.symbols
    order = ("symbol", "kind", "path", "line", "symbol_id")
    kinds = (*DEFINITIONS, "BINDING", *EXTERNAL_KINDS)
    asked = (
        symbols.filter(symbols.name.startswith("Flask"), symbols.kind.isin(kinds))
        .order_by(*order)
        .select(*order, "subkind", "repo_id")
    )
    answer = light.find("Flask*")
    assert rows_of(lane.execute(asked)) == rows_in(answer, *order, "subkind", "repo_id")


def test_what_was_run_is_recorded(lane: IbisViews, light: Lake, tmp_path: Path) -> None:
    before = len(lane.artifacts)
    repositories = lane.tables["repositories"]
    asked = repositories.repo_id.nunique()
    assert "COUNT(DISTINCT" in lane.compile(asked)
    assert len(lane.artifacts) == before
    assert lane.execute(asked) == 3
    (made,) = lane.artifacts[before:]
    assert made.sql == lane.compile(asked)
    assert (made.lane, made.run_id, made.views) == (lane.engine, light.snapshot.run_id, ("repositories",))
    assert len(made.sha256) == 64
    lane.save_artifacts(tmp_path / "questions.jsonl")
    lines = (tmp_path / "questions.jsonl").read_bytes().splitlines()
    assert [json.decode(line, type=Artifact) for line in lines] == lane.artifacts


def test_every_view_is_a_table(light: Lake) -> None:
    lane = light.ibis()
    assert list(lane.tables) == [view.name for view in VIEWS]
    for view in VIEWS:
        assert tuple(lane.tables[view.name].columns) == view.column_names
        assert view.name in dir(lane)
    with pytest.raises(AttributeError, match="symbols"):
        _ = lane.symbol
    with pytest.raises(UnknownName):
        _ = lane.tables["symbol"]


def test_the_session_of_the_user_stays_as_it_is(spark: SparkSession, ask_lake: Path) -> None:
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    lane = Lake.open(str(ask_lake), spark=theirs).ibis()
    assert lane.errors.count() is not None
    assert theirs.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert theirs.catalog.listTables() == []


def test_ibis_is_not_installed(light: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ibis", None)
    with pytest.raises(EnvironmentProblem, match="Ibis is not installed") as problem:
        light.ibis()
    assert "codeanatomy[ibis]" in problem.value.hint
