"""Edge ids are computed from kind and ends: the same in DuckDB and Python, and files are selected by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis.strategies import integers, one_of, sampled_from, text

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.kinds import EDGE_KINDS
from codeanatomy.catalog.tables.graph import EDGE_ID, EDGE_KEY
from codeanatomy.delta.read.duck import select_rows
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import definition_key, edge_id, natural_id, node_id
from codeanatomy.query.engines.derived_columns import derived_term, parse_edge_id, with_derived
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.light import check, run_sql
from codeanatomy.query.sql.pruning import conditions_of
from support.hostile_ids import HOSTILE_EDGES
from support.tiny_graph import ARGUMENT, CALL, FUNCTION, derived, edge, healthy, write

CALLS = edge_id("CALLS", CALL, FUNCTION)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake in which two calls differ only in their role."""
    folder = tmp_path_factory.mktemp("edges")
    tables = healthy()
    tables["cpg_edges"].append(edge("CALLS", CALL, FUNCTION, span=(15, 19), role="init", repeat=1))
    write(folder, derived(tables))
    return folder


@pytest.fixture
def reader(lake: Path) -> LightReader:
    return LightReader(Snapshot.open(str(lake)))


# The value


def computed(rows: list[dict[str, Any]]) -> list[str]:
    """The ids that DuckDB computes."""
    schema = arrow_schema(catalog.table("cpg_edges"))
    connection = duckdb.connect()
    connection.register("rows", pa.Table.from_pylist(rows, schema))
    found = connection.execute(f"SELECT edge_id FROM ({with_derived('cpg_edges', 'SELECT * FROM rows')})")
    return [value for (value,) in found.fetchall()]


def test_duckdb_and_python_give_the_same_ids() -> None:
    rows = [dict(zip(EDGE_KEY, key, strict=True)) for key in HOSTILE_EDGES]
    assert computed(rows) == [edge_id(*key) for key in HOSTILE_EDGES]
    assert [parse_edge_id(edge_id(*key)) for key in HOSTILE_EDGES] == HOSTILE_EDGES


NAMES = text(max_size=30) | text(alphabet=";%:.'\"\\é0123", max_size=8)
NODES = one_of(
    NAMES.map(lambda name: node_id("BINDING", definition_key("shop", "a.py"), name)),
    NAMES.map(lambda name: natural_id("QUALIFIED_NAME", name, name)),
)


@given(sampled_from(list(EDGE_KINDS)), NODES, NODES, integers(0, 999_999_999))
def test_an_id_is_read_as_the_edge_it_was_made_of(kind: str, src: str, dst: str, repeat: int) -> None:
    assert parse_edge_id(edge_id(kind, src, dst, repeat)) == (kind, src, dst, repeat)


@pytest.mark.parametrize(
    "malformed",
    [
        "",
        "CALLS",
        "CALLS;a:x",
        "CALLS;a:x;b:y;",
        "CALLS;a:x;b:y;0",
        "CALLS;a:x;b:y;01",
        "CALLS;a:x;b:y;-1",
        "CALLS;a:x;b:y;+1",
        "CALLS;a:x;b:y;1_0",
        "CALLS;a:x;b:y;٣",
        "CALLS;a:x;b:y;1\n",
        "CALLS;a:x;b:y;9999999999",
        "CALLS;a:x;b:y;1;2",
        "edge:0123456789abcdefghijkl",
        "'; DROP TABLE x --",
    ],
)
def test_a_malformed_id_is_of_no_edge(reader: LightReader, malformed: str) -> None:
    rows = reader.rows(Query("SELECT * FROM e", {"e": Slice("cpg_edges", edge_id=(malformed,))}))
    assert rows == []
    assert reader.scans[-1].candidate_files == 0 or parse_edge_id(malformed) is not None


# Reading


