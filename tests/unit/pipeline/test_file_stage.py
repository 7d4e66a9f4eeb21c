"""Rows, programs and graph rows of files; a file that kills its process loses one step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import msgpack

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.partitions import RepositoryListing, partition_files
from codeanatomy.file_view import FileView
from codeanatomy.graph import facts as file_facts
from codeanatomy.graph.context import Context
from codeanatomy.graph.facts import KeptFacts
from codeanatomy.graph.rows import NODES, TABLES
from codeanatomy.node_ids import file_id
from codeanatomy.normalize.rules import DIAGNOSTICS, FILE_TABLES
from codeanatomy.pipeline.executors.executor import Group, piece_order
from codeanatomy.pipeline.tasks import file_stage
from codeanatomy.pipeline.tasks.chunks import chunk_name
from codeanatomy.pipeline.tasks.file_stage import FileStage, StoredFileStage
from codeanatomy.pipeline.tasks.graph_rows import FACTS, NAMED
from codeanatomy.pipeline.tasks.graph_stage import GraphStage
from codeanatomy.pipeline.tasks.pieces import COUNTS, PROGRAM, Piece, batches_of, sum_counts
from codeanatomy.pipeline.tasks.sinks import Sink
from codeanatomy.relate.compile.file_program import CompiledFile
from codeanatomy.relate.program import Program
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.sources.detect import list_source
from support.edits import write_tree
from support.marks import quick
from support.row_sink import ROWS, RowSink, written

TREE = {
    "a.py": b"from b import g\n\n\ndef f(x: int) -> int:\n    return g(x)\n",
    "b.py": b"def g(y):\n    for each in range(y):\n        print(each)\n    return y\n",
    "c.py": b"import a\n\na.f(1)\n",
    "broken.py": b"def broken(:\n",
}
EXTRACTED = ("repo_files_v1", *(extractor.table for extractor in EXTRACTORS))
PASSED = {
    name: reads
    for name, reads in GraphStage(frozenset(), frozenset({"r"}), "default", Sink()).reads.items()
    if name != RELATIONS
}
Tables = dict[str, list[dict[str, Any]]]
OPTIONS = ExtractOptions()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_tree(tmp_path / "source", TREE)
    return tmp_path / "source"


def first(options: ExtractOptions = OPTIONS, chunks: int = 1, **steps: frozenset[str]) -> FileStage:
    all_steps = dict.fromkeys(("normalized", "compiled", "graphed"), frozenset({"r"})) | steps
    return FileStage(
        options, profile="default", passed=PASSED, chunk_counts={"r": chunks}, sink=RowSink(), **all_steps
    )


def pieces_of(source: Path, work: FileStage, tasks: int = 1) -> list[Piece]:
    listing = RepositoryListing("r", list_source(source, work.options))
    return [piece for task in partition_files([listing], tasks) for piece in work(msgpack.encode(task))]


def tables_of(pieces: list[Piece]) -> Tables:
    """The rows that tasks make, by table, in one order."""
    return {
        name: sorted(pa.Table.from_batches(rows).to_pylist(), key=str)
        for name, rows in written(pieces).items()
    }


def programs_of(pieces: list[Piece]) -> dict[str, Program]:
    batches = batches_of(piece for piece in pieces if piece.name == PROGRAM).get(PROGRAM, ())
    rows = [row for batch in batches for row in batch.to_pylist()]
    return {row["path"]: msgpack.decode(row["program"], type=Program) for row in rows}


def graph_of(pieces: list[Piece]) -> Tables:
    """Rows of the graph's tables, with what is handed over to resolution, in one order."""
    batches = batches_of(piece for piece in pieces if piece.name in (*TABLES, FACTS, NAMED))
    return {
        name: sorted((row for batch in rows for row in batch.to_pylist()), key=str)
        for name, rows in batches.items()
    }


def of_paths(tables: Tables, *paths: str) -> Tables:
    kept = {name: [row for row in rows if row.get("path") in paths] for name, rows in tables.items()}
    return {name: rows for name, rows in kept.items() if rows}


