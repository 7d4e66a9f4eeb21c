"""Rules of single files: what a failing rule costs, and how rows are packed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, pack_rows, unpack_rows
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import ExtractorResult
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.file_view import AST, BYTECODE, LIBCST, FileView
from codeanatomy.normalize import rules
from codeanatomy.normalize.rules import DIAGNOSTICS, FILE_TABLES, READS, file_rows
from support.normalize_stage import file_of, source_of

TEXT = "def f(a: int) -> str:\n    while a: a = g(a)\n    return a\n"


def whole(text: str) -> FileView:
    file = file_of(source_of(text))
    said: ExtractorResult = libcst_files_v1(source_of(text), ExtractOptions())
    return FileView(file.repo_id, file.file_id, file.path, {**file.tables, LIBCST: said.cells})


def pack_file_rows(file: FileView) -> tuple[dict[str, bytes], dict[str, int]]:
    """Rows of a file as Arrow streams by table, and their counts."""
    made = file_rows(file)
    return {name: pack_rows(made[name]) for name in FILE_TABLES}, {
        name: made[name].num_rows for name in FILE_TABLES
    }


def rows(stream: bytes) -> pa.Table:
    return pa.Table.from_batches(unpack_rows(stream))


def test_streams_have_the_schema_and_the_order_of_their_tables() -> None:
    streams, counts = pack_file_rows(whole(TEXT))
    assert tuple(streams) == FILE_TABLES
    for name, stream in streams.items():
        table, found = catalog.table(name), rows(stream)
        assert found.schema == arrow_schema(table)
        assert found.num_rows == counts[name]
        assert found.equals(found.sort_by([(key, "ascending") for key in table.ordering]))
    assert counts["type_exprs_norm_v1"] == 2
    # The compiler tests `a` before the loop and at its end: one, two for the call, one, two for the return.
    assert counts["py_bc_reaches_v1"] == 6
    assert counts[DIAGNOSTICS] == 0


def test_rows_depend_on_the_file_alone() -> None:
    first, second = pack_file_rows(whole(TEXT)), pack_file_rows(whole(TEXT))
    assert first == second


def test_silent_witnesses_give_no_rows() -> None:
    file = FileView("r", "file:x", "a.py", {})
    _, counts = pack_file_rows(file)
    assert set(counts.values()) == {0}
    rows = {table: dict.fromkeys(READS[table]) for table in (AST, LIBCST, BYTECODE)}
    nothing = FileView("r", "file:x", "a.py", rows)
    _, counts = pack_file_rows(nothing)
    assert set(counts.values()) == {0}


def test_a_rule_that_fails_costs_its_family_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(file: FileView) -> object:
        raise KeyError("no such opcode")

    flow, types = rules.FAMILIES
    monkeypatch.setattr(rules, "FAMILIES", (flow._replace(read=broken), types))
    found = file_rows(whole(TEXT))
    assert found["py_bc_blocks_norm_v1"].num_rows == 0
    assert found["type_exprs_norm_v1"].num_rows == 2
    [told] = found[DIAGNOSTICS].to_pylist()
    assert (told["diag_kind"], told["diag_code"]) == ("cpython", "not_normalized")
    assert told["message"] == "KeyError: 'no such opcode'"
    streams, counts = pack_file_rows(whole(TEXT))
    assert counts["py_bc_blocks_norm_v1"] == 0
    assert rows(streams[DIAGNOSTICS]).to_pylist() == [told]


def test_a_value_that_does_not_fit_costs_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    flow, types = rules.FAMILIES

    def broken(found: object) -> dict[str, list[object]]:
        return {**flow.tables["py_bc_blocks_norm_v1"](found), "line": [1 << 40]}

    tables = {**flow.tables, "py_bc_blocks_norm_v1": broken}
    monkeypatch.setattr(rules, "FAMILIES", (flow._replace(tables=tables), types))
    found = file_rows(whole("x = 1\n"))
    assert [row["diag_code"] for row in found[DIAGNOSTICS].to_pylist()] == ["not_normalized"]
    assert found["py_bc_reaches_v1"].num_rows == 0