def test_a_slice_has_the_derived_column(reader: LightReader) -> None:
    for table in ("cpg_edges", "cpg_edges_by_src", "cpg_edges_by_dst"):
        query = Query("SELECT e.edge_id, e.repeat FROM e", {"e": Slice(table, edge_kind=("CALLS",))})
        assert sorted(reader.rows(query)) == [(CALLS, 0), (f"{CALLS};1", 1)]


def test_rows_are_selected_by_their_ids(reader: LightReader) -> None:
    argument = edge_id("HAS_ARGUMENT", CALL, ARGUMENT)
    for ids in ((CALLS,), (f"{CALLS};1", argument), (CALLS, "x", f"{argument};1"), ()):
        found = reader.rows(Query("SELECT e.edge_id FROM e", {"e": Slice("cpg_edges", edge_id=ids)}))
        assert {value for (value,) in found} == {CALLS, f"{CALLS};1", argument} & set(ids)


def test_a_column_that_is_not_used_is_not_computed(reader: LightReader) -> None:
    """DuckDB reads only `confidence`: neither the kind, which is the folder's, nor the ends."""
    query = Query("SELECT max(e.confidence) FROM e", {"e": Slice("cpg_edges")})
    plan = duckdb.connect().execute(f"EXPLAIN {query.text(reader.relation)}").fetchall()[0][1]
    assert "confidence" in plan
    assert "src_node_id" not in plan
    assert "';'" not in plan


def test_a_table_without_derived_columns_is_read_as_it_is() -> None:
    stored = select_rows("lake", "cpg_nodes", [])
    assert with_derived("cpg_nodes", stored) == stored


# Which files are opened


def test_an_edge_is_looked_up_in_the_files_that_may_hold_it(reader: LightReader) -> None:
    part = Slice("cpg_edges", edge_id=(CALLS,))
    assert {file.partition["edge_kind"] for file in reader.files(part)} == {"CALLS"}
    assert len(reader.files(Slice("cpg_edges"))) > 5
    assert reader.files(Slice("cpg_edges", edge_id=(edge_id("CALLS", "a:x", FUNCTION),))) == []
    assert reader.files(Slice("cpg_edges_by_src", edge_id=(edge_id("CALLS", "zzz:x", FUNCTION),))) == []


def test_explain_opens_only_files_that_may_hold_the_edge(lake: Path) -> None:
    opened = Lake.open(str(lake))
    assert [row["edge_id"] for row in opened.explain(f"{CALLS};1")] == [f"{CALLS};1"]
    scans = [scan for scan in opened.reader.scans if scan.table == "cpg_edges_by_src"]
    assert [scan.candidate_files for scan in scans] == [1]
    assert not [scan for scan in opened.reader.scans if scan.table == "cpg_edges"]


def test_an_id_in_a_statement_selects_files(reader: LightReader) -> None:
    edges = catalog.table("cpg_edges")
    for condition, ids in (
        (f"edge_id = '{CALLS}'", [CALLS]),
        (f"edge_id IN ('{CALLS}', 'x')", [CALLS, "x"]),
        (f"line > 0 AND e.edge_id = '{CALLS}'", [CALLS]),
    ):
        tree = check(f"SELECT e.repeat FROM edges AS e WHERE {condition}").tree
        assert derived_term(edges, EDGE_ID.column.name, ids) in conditions_of(tree)["edges"]
    for condition in (f"edge_id > '{CALLS}'", f"NOT edge_id = '{CALLS}'", "edge_id = src_node_id"):
        assert conditions_of(check(f"SELECT repeat FROM edges WHERE {condition}").tree) == {}


def test_a_statement_may_use_the_id(reader: LightReader) -> None:
    asked = f"SELECT edge_id, repeat FROM edges WHERE edge_id = '{CALLS};1'"
    assert run_sql(reader, asked, limit=10, seconds=30).rows == ({"edge_id": f"{CALLS};1", "repeat": 1},)
    whole = run_sql(reader, "SELECT * FROM edges WHERE edge_kind = 'CALLS'", limit=10, seconds=30)
    names = tuple(column.name for column in catalog.table("cpg_edges").readable_columns)
    assert whole.columns == names
