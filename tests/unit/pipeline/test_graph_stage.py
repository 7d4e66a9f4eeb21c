"""Graph rows of files, from pieces of the stage of files and of the solve, and rows of the repository."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from msgspec import json, msgpack

from codeanatomy.arrow import pack_rows, unpack_rows, with_texts
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP
from codeanatomy.node_ids import file_id
from codeanatomy.normalize.rules import DIAGNOSTICS as NORMALIZED
from codeanatomy.normalize.rules import FILE_TABLES
from codeanatomy.pipeline.executors.executor import Group, groups_of, piece_order
from codeanatomy.pipeline.key_collisions import unpack_owners
from codeanatomy.pipeline.tasks.graph_rows import COPIES, FACTS, NAMED
from codeanatomy.pipeline.tasks.graph_stage import GraphStage, MergeShared
from codeanatomy.pipeline.tasks.pieces import (
    CONTRIBUTIONS,
    COUNTS,
    KEY_OWNERS,
    KEYS,
    OUTCOME,
    PROGRAM,
    SHARED_DIGESTS,
    STORED,
    Piece,
    batches_of,
    sum_counts,
)
from codeanatomy.pipeline.tasks.solve_stage import Solve, SolveScope
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS
from support.row_sink import ROWS, RowSink
from support.stage_pieces import REPOSITORY, file_pieces

TREE = {
    "lib.py": b"import sys\n\n\ndef f(x):\n    return sys.argv[x]\n",
    "use.py": b"from lib import f\nfrom outside import h\n\nf(1)\nh()\n",
    "order.py": b"class A:\n    pass\n\n\nclass B(A):\n    pass\n\n\nclass C(A, B):\n    pass\n",
    "broken.py": b"def broken(:\n",
}
MADE = (NODES, EDGES, PROPS, PROPS_MAP, SHARED)


def inputs(
    chunks: int = 1, *, is_late: bool = False, graphed: Collection[str] = frozenset(TREE)
) -> list[Piece]:
    """What the graph stage gets of the stages before; of files not `graphed` there is evidence."""
    parts = ({path: raw for path, raw in TREE.items() if (path in graphed) is each} for each in (True, False))
    pieces = [
        piece
        for part, is_graphed in zip(parts, (True, False), strict=True)
        for piece in file_pieces(part, chunks, is_late=is_late, is_graphed=is_graphed)
    ]
    programs = sorted((piece for piece in pieces if piece.name == PROGRAM), key=piece_order)
    solved = Solve({"r": SolveScope()}, RowSink(), 1)(iter([Group("r", "", programs)]))
    return [*pieces, *(piece for piece in solved if piece.name in (RELATIONS, DIAGNOSTICS))]


def staged(pieces: list[Piece], work: GraphStage) -> list[Piece]:
    """The rows of the graph: those that were made before, and those that are made from the pieces."""
    read = {*work.reads, FACTS, NAMED}
    named = sorted((piece for piece in pieces if piece.name in read), key=piece_order)
    groups = [Group(repo_id, chunk, list(members)) for repo_id, chunk, members in groups_of(named, "chunk")]
    made = [piece for piece in pieces if piece.name in (*MADE, KEY_OWNERS, KEYS, COUNTS)]
    return [*made, *work(iter(groups))]


def graphed(pieces: list[Piece]) -> list[Piece]:
    return staged(pieces, GraphStage(frozenset(), REPOSITORY, "default", RowSink()))


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


@pytest.mark.parametrize("chunks", [1, 2, 7])
@pytest.mark.parametrize("where", [(), ("lib.py", "broken.py"), TREE], ids=["here", "both", "before"])
def test_rows_do_not_depend_on_the_stage_that_makes_them(
    where: Collection[str], chunks: int, graph: list[Piece]
) -> None:
    before = inputs(chunks, graphed=where)
    assert {row["file_id"] for row in rows_named(before, FACTS)} == {file_id("r", path) for path in where}
    pieces = graphed(before)
    for name in MADE:
        assert rows_named(pieces, name) == rows_named(graph, name), name
        assert is_each_once(rows_named(pieces, name)), name
    assert owners(pieces) == owners(graph)
    assert digests(pieces) == digests(graph)
    counts, expected = (
        sum_counts(piece for piece in each if piece.name == COUNTS)["r"] for each in (pieces, graph)
    )
    names = (*MADE, *COPIES, "graph_files")
    assert {name: counts[name] for name in names} == {name: expected[name] for name in names}


def is_each_once(rows: list[dict[str, Any]]) -> bool:
    return len({repr(row) for row in rows}) == len(rows)


def owners(pieces: list[Piece]) -> set[Any]:
    return {owner for piece in pieces if piece.name == KEY_OWNERS for owner in unpack_owners(piece.data)}


def digests(pieces: list[Piece]) -> dict[str, str]:
    """Digests of what files contribute to rows of no file."""
    found: dict[str, str] = {}
    for piece in pieces:
        if piece.name == SHARED_DIGESTS:
            found |= json.decode(piece.data)
    assert found.keys() == {file_id("r", path) for path in TREE}
    return found


def test_keys_of_definitions_are_reported(graph: list[Piece]) -> None:
    assert {owner.path for owner in owners(graph)} >= {"lib.py", "order.py"}


def test_files_are_normalized_here_where_an_index_is_evidence(graph: list[Piece]) -> None:
    before = inputs(is_late=True)
    assert {piece.name for piece in before}.isdisjoint(FILE_TABLES)
    pieces = staged(before, GraphStage(REPOSITORY, REPOSITORY, "default", RowSink()))
    made = {name: rows_named(inputs(graphed=()), name) for name in FILE_TABLES}
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


def contributions(graph: list[Piece]) -> list[Piece]:
    """What files contribute to rows of no file, wherever their own rows are written."""
    return [piece for piece in graph if piece.name == CONTRIBUTIONS]


def test_rows_of_no_file_are_merged(graph: list[Piece]) -> None:
    pieces = merged(contributions(graph), MergeShared(OWN))
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
    return piece._replace(name=STORED + piece.name, data=pack_rows(with_texts(rows)))


def test_merged_rows_that_are_the_same_are_not_written(graph: list[Piece]) -> None:
    before = merged(contributions(graph), MergeShared(OWN))
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
