"""The solve: relations of files from their programs, and which of them differ from the stored ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import msgpack

from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.executors.executor import Group, piece_order
from codeanatomy.pipeline.tasks.chunks import chunk_name
from codeanatomy.pipeline.tasks.pieces import COUNTS, OUTCOME, PROGRAM, Piece, batches_of, sum_counts
from codeanatomy.pipeline.tasks.solve_stage import RepositoryOutcome, Solve, SolveScope
from codeanatomy.relate.own_imports import OwnImports
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS, PROGRAMS
from support.row_sink import ROWS, RowSink
from support.stage_pieces import file_pieces

TREE = {
    "lib.py": b"def f():\n    return 1\n\n\ndef g():\n    return f()\n",
    "use.py": b"from lib import f, g\n\nx = f()\ng()\nx()\n",
    "tops.py": b"class A:\n    pass\n\n\nclass B(A):\n    pass\n",
    "order.py": b"from tops import A, B\n\n\nclass C(A, B):\n    pass\n",
    "apart.py": b"import sys\n",
}
# The call of `x` in use.py has a target now.
EDIT = {"lib.py": b"def f():\n    made = g\n    return made\n\n\ndef g():\n    return f()\n"}
LIB, USE, ORDER = (file_id("r", path) for path in ("lib.py", "use.py", "order.py"))


def program_pieces(tree: Mapping[str, bytes], chunks: int = 1) -> list[Piece]:
    return [piece for piece in file_pieces(tree, chunks) if piece.name == PROGRAM]


def solved(pieces: list[Piece], scope: SolveScope = SolveScope(), processes: int = 1) -> list[Piece]:  # noqa: B008
    group = Group("r", "", sorted(pieces, key=piece_order))
    return list(Solve({"r": scope}, RowSink(), processes)(iter([group])))


def rows_named(pieces: list[Piece], name: str) -> list[dict[str, Any]]:
    batches = batches_of(piece for piece in pieces if piece.name == name).get(name, ())
    return sorted((row for batch in batches for row in batch.to_pylist()), key=str)


def outcome_of(pieces: list[Piece]) -> RepositoryOutcome:
    [piece] = [piece for piece in pieces if piece.name == OUTCOME]
    return msgpack.decode(piece.data, type=RepositoryOutcome)


def stored_programs(pieces: list[Piece]) -> list[Piece]:
    """The programs of a solve as they are read from the table again."""
    return [piece._replace(name=PROGRAMS) for piece in pieces if piece.name == ROWS + PROGRAMS]


@pytest.fixture(scope="module")
def clean() -> list[Piece]:
    return solved(program_pieces(TREE))


def test_relations_of_all_files(clean: list[Piece]) -> None:
    relations = rows_named(clean, RELATIONS)
    assert {row["path"] for row in relations} == TREE.keys()
    # The same rows go to the table and to the graph stage.
    assert rows_named(clean, ROWS + RELATIONS) == relations
    calls = {(row["path"], row["dst_qname"]) for row in relations if row["relation_kind"] == "CALLS"}
    assert {("use.py", "lib.f"), ("use.py", "lib.g"), ("lib.py", "lib.f")} <= calls
    assert {row["path"] for row in rows_named(clean, DIAGNOSTICS)} == {"order.py"}
    assert {row["path"] for row in rows_named(clean, ROWS + PROGRAMS)} == TREE.keys()
    counts = sum_counts(piece for piece in clean if piece.name == COUNTS)["r"]
    assert counts == {RELATIONS: len(relations), PROGRAMS: len(TREE), DIAGNOSTICS: 1}
    assert outcome_of(clean) == RepositoryOutcome([], [], len(TREE), OwnImports(4))


@pytest.mark.parametrize(("chunks", "processes"), [(1, 2), (7, 1), (7, 2), (100, 3)])
def test_rows_do_not_depend_on_chunks_and_processes(chunks: int, processes: int, clean: list[Piece]) -> None:
    pieces = solved(program_pieces(TREE, chunks), processes=processes)
    for name in (RELATIONS, DIAGNOSTICS, ROWS + PROGRAMS):
        assert rows_named(pieces, name) == rows_named(clean, name), name
    relations = [piece for piece in pieces if piece.name == RELATIONS]
    assert [piece.chunk for piece in relations] == sorted(piece.chunk for piece in relations)
    for piece in relations:
        for row in rows_named([piece], RELATIONS):
            assert chunk_name(row["owner_file_id"], chunks) == piece.chunk


def test_nothing_differs_if_nothing_changed(clean: list[Piece]) -> None:
    pieces = solved(stored_programs(clean), SolveScope(wanted=frozenset()))
    assert outcome_of(pieces) == RepositoryOutcome([], [], len(TREE), OwnImports(4))
    assert [piece.name for piece in pieces if piece.name not in (OUTCOME, COUNTS)] == []


def test_after_an_edit_files_with_other_relations_are_emitted(clean: list[Piece]) -> None:
    edit = program_pieces(EDIT)
    scope = SolveScope(replaced=frozenset({LIB}), wanted=frozenset({LIB}))
    pieces = solved([*stored_programs(clean), *edit], scope)
    files = {each.path: each.is_same for each in outcome_of(pieces).files}
    assert files == {"lib.py": False, "use.py": False}
    whole = solved(program_pieces({**TREE, **EDIT}))
    expected = [row for row in rows_named(whole, RELATIONS) if row["path"] in files]
    assert rows_named(pieces, RELATIONS) == expected
    assert rows_named(pieces, ROWS + PROGRAMS) == [
        row for row in rows_named(whole, ROWS + PROGRAMS) if row["path"] in files
    ]


def test_files_that_are_wanted_are_emitted_even_if_they_are_the_same(clean: list[Piece]) -> None:
    scope = SolveScope(wanted=frozenset({USE, ORDER}))
    pieces = solved(stored_programs(clean), scope)
    assert {each.path: each.is_same for each in outcome_of(pieces).files} == {
        "use.py": True,
        "order.py": True,
    }
    # For the graph stage, not for the table.
    assert {row["path"] for row in rows_named(pieces, RELATIONS)} == {"use.py", "order.py"}
    assert {row["path"] for row in rows_named(pieces, DIAGNOSTICS)} == {"order.py"}
    assert rows_named(pieces, ROWS + RELATIONS) == rows_named(pieces, ROWS + DIAGNOSTICS) == []


def test_a_file_that_is_gone(clean: list[Piece]) -> None:
    scope = SolveScope(replaced=frozenset({LIB}), wanted=frozenset({LIB}))
    outcome = outcome_of(solved(stored_programs(clean), scope))
    assert (outcome.gone, outcome.total) == ([LIB], len(TREE) - 1)
    assert {each.path for each in outcome.files} == {"use.py"}


def test_other_repositories_are_not_solved(clean: list[Piece]) -> None:
    group = Group("other", "", program_pieces(TREE))
    assert list(Solve({"r": SolveScope()}, RowSink(), 1)(iter([group]))) == []
