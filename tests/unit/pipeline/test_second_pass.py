"""Pass two: graph rows of files from pieces of pass one and of the solve, and rows of the repository."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from msgspec import msgpack

from codeanatomy.arrow import decode_texts, pack_rows, unpack_rows
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP
from codeanatomy.node_ids import file_id
from codeanatomy.normalize.rules import DIAGNOSTICS as NORMALIZED
from codeanatomy.normalize.rules import FILE_TABLES
from codeanatomy.pipeline.executors.executor import Group, groups_of, piece_order
from codeanatomy.pipeline.key_collisions import unpack_owners
from codeanatomy.pipeline.pieces import (
    COUNTS,
    KEY_OWNERS,
    OUTCOME,
    PROGRAM,
    STORED,
    Piece,
    batches_of,
    sum_counts,
)
from codeanatomy.pipeline.second_pass import COPIES, MergeShared, SecondPass
from codeanatomy.pipeline.solve import Solve, SolveScope
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS
from support.pass_pieces import REPOSITORY, first_pieces
from support.row_sink import ROWS, RowSink

TREE = {
    "lib.py": b"import sys\n\n\ndef f(x):\n    return sys.argv[x]\n",
    "use.py": b"from lib import f\nfrom outside import h\n\nf(1)\nh()\n",
    "order.py": b"class A:\n    pass\n\n\nclass B(A):\n    pass\n\n\nclass C(A, B):\n    pass\n",
    "broken.py": b"def broken(:\n",
}
MADE = (NODES, EDGES, PROPS, PROPS_MAP, SHARED)


def inputs(chunks: int = 1, *, is_late: bool = False) -> list[Piece]:
    """What pass two gets of the passes before."""
    pieces = first_pieces(TREE, chunks, is_late=is_late)
    programs = sorted((piece for piece in pieces if piece.name == PROGRAM), key=piece_order)
    solved = Solve({"r": SolveScope()}, RowSink(), 1)(iter([Group("r", "", programs)]))
    return [*pieces, *(piece for piece in solved if piece.name in (RELATIONS, DIAGNOSTICS))]


def second(pieces: list[Piece], work: SecondPass) -> list[Piece]:
    named = sorted((piece for piece in pieces if piece.name in work.reads), key=piece_order)
    groups = [Group(repo_id, chunk, list(members)) for repo_id, chunk, members in groups_of(named, "chunk")]
    return list(work(iter(groups)))


def graphed(pieces: list[Piece]) -> list[Piece]:
    return second(pieces, SecondPass(frozenset(), REPOSITORY, "default", RowSink()))


def rows_named(pieces: list[Piece], name: str) -> list[dict[str, Any]]:
    batches = batches_of(piece for piece in pieces if piece.name == name).get(name, ())
    return sorted((row for batch in batches for row in batch.to_pylist()), key=str)


@pytest.fixture(scope="module")
def graph() -> list[Piece]:
    return graphed(inputs())


def test_graph_rows_of_all_files(graph: list[Piece]) -> None:
    nodes = rows_named(graph, NODES)
    files = {row["path"] for row in nodes if row["node_kind"] == "FILE"}
    assert files == TREE.keys()
    assert [row["path"] for row in nodes if row["node_kind"] == "FUNCTION"] == ["lib.py"]
    calls = [row for row in rows_named(graph, EDGES) if row["edge_kind"] == "CALL_GRAPH"]
    assert {row["owner_file_id"] for row in calls} >= {file_id("r", "use.py")}
    # Diagnostics of relate are there as well as those of normalize.
    diagnostics = {row["path"] for row in nodes if row["node_kind"] == "DIAGNOSTIC"}
    assert diagnostics == {"order.py", "broken.py"}
    counts = sum_counts(piece for piece in graph if piece.name == COUNTS)["r"]
    for name in MADE:
        assert counts[name] == len(rows_named(graph, name)), name
    assert {counts[copy] for copy in COPIES} == {counts[EDGES]}
    assert counts["graph_files"] == len(TREE)


@pytest.mark.parametrize("chunks", [7, 1000])
def test_rows_do_not_depend_on_chunks(chunks: int, graph: list[Piece]) -> None:
    pieces = graphed(inputs(chunks))
    for name in MADE:
        assert rows_named(pieces, name) == rows_named(graph, name), name


def test_keys_of_definitions_are_reported(graph: list[Piece]) -> None:
    owners = [owner for piece in graph if piece.name == KEY_OWNERS for owner in unpack_owners(piece.data)]
    assert {owner.path for owner in owners} >= {"lib.py", "order.py"}


def test_files_are_normalized_here_where_an_index_is_evidence(graph: list[Piece]) -> None:
    before = inputs(is_late=True)
    assert {piece.name for piece in before}.isdisjoint(FILE_TABLES)
    pieces = second(before, SecondPass(REPOSITORY, REPOSITORY, "default", RowSink()))
    made = {name: rows_named(inputs(), name) for name in FILE_TABLES}
    assert {row["path"] for row in rows_named(pieces, ROWS + NORMALIZED)} == {"broken.py"}
    for name in ("py_bc_blocks_norm_v1", "type_exprs_norm_v1"):
        assert len(rows_named(pieces, ROWS + name)) == len(made[name]), name
    for name in MADE:
        assert rows_named(pieces, name) == rows_named(graph, name), name


OWN = frozenset({"r"})


def merged(pieces: list[Piece], work: MergeShared) -> list[Piece]:
    return list(work(iter([Group("r", "", sorted(pieces, key=piece_order))])))


def shared(graph: list[Piece]) -> list[Piece]:
    return [piece for piece in graph if piece.name == SHARED]


def test_rows_of_no_file_are_merged(graph: list[Piece]) -> None:
    pieces = merged(shared(graph), MergeShared(OWN))
    nodes = rows_named(pieces, NODES)
    assert {row["owner_file_id"] for row in nodes} == {None}
    assert {"REPOSITORY", "EXTERNAL_MODULE"} & {row["node_kind"] for row in nodes}
    assert {piece.chunk for piece in pieces} == {""}
    counts = sum_counts(piece for piece in pieces if piece.name == COUNTS)["r"]
    assert counts[NODES] == len(nodes)
    assert counts["cpg_edges_by_src"] == counts[EDGES]


def as_stored(piece: Piece) -> Piece:
    """The piece as it is read from a table: with texts in place of codes."""
    [rows] = unpack_rows(piece.data)
    texts = pa.RecordBatch.from_arrays([decode_texts(column) for column in rows.columns], rows.schema.names)
    return piece._replace(name=STORED + piece.name, data=pack_rows(texts))


def test_merged_rows_that_are_the_same_are_not_written(graph: list[Piece]) -> None:
    before = merged(shared(graph), MergeShared(OWN))
    stored = [as_stored(piece) for piece in (*shared(graph), *before) if piece.name in MADE]
    use = file_id("r", "use.py")
    # Nothing is new: the stored contributions make the stored rows.
    same = merged(stored, MergeShared(OWN, frozenset()))
    assert [msgpack.decode(piece.data) for piece in same if piece.name == OUTCOME] == [[]]
    assert not rows_named(same, NODES)
    # A file is gone, and with it the module that only it imports.
    gone = merged(stored, MergeShared(OWN, frozenset({use})))
    [changed] = [msgpack.decode(piece.data) for piece in gone if piece.name == OUTCOME]
    assert NODES in changed
    lost = {row["node_id"] for row in rows_named(before, NODES)} - {
        row["node_id"] for row in rows_named(gone, NODES)
    }
    assert len(lost) >= 1
