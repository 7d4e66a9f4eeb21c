"""Identifiers of a file, compared with the text of the file and with the verbs."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query
from codeanatomy.query.lake import Lake
from codeanatomy.query.symbols import resolve
from codeanatomy.query.walks.identifiers import (
    NameUse,
    annotated_types,
    checked_type,
    file_names,
    name_at,
    unresolved_reason,
)
from codeanatomy.serve.explorer.source_text import source_file


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return Lake.open(ask_lake).reader


def text_of(reader: LightReader, repo_id: str, path: str) -> bytes:
    file = source_file(reader, repo_id, path)
    assert file is not None
    assert file.text is not None
    return file.text.encode()


@pytest.mark.parametrize(("repo_id", "path"), [("flask", "flask/app.py"), ("shop", "shop/cart.py")])
def test_every_name_of_the_syntax_tree_is_listed(reader: LightReader, repo_id: str, path: str) -> None:
    data = text_of(reader, repo_id, path)
    uses = file_names(reader, repo_id, path).uses
    starts = [0, *(at + 1 for at, byte in enumerate(data) if byte == 10)]
    expected = {
        (starts[node.lineno - 1] + node.col_offset, node.id)
        for node in ast.walk(ast.parse(data))
        if isinstance(node, ast.Name)
    }
    assert {(use.bstart, use.name) for use in uses if use.kind == "NAME_REF"} >= expected
    for use in uses:
        if use.kind != "IMPORT_ALIAS":
            assert data[use.bstart : use.bend].decode() == use.name
    resolved = [use for use in uses if use.targets]
    assert len(resolved) > len(uses) / 2
    assert checked_type(reader, repo_id, path, uses[0]) is None


def test_references_lead_to_their_definitions(reader: LightReader) -> None:
    uses = file_names(reader, "shop", "shop/cart.py").uses
    for symbol in ("shop.cart.Cart.total", "shop.cart.Cart"):
        ids = resolve(reader, symbol, "shop").ids
        leading = [use for use in uses if any(target.node_id in ids for target in use.targets)]
        assert all(use.name == symbol.rpartition(".")[2] for use in leading)
        for use in leading:
            (target, *_) = use.targets
            assert (target.symbol, target.path) == (symbol, "shop/cart.py")
            assert name_at(reader, "shop", "shop/cart.py", use.bstart) == use


def test_definitions_have_their_lines(reader: LightReader) -> None:
    data = text_of(reader, "shop", "shop/cart.py")
    definitions = file_names(reader, "shop", "shop/cart.py", (0, 0)).definitions
    expected = {
        (node.name, node.lineno)
        for node in ast.walk(ast.parse(data))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    assert {(each.name, each.line) for each in definitions if each.kind in ("CLASS", "FUNCTION")} >= expected


def test_a_part_of_a_file(reader: LightReader) -> None:
    uses = file_names(reader, "flask", "flask/app.py").uses
    middle = uses[len(uses) // 2].bstart
    part = file_names(reader, "flask", "flask/app.py", (middle, middle + 2_000)).uses
    assert part == tuple(use for use in uses if middle <= use.bstart <= middle + 2_000)
    assert name_at(reader, "flask", "flask/app.py", 10**9) is None
    assert file_names(reader, "flask", "no/such.py").uses == ()


def test_imports_name_their_module(reader: LightReader) -> None:
    uses = file_names(reader, "flask", "flask/app.py").uses
    imported = [use for use in uses if use.kind == "IMPORT_ALIAS" and use.subkind == "from" and use.targets]
    assert imported
    for use in imported:
        assert use.modules
        assert {target.kind for target in use.modules} <= {"MODULE", "PACKAGE", "EXTERNAL_MODULE"}


def test_unresolved_names_have_a_reason(reader: LightReader) -> None:
    uses = file_names(reader, "flask", "flask/app.py").uses
    reasons = {unresolved_reason(reader, use.node_id) for use in uses if not use.targets}
    assert reasons - {None}
    resolved = next(use for use in uses if use.targets)
    assert unresolved_reason(reader, resolved.node_id) is None


def test_annotations(reader: LightReader) -> None:
    definitions = file_names(reader, "flask", "flask/app.py", (0, 0)).definitions
    parameters = {each.symbol: each.node_id for each in definitions if each.kind == "PARAMETER"}
    types = annotated_types(reader, list(parameters.values()))
    name = "flask.app.Flask.make_response.rv"
    assert types[parameters[name]] == "ft.ResponseReturnValue"
    function = resolve(reader, "flask.app.Flask.make_response")
    assert set(annotated_types(reader, function.ids).values()) == {"Response"}
    assert annotated_types(reader, []) == {}


def test_types_of_a_checker() -> None:
    """In `-a.b`, the type of `b` is that of `a.b`."""
    types = [
        {"bstart": 0, "bend": 4, "type_repr": "int"},
        {"bstart": 1, "bend": 4, "type_repr": "Size"},
        {"bstart": 1, "bend": 2, "type_repr": "Box"},
    ]

    class Rows:
        snapshot: Any = None

        def rows(self, query: Query, limit: int | None = None) -> list[Any]:
            return [(types,), (None,)]

    reader = Rows()
    uses = (NameUse("", "NAME_REF", None, "a", 1, 2, ()), NameUse("", "ATTRIBUTE_REF", None, "b", 3, 4, ()))
    assert [checked_type(reader, "r", "a.py", use) for use in uses] == ["Box", "Size"]
    assert checked_type(reader, "r", "a.py", NameUse("", "NAME_REF", None, "c", 8, 9, ())) is None
