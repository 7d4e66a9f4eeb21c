"""The views: they read what they say, run on the light lane, and have the rows that the sources state."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlglot import parse_one

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.catalog.views import VIEWS, View, view
from codeanatomy.delta.read.duck import duck_type, lookup_connection
from codeanatomy.errors import UnknownName
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import InlineRows, Query, Slice
from codeanatomy.query.engines.views import INLINE_ROWS, view_query
from support.ask_lake import reader_of

KINDS = {"node_kind": {*NODE_KINDS}, "edge_kind": {*EDGE_KINDS}}
# Views that tell of edges, one row each.
OF_EDGES = ("calls", "call_sites", "references", "imports", "inherits", "flows")
each_view = pytest.mark.parametrize("each", VIEWS, ids=lambda each: each.name)


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def ask(reader: LightReader, name: str, columns: str, where: str, order: str = "line") -> list[Any]:
    """Some rows of a view."""
    query = view_query(view(name), reader.snapshot)
    picked = f"SELECT {columns} FROM ({query.sql}) AS v WHERE {where} ORDER BY {order}"
    return reader.rows(Query(picked, query.relations))


def test_names_are_unique_and_an_unknown_one_gets_a_hint() -> None:
    assert len({each.name for each in VIEWS}) == len(VIEWS)
    with pytest.raises(UnknownName) as problem:
        view("call")
    assert "did you mean calls?" in problem.value.hint


@each_view
def test_what_a_view_reads_exists(each: View) -> None:
    for table, wanted in each.reads.values():
        for column, values in wanted.items():
            catalog.table(table).column(column)
            assert {*values} <= KINDS.get(column, {*values})
    assert each.supplied.keys() <= INLINE_ROWS.keys()


@each_view
def test_the_statement_names_all_that_is_read_and_nothing_else(each: View) -> None:
    named = {*re.findall(r"(?:FROM|JOIN)\s+(\w+)", each.sql)}
    assert named == {*each.reads, *each.supplied}


@each_view
def test_both_engines_read_the_statement_alike(each: View) -> None:
    duck, spark = (parse_one(each.sql, read=dialect).sql("spark") for dialect in ("duckdb", "spark"))
    assert duck == spark


@each_view
def test_columns_are_documented_and_named_once(each: View) -> None:
    assert len({*each.column_names}) == len(each.column_names)
    assert all(column.doc.endswith((".", "...")) for column in each.columns)
    assert each.columns[0].name == "repo_id"


@each_view
def test_a_view_has_the_declared_columns_types_and_nulls(each: View, reader: LightReader) -> None:
    query = view_query(each, reader.snapshot)
    described = lookup_connection().execute(f"DESCRIBE {query.text(reader.relation)}").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [
        (column.name, duck_type(column)) for column in each.columns
    ]
    required = [column.name for column in each.columns if not column.nullable]
    nulls = " OR ".join(f"v.{name} IS NULL" for name in required)
    assert ask(reader, each.name, "count(*)", nulls, "1") == [(0,)]
    assert ask(reader, each.name, "count(*) > 0", "TRUE", "1") == [(True,)]


@pytest.mark.parametrize("name", OF_EDGES)
def test_no_edge_is_lost_or_told_twice(name: str, reader: LightReader) -> None:
    table, wanted = view(name).reads["e"]
    edges = reader.rows(Query("SELECT count(*) FROM e", {"e": Slice(table, **wanted)}))
    assert ask(reader, name, "count(*)", "TRUE", "1") == edges


def test_the_symbols_of_a_module(reader: LightReader) -> None:
    columns = "kind, subkind, symbol, line, external"
    found = ask(reader, "symbols", columns, "path = 'shop/money.py' AND kind <> 'PARAMETER'", "line, symbol")
    assert found == [
        ("MODULE", "module", "shop.money", 1, False),
        ("BINDING", "local", "shop.money.__all__", 5, False),
        ("BINDING", "local", "shop.money.TAX", 7, False),
        ("CLASS", None, "shop.money.Price", 10, False),
        ("BINDING", "local", "shop.money.Price.currency", 16, False),
        ("FUNCTION", "method", "shop.money.Price.__init__", 18, False),
        ("BINDING", "attribute", "shop.money.Price.amount", 19, False),
        ("FUNCTION", "method", "shop.money.Price.with_tax", 22, False),
        ("FUNCTION", "method", "shop.money.Price.dump", 26, False),
        ("CLASS", None, "shop.money.Discount", 30, False),
        ("FUNCTION", "method", "shop.money.Discount.dump", 33, False),
    ]


def test_what_is_used_from_outside_is_a_symbol_too(reader: LightReader) -> None:
    found = ask(reader, "symbols", "kind, symbol, path", "repo_id = 'depot' AND external", "symbol")
    assert found == [
        ("QUALIFIED_NAME", "builtins.open", None),
        ("QUALIFIED_NAME", "builtins.sum", None),
        ("QUALIFIED_NAME", "io.TextIOWrapper.read", None),
        ("EXTERNAL_MODULE", "shop.cart", None),
        ("QUALIFIED_NAME", "shop.cart.Cart", None),
    ]


def test_calls(reader: LightReader) -> None:
    found = ask(reader, "calls", "caller, callee, line, external", "path = 'depot.py'", "line, callee")
    assert found == [
        ("depot.total", "builtins.sum", 12, True),
        ("depot.load", "builtins.open", 16, True),
        ("depot.load", "io.TextIOWrapper.read", 17, True),
        ("depot.load", "shop.cart.Cart", 17, True),
    ]


def test_call_sites(reader: LightReader) -> None:
    where = "path = 'shop/cart.py' AND line BETWEEN 45 AND 47"
    found = ask(reader, "call_sites", "written, relation, callee, line", where, "line, callee, relation")
    assert found == [
        ("Cart", "INSTANTIATES", "shop.cart.Cart", 45),
        ("Cart", "CALLS", "shop.cart.Cart.__init__", 45),
        ("cart.add", "CALLS", "shop.cart.Cart.add", 47),
        ("money.Price", "INSTANTIATES", "shop.money.Price", 47),
        ("money.Price", "CALLS", "shop.money.Price.__init__", 47),
        (None, "CALLS", "shop.money.Price.with_tax", 47),
    ]


def test_references(reader: LightReader) -> None:
    columns = "symbol, symbol_kind, relation, usage, line"
    found = ask(reader, "references", columns, "path = 'depot.py' AND line < 13", "line, relation, symbol")
    assert found == [
        ("shop.cart.Cart", "QUALIFIED_NAME", "IMPORTS_NAME", "from", 3),
        ("depot.Price.with_tax.self", "BINDING", "READS", "load", 8),
        ("depot.Price.with_tax.self", "PARAMETER", "REFERS_TO", "load", 8),
        ("depot.total.prices", "BINDING", "READS", "load", 12),
        ("builtins.sum", "QUALIFIED_NAME", "REFERS_TO", "load", 12),
        ("depot.total.prices", "PARAMETER", "REFERS_TO", "load", 12),
    ]


def test_imports(reader: LightReader) -> None:
    columns = "importer, name, written, relation, target, line"
    found = ask(reader, "imports", columns, "path = 'shop/__init__.py'", "line, name, relation")
    assert found == [
        ("shop", "Cart", "shop.cart.Cart", "IMPORTS_MODULE", "shop.cart", 3),
        ("shop", "Cart", "shop.cart.Cart", "IMPORTS_NAME", "shop.cart.Cart", 3),
        ("shop", "sum_of", "shop.cart.total", "IMPORTS_MODULE", "shop.cart", 3),
        ("shop", "sum_of", "shop.cart.total", "IMPORTS_NAME", "shop.cart.total", 3),
        ("shop", "*", "shop.money.*", "IMPORTS_MODULE", "shop.money", 4),
    ]


def test_inherits(reader: LightReader) -> None:
    found = ask(reader, "inherits", "class_name, base, position, external", "path = 'shop/money.py'")
    assert found == [("shop.money.Discount", "shop.money.Price", 0, False)]


def test_flows_name_variables_and_arguments_that_are_names(reader: LightReader) -> None:
    columns = "relation, source, source_kind, source_line, target, target_kind, line"
    where = "path = 'shop/cart.py' AND (line = 33 OR line = 29)"
    assert ask(reader, "flows", columns, where, "line, relation, source") == [
        ("PASSES_TO", None, "ARGUMENT", 29, "shop.cart.total.prices", "PARAMETER", 29),
        (
            "REACHES",
            "shop.cart.Cart.total.self",
            "DEF_EVENT",
            28,
            "shop.cart.Cart.total.self",
            "USE_EVENT",
            29,
        ),
        ("REACHES", "shop.cart.total", "DEF_EVENT", 11, "shop.cart.total", "USE_EVENT", 29),
        (
            "PASSES_TO",
            "shop.cart.Cart.checkout.charged",
            "ARGUMENT",
            33,
            "shop.cart.print_bill.amount",
            "PARAMETER",
            33,
        ),
        (
            "REACHES",
            "shop.cart.Cart.checkout.charged",
            "DEF_EVENT",
            32,
            "shop.cart.Cart.checkout.charged",
            "USE_EVENT",
            33,
        ),
        (
            "REACHES",
            "shop.cart.Cart.checkout.pay",
            "DEF_EVENT",
            31,
            "shop.cart.Cart.checkout.pay",
            "USE_EVENT",
            33,
        ),
    ]


def test_files_and_their_failures(reader: LightReader) -> None:
    columns = "path, state, module, size_bytes, encoding, length(sha256), failures"
    assert ask(reader, "files", columns, "repo_id = 'depot'", "path") == [
        ("broken.py", "module", "broken", 22, "utf-8", 64, 4),
        ("depot.py", "module", "depot", 268, "utf-8", 64, 0),
    ]


def test_errors_are_those_of_the_run_that_read_the_repository(reader: LightReader) -> None:
    found = ask(reader, "errors", "repo_id, path, line, extractor, error_type", "TRUE", "extractor")
    assert found == [
        ("depot", "broken.py", 1, "ast_files_v1", "SyntaxError"),
        ("depot", "broken.py", 1, "bytecode_files_v1", "SyntaxError"),
        ("depot", "broken.py", 2, "libcst_files_v1", "ParserSyntaxError"),
        ("depot", "broken.py", 1, "symtable_files_v1", "SyntaxError"),
    ]
    # Another run's rows are in the table too, so the slice names the runs.
    part = view_query(view("errors"), reader.snapshot).relations["r"]
    assert isinstance(part, Slice)
    assert {*part.wanted["run_id"]} <= {row.run_id for row in reader.snapshot.repositories.values()}


def test_diagnostics(reader: LightReader) -> None:
    columns = "path, line, witness, code, severity"
    assert ask(reader, "diagnostics", columns, "repo_id = 'depot'", "witness") == [
        ("broken.py", 1, "cpython", "syntax_error", "error"),
        ("broken.py", 2, "libcst", "parser_syntax_error", "error"),
        ("broken.py", 1, "tree_sitter", "missing_node", "error"),
    ]


def test_repositories_are_those_of_the_snapshot(reader: LightReader) -> None:
    query = view_query(view("repositories"), reader.snapshot)
    assert isinstance(query.relations["built_repositories"], InlineRows)
    rows = reader.rows(query)
    assert sorted(row[0] for row in rows) == ["depot", "flask", "shop"]
    found = {row[0]: ask(reader, "nodes", "count(*)", f"repo_id = '{row[0]}'", "1")[0][0] for row in rows}
    assert found == {row[0]: row[5] for row in rows}
