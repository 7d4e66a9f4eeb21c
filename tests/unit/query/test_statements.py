"""Queries over slices: what is read, and that what is typed stays a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.catalog.spec import Column
from codeanatomy.delta.read.column_ranges import ColumnRange
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.errors import TableMissing
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import InlineRows, Query, Slice, edges, nodes, of_repository
from codeanatomy.query.verbs.result import rows_result as answered
from support.ask_lake import reader_of

SHAPE = (Column("name", "string", "."), Column("size", "int", "."))


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def test_a_slice_opens_only_the_files_of_its_kinds(reader: LightReader) -> None:
    folders = {Path(file.path).parts[0] for file in reader.files(Slice("cpg_nodes", node_kind=("CLASS",)))}
    assert folders == {"node_kind=CLASS"}
    assert reader.files(Slice("cpg_nodes", node_kind=())) == []
    assert len(reader.files(Slice("cpg_nodes"))) > 20


def test_a_slice_by_id_opens_only_the_files_that_may_hold_it(reader: LightReader) -> None:
    first = reader.files(Slice("cpg_edges_by_dst"))[0]
    held = first.column_range("dst_node_id")
    least, greatest = held.least, held.greatest
    assert reader.files(Slice("cpg_edges_by_dst", dst_node_id=(least,)))
    assert reader.files(Slice("cpg_edges_by_dst", dst_node_id=("zzz",))) == []
    assert reader.files(Slice("cpg_edges_by_dst", dst_node_id=("", greatest)))


def test_bounds_and_partitions_decide() -> None:
    file = LoggedFile("p", 1, {"kind": "A"}, {"kind": ColumnRange("A", "A"), "id": ColumnRange("c", "m")})
    assert file.may_hold("kind", ["A", "B"])
    assert not file.may_hold("kind", ["B"])
    assert file.may_hold("id", ["c"])
    assert file.may_hold("id", ["m"])
    assert not file.may_hold("id", ["b", "n"])
    assert file.may_hold("other", ["x"])


def test_rows_of_a_slice_are_those_and_no_others(reader: LightReader) -> None:
    query = Query(
        "SELECT DISTINCT n.node_kind, n.repo_id FROM n",
        {"n": Slice("cpg_nodes", node_kind=("CLASS", "MODULE"), repo_id=("depot",))},
        order=("node_kind",),
    )
    assert reader.rows(query) == [("CLASS", "depot"), ("MODULE", "depot")]
    none = Query("SELECT count(*) FROM n", {"n": Slice("cpg_edges_by_src", src_node_id=())})
    assert reader.rows(none) == [(0,)]


def test_rows_at_hand(reader: LightReader) -> None:
    held = InlineRows(SHAPE, [("it's", 1), (None, None), ("\\ \x00\n🐍", 2)])
    query = Query("SELECT name, size FROM h", {"h": held}, order=("size",))
    assert reader.rows(query) == [("it's", 1), ("\\ \x00\n🐍", 2), (None, None)]
    assert reader.rows(Query("SELECT name FROM h", {"h": InlineRows(SHAPE, [])})) == []


def test_a_limit_tells_the_total(reader: LightReader) -> None:
    held = InlineRows(SHAPE, [(str(number), number) for number in range(7)])
    query = Query("SELECT * FROM h", {"h": held}, order=("size DESC",), columns=("name",))
    assert reader.rows(query, 2) == [("6", 7), ("5", 7)]
    assert reader.rows(query) == [(str(number),) for number in range(6, -1, -1)]


def test_an_answer_that_is_at_hand_is_not_read() -> None:
    query = answered(("symbol", "line"), [{"symbol": "a", "line": 1}, {"symbol": "b"}]).query
    assert query.inline_rows() == [("a", 1), ("b", None)]
    assert query.inline_rows(1) == [("a", 1, 2)]
    assert Query("SELECT * FROM n", {"n": Slice("cpg_nodes")}).inline_rows() is None


def test_slices_of_a_repository() -> None:
    assert of_repository("repo_files_v1", None).wanted == {}
    assert nodes(["CLASS"], "shop", path=["a.py"]).wanted == {
        "repo_id": ("shop",),
        "node_kind": ("CLASS",),
        "path": ("a.py",),
    }
    part = edges(("CALLS",))
    assert (part.table, part.wanted) == ("cpg_edges", {"edge_kind": ("CALLS",)})


def test_an_argument_is_a_value(reader: LightReader) -> None:
    query = Query("SELECT ? AS typed", args=("' OR 1=1 --",))
    assert reader.rows(query) == [("' OR 1=1 --",)]


def test_a_table_that_was_not_published(reader: LightReader) -> None:
    with pytest.raises(TableMissing, match="not published"):
        reader.rows(Query("SELECT * FROM t", {"t": Slice("run_lease")}))
