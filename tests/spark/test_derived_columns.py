"""Edge ids in Spark: the values that Python gives, and slices by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.tables.graph import EDGE_ID, EDGE_KEY
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import edge_id
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.spark import FEW
from codeanatomy.query.engines.spark_lake import SparkLake
from codeanatomy.query.engines.statements import Query, Slice
from support.hostile_ids import HOSTILE_EDGES
from support.tiny_graph import CALL, FUNCTION, derived, edge, healthy, write

CALLS = edge_id("CALLS", CALL, FUNCTION)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    folder: Path = tmp_path_factory.mktemp("edges")
    tables = healthy()
    hostile = [edge(kind, src, dst, repeat=repeat) for kind, src, dst, repeat in HOSTILE_EDGES]
    tables["cpg_edges"] += [edge("CALLS", CALL, FUNCTION, role="init", repeat=1), *hostile]
    write(folder, derived(tables))
    opened = SparkLake(Snapshot.open(str(folder)), spark)
    yield opened
    opened.close()


def test_spark_and_python_give_the_same_ids(spark: SparkSession) -> None:
    rows = [dict(zip(EDGE_KEY, key, strict=True)) for key in HOSTILE_EDGES]
    schema = pa.schema([arrow_schema(catalog.table("cpg_edges")).field(name) for name in EDGE_KEY])
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
    found = frame.selectExpr(*EDGE_KEY, EDGE_ID.sql).collect()
    assert {tuple(row)[:4]: row["edge_id"] for row in found} == {key: edge_id(*key) for key in HOSTILE_EDGES}


def test_tables_graphs_and_views_have_the_ids(lake: SparkLake) -> None:
    expected = {CALLS, f"{CALLS};1"}
    for rows in (
        lake.edges("CALLS"),
        lake.table("cpg_edges_by_src").where("edge_kind = 'CALLS'"),
        lake.graph("CALLS").edges,
        lake.view("edges").where("edge_kind = 'CALLS'"),
        lake.sql("SELECT edge_id FROM edges WHERE edge_kind = 'CALLS' ORDER BY repeat"),
    ):
        assert {row["edge_id"] for row in rows.select("edge_id").collect()} == expected
    names = [column.name for column in catalog.table("cpg_edges").readable_columns]
    assert lake.view("edges").columns == names == lake.table("cpg_edges").columns


def test_rows_are_selected_by_their_ids_as_without_a_jvm(lake: SparkLake) -> None:
    light = LightReader(lake.snapshot)
    ids = [edge_id(*key) for key in HOSTILE_EDGES]
    for wanted in (ids[:3], ids, [*ids, *(f"X;a:{n};b" for n in range(FEW))], [CALLS, "x"], ["x"], []):
        query = Query(
            "SELECT e.edge_id FROM e", {"e": Slice("cpg_edges", edge_id=wanted)}, order=("edge_id",)
        )
        assert lake.reader.rows(query) == light.rows(query)
        assert {value for (value,) in light.rows(query)} == {*ids, CALLS} & set(wanted)


def test_an_id_that_is_not_used_is_not_computed(lake: SparkLake) -> None:
    rows = lake.edges("CALLS").groupBy().max("confidence")
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert "concat" not in plan
    assert "src_node_id" not in plan