def test_files_are_extracted_normalized_and_compiled_in_one_task(source: Path) -> None:
    pieces = pieces_of(source, first())
    tables = tables_of(pieces)
    for name in EXTRACTED:
        assert {row["path"] for row in tables[name]} == TREE.keys(), name
    assert {row["path"] for row in tables["py_bc_blocks_norm_v1"]} == TREE.keys() - {"broken.py"}
    assert {row["path"] for row in tables[DIAGNOSTICS]} == {"broken.py"}
    # A file without a tree has a program with the reason.
    programs = programs_of(pieces)
    assert {path for path, program in programs.items() if program.failure} == {"broken.py"}
    assert programs.keys() == TREE.keys()
    counts = sum_counts(piece for piece in pieces if piece.name == COUNTS)["r"]
    for name, rows in tables.items():
        assert counts[name] == len(rows), name


@pytest.mark.parametrize(("tasks", "chunks"), [(1, 2), (2, 7), (7, 7)])
def test_rows_do_not_depend_on_the_number_of_tasks_and_chunks(source: Path, tasks: int, chunks: int) -> None:
    one, several = pieces_of(source, first()), pieces_of(source, first(chunks=chunks), tasks)
    assert tables_of(several) == tables_of(one)
    assert graph_of(several) == graph_of(one)
    assert {row["path"] for row in graph_of(one)[NAMED]} == TREE.keys()
    assert programs_of(several) == programs_of(one)
    for piece in several:
        if piece.name in PASSED or piece.name in (PROGRAM, FACTS, NAMED):
            found = {
                chunk_name(owner, chunks)
                for rows in batches_of([piece]).values()
                for batch in rows
                for owner in batch.column("file_id").to_pylist()
            }
            assert found == {piece.chunk}


def test_only_the_steps_that_have_work_are_done(source: Path) -> None:
    nothing: frozenset[str] = frozenset()
    pieces = pieces_of(source, first(normalized=nothing, compiled=nothing, graphed=nothing))
    assert not graph_of(pieces)
    assert not programs_of(pieces)
    assert not set(tables_of(pieces)) & set(FILE_TABLES)
    normalized = pieces_of(source, first(compiled=nothing, graphed=nothing))
    assert not graph_of(normalized)
    assert not programs_of(normalized)
    assert tables_of(normalized) == tables_of(pieces_of(source, first()))


def test_stored_evidence_gives_the_same_rows_and_programs(source: Path) -> None:
    fresh = pieces_of(source, first())
    stored = [
        piece._replace(name=piece.name.removeprefix(ROWS), chunk="0000", repo_id="r")
        for piece in fresh
        if piece.name.removeprefix(ROWS) in (*EXTRACTED, "file_line_index_v1") and piece.name.startswith(ROWS)
    ]
    again = list(
        StoredFileStage(first(graphed=frozenset()))(
            iter([Group("r", "0000", sorted(stored, key=piece_order))])
        )
    )
    made = tables_of(again)
    assert made == {name: rows for name, rows in tables_of(fresh).items() if name in FILE_TABLES}
    assert programs_of(again) == programs_of(fresh)


RULES = ("file_columns", "compile_with_scopes")
PROBLEMS: dict[str, tuple[Callable[[], object], str]] = {
    "crashed": (os.abort, "SIGABRT"),
    "time_limit": (lambda: time.sleep(1000), "extract.file_seconds"),
}


@pytest.mark.parametrize(("problem", "rule"), quick(product(PROBLEMS, RULES), 1, 2))
def test_a_file_that_kills_the_process_keeps_its_evidence(
    problem: str, rule: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = pieces_of(source, first())
    act, message = PROBLEMS[problem]
    real = getattr(file_stage, rule)

    def deadly(view: FileView, failure: str | None = None, *rest: Any) -> Any:
        if view.path == "b.py" and failure is None:
            act()
        return real(view, failure, *rest)

    monkeypatch.setattr(file_stage, rule, deadly)
    pieces = pieces_of(source, first(ExtractOptions(file_seconds=3.0)))
    before, now = tables_of(plain), tables_of(pieces)
    others = TREE.keys() - {"b.py"}
    assert of_paths(now, *others) == of_paths(before, *others)
    # Its extract rows are complete, and instead of its normalized ones there is a diagnostic.
    kept = of_paths(now, "b.py")
    extracted = {name: rows for name, rows in of_paths(before, "b.py").items() if name not in FILE_TABLES}
    assert {name: rows for name, rows in kept.items() if name not in FILE_TABLES} == extracted
    [diagnostic] = kept[DIAGNOSTICS]
    assert diagnostic["diag_code"] == "not_normalized"
    assert message in diagnostic["message"]
    assert kept.keys() - extracted.keys() <= {DIAGNOSTICS, "normalize_evidence_v1"}
    # Other files have the same graph, and it has one.
    graph, whole = graph_of(pieces), graph_of(plain)
    assert of_paths(graph, *others) == of_paths(whole, *others)
    assert {row["node_kind"] for row in of_paths(graph, "b.py")[NODES]} >= {"FILE", "DIAGNOSTIC", "CALLSITE"}
    programs, complete = programs_of(pieces), programs_of(plain)
    assert programs["b.py"].failure == problem
    assert {path: programs[path] for path in programs if path != "b.py"} == {
        path: complete[path] for path in complete if path != "b.py"
    }


def test_an_error_of_the_compiler_costs_one_program(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = pieces_of(source, first())
    real = file_stage.compile_with_scopes

    def failing(view: FileView, failure: str | None = None) -> CompiledFile:
        if view.path == "b.py" and failure is None:
            raise RecursionError("too deep")
        return real(view, failure)

    monkeypatch.setattr(file_stage, "compile_with_scopes", failing)
    pieces = pieces_of(source, first())
    assert tables_of(pieces) == tables_of(plain)
    others = TREE.keys() - {"b.py"}
    assert of_paths(graph_of(pieces), *others) == of_paths(graph_of(plain), *others)
    programs = programs_of(pieces)
    assert programs["b.py"].failure == "RecursionError"
    assert programs["b.py"].file_id == file_id("r", "b.py")
    assert {path: each for path, each in programs.items() if path != "b.py"} == {
        path: each for path, each in programs_of(plain).items() if path != "b.py"
    }


def test_an_error_of_the_graph_costs_what_resolution_needs(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = pieces_of(source, first())

    def failing(context: Context) -> list[file_facts.Block]:
        if context.file.path == "b.py":
            raise RecursionError("too deep")
        return []

    monkeypatch.setattr(file_facts, "_if_blocks", failing)
    pieces = pieces_of(source, first())
    assert tables_of(pieces) == tables_of(plain)
    assert programs_of(pieces) == programs_of(plain)
    graph, whole = graph_of(pieces), graph_of(plain)
    assert {name: graph[name] for name in (*TABLES, NAMED)} == {
        name: whole[name] for name in (*TABLES, NAMED)
    }
    facts = {each.path: each for each in map(KeptFacts.unpack, (row["facts"] for row in graph[FACTS]))}
    assert {path: each.unreported for path, each in facts.items()} == {
        path: ["facts: RecursionError: too deep"] if path == "b.py" else [] for path in TREE
    }
    assert not facts["b.py"].calls


def test_a_text_that_cannot_be_encoded_costs_the_program_and_no_more(tmp_path: Path) -> None:
    """A lone surrogate in `__all__` is a value of the program; the graph has the definitions."""
    raw = b'__all__ = ["\\udfff"]\n\n\ndef f():\n    pass\n'
    (tmp_path / "a.py").write_bytes(raw)
    pieces = pieces_of(tmp_path, first())
    [program] = programs_of(pieces).values()
    assert program.failure == "UnicodeEncodeError"
    tables = tables_of(pieces)
    assert DIAGNOSTICS not in tables
    assert {row["path"] for row in tables["ast_files_v1"]} == {"a.py"}
    assert any("FunctionDef" in str(row) for row in tables["ast_files_v1"])
