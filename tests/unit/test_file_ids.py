"""Ids of the nodes of one file: whose they are, their numbers, and those of scopes and code objects."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import msgpack

from codeanatomy.definitions import definitions_of
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.file_ids import DefinitionKeys, FileIds, PackedIds
from codeanatomy.node_ids import definition_key
from support.normalize_stage import OPTIONS, source_of

TEXT = """\
import os
@cache(1)
def f(x, *y, k=g(2)):
    return [h(z) for z in x].sort(key=lambda a: p(a))
class A:
    n = f(3)
    def m(self): return q()
f(4)
"""


def key(qualified: str = "") -> str:
    return definition_key("r", "m.py", qualified)


def cells(text: str) -> tuple[Mapping[str, Any], ...]:
    source = source_of(text.encode())
    extractors = (ast_files_v1, libcst_files_v1, symtable_files_v1, bytecode_files_v1)
    return tuple(extract(source, OPTIONS).cells for extract in extractors)


def ids_of(text: str) -> FileIds:
    syntax, libcst, _, _ = cells(text)
    return FileIds(
        PackedIds.of_file("r", "m.py", syntax.get("definitions", {}), libcst, syntax.get("nodes", {}))
    )


def span(part: str, text: str = TEXT) -> tuple[int, int]:
    """The span of a text that occurs once."""
    assert text.count(part) == 1, part
    return text.index(part), text.index(part) + len(part)


@pytest.mark.parametrize(
    ("kind", "part", "expected"),
    [
        ("CALLSITE", "cache(1)", f"callsite:{key('f')}.000000"),
        ("CALLSITE", "g(2)", f"callsite:{key('f')}.000001"),
        ("CALLSITE", "[h(z) for z in x].sort(key=lambda a: p(a))", f"callsite:{key('f')}.000002"),
        ("CALLSITE", "h(z)", f"callsite:{key('f.<listcomp>#0')}.000000"),
        ("CALLSITE", "p(a)", f"callsite:{key('f.<lambda>#0')}.000000"),
        ("CALLSITE", "f(3)", f"callsite:{key('A')}.000000"),
        ("CALLSITE", "q()", f"callsite:{key('A.m')}.000000"),
        ("CALLSITE", "f(4)", f"callsite:{key()}.000000"),
        ("FUNCTION", "lambda a: p(a)", f"function:{key('f.<lambda>#0')}"),
        ("ARGUMENT", "lambda a: p(a)", f"argument:{key('f')}.000002"),
        ("DECORATOR", "cache(1)", f"decorator:{key('f')}.000000"),
        ("IMPORT_ALIAS", "os", f"import_alias:{key()}.000000"),
        ("PARAMETER", "self", f"parameter:{key('A.m')}.self"),
    ],
)
def test_a_node_belongs_to_the_innermost_definition(kind: str, part: str, expected: str) -> None:
    """A header belongs to its definition; a node with the span of a definition to the one around it."""
    assert ids_of(TEXT).at(kind, *span(part)) == expected


def test_syntax_nodes_are_numbered_by_definition() -> None:
    """The node of a definition is the first of its own; numbers have no gaps."""
    ids = ids_of(TEXT)
    nodes = ast_files_v1(source_of(TEXT.encode()), OPTIONS).cells["nodes"]
    all_ids = ids.ast_ids(len(nodes["kind"])).to_pylist()
    assert all_ids == [ids.ast(node) for node in range(len(all_ids))]
    assert len(set(all_ids)) == len(all_ids)
    by_kind = dict(zip(nodes["kind"], all_ids, strict=True))
    assert by_kind["Module"] == f"ast:{key()}.000000"
    assert by_kind["ClassDef"] == f"ast:{key('A')}.000000"
    for qualified in definitions_of(nodes)["path"]:
        own = [each for each in all_ids if key(qualified) in each]
        assert own == [f"ast:{key(qualified)}.{number:06}" for number in range(len(own))]


def test_ids_of_very_large_trees_have_numbers_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = ast_files_v1(source_of(TEXT.encode()), OPTIONS).cells["nodes"]
    expected = ids_of(TEXT).ast_ids(len(nodes["kind"])).to_pylist()
    monkeypatch.setattr("codeanatomy.file_ids.MOST_NUMBERS", 0)
    assert ids_of(TEXT).ast_ids(len(nodes["kind"])).to_pylist() == expected


def test_packed_ids_are_the_same() -> None:
    """What the program of a file keeps makes the same ids."""
    ids = ids_of(TEXT)
    again = FileIds(msgpack.decode(msgpack.encode(ids.packed), type=PackedIds))
    for part in ("g(2)", "q()"):
        assert again.at("CALLSITE", *span(part)) == ids.at("CALLSITE", *span(part))
    assert again.ast(7) == ids.ast(7)


def test_a_span_that_nobody_gave() -> None:
    """It has an id nevertheless; nodes without a span share one."""
    assert ids_of(TEXT).at("CALLSITE", 3, 4) == f"callsite:{key()}.@3-4"
    assert ids_of(TEXT).at("CALLSITE", None, None) == f"callsite:{key()}.unplaced"


def test_nodes_of_one_stage() -> None:
    """Equal spans are numbered in the order given, nodes without a span come last."""
    spans = [span("f(4)"), (None, None), span("g(2)"), span("g(2)")]
    assert ids_of(TEXT).numbered("COMMENT", spans) == [
        f"comment:{key()}.000000",
        f"comment:{key()}.000001",
        f"comment:{key('f')}.000000",
        f"comment:{key('f')}.000001",
    ]


def test_diagnostics_are_numbered_by_code() -> None:
    reported = [("libcst", "a", *span("f(4)")), ("libcst", "b", *span("f(4)")), ("libcst", "a", *span("os"))]
    assert ids_of(TEXT).diagnostics(reported) == [
        f"diag:{key()}.libcst.a.000001",
        f"diag:{key()}.libcst.b.000000",
        f"diag:{key()}.libcst.a.000000",
    ]


def test_without_libcst() -> None:
    """Names, attributes, calls and parameters have the same ids from CPython's tree alone."""
    syntax, _, _, _ = cells(TEXT)
    alone = FileIds(PackedIds.of_file("r", "m.py", syntax["definitions"], {}, syntax["nodes"]))
    both = ids_of(TEXT)
    for kind in ("CALLSITE", "NAME_REF", "ATTRIBUTE_REF", "ARGUMENT", "DECORATOR", "IMPORT_ALIAS"):
        for start, end, _ in zip(*[iter(alone.packed.spans[kind])] * 3, strict=True):
            assert alone.at(kind, start, end) == both.at(kind, start, end)
    assert alone.packed.parameters == both.packed.parameters


def test_without_a_syntax_tree() -> None:
    """LibCST's definitions have the same paths, but for comprehensions."""
    _, libcst, _, _ = cells(TEXT)
    ids = FileIds(PackedIds.of_file("r", "m.py", {}, libcst, {}))
    assert sorted(ids.packed.paths) == ["", "A", "A.m", "f", "f.<lambda>#0"]
    assert ids.at("CALLSITE", *span("q()")) == f"callsite:{key('A.m')}.000000"


def test_without_anything() -> None:
    assert ids_of("def (").packed.keys == [key()]
    assert FileIds(PackedIds.of_file("r", "m.py", {}, {}, {})).numbered("TS_ERROR", [(0, 1)]) == [
        f"ts_error:{key()}.000000"
    ]


SHARED = """\
x = {(lambda: 1): (lambda: 2)}, [a for a in [b for b in c]], (lambda d=(lambda: 3): 4)
def f(y=lambda: 5): return f"{(lambda e: e)(y)}"
class A:
    def f(self): ...
    def f(self): ...
"""


def inlined(paths: Sequence[str]) -> list[str]:
    """Comprehensions that have no scope and no code of their own from 3.12 on."""
    if sys.version_info < (3, 12):
        return []
    return [path for path in paths if path.rpartition("<")[2].startswith(("list", "set", "dict"))]


@pytest.mark.parametrize("text", [TEXT, SHARED])
def test_scopes_and_code_objects_have_the_keys_of_their_definitions(text: str) -> None:
    """Also those that share type, name and line: in the order of the compiler."""
    syntax, _, symtable, bytecode = cells(text)
    keys = DefinitionKeys("r", "m.py", syntax["definitions"])
    expected = {key(path) for path in syntax["definitions"]["path"]}
    scopes = keys.of_scopes(symtable["blocks"])
    units = keys.of_units(bytecode["code_objects"])
    assert len(scopes) == len(set(scopes.values()))
    assert len(units) == len(set(units.values()))
    assert set(scopes.values()) == expected - {key(path) for path in inlined(syntax["definitions"]["path"])}
    unplaced = sum(start is None for start in syntax["definitions"]["bstart"])
    assert len(set(units.values()) - expected) == unplaced


def test_lambdas_of_one_line_are_told_apart() -> None:
    """By the names of their parameters, which the symbol table knows as well."""
    text = "f(lambda a: 0, lambda b=(lambda c: 0): 0, {lambda d: 0: lambda e: 0})\n"
    syntax, _, symtable, _ = cells(text)
    scopes = DefinitionKeys("r", "m.py", syntax["definitions"]).of_scopes(symtable["blocks"])
    blocks = symtable["blocks"]
    named = {
        scopes[scope]: symbols["name"][0]
        for scope, symbols in zip(blocks["scope_key"], blocks["symbols"], strict=True)
        if symbols["name"] and scope in scopes and "/" in scope
    }
    lambdas = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Lambda)]
    paths = dict(zip(syntax["definitions"]["bstart"], syntax["definitions"]["path"], strict=True))
    for node in lambdas:
        assert named[key(paths[node.col_offset])] == node.args.args[0].arg


def test_lambdas_in_annotations_that_are_never_evaluated() -> None:
    """They have no scope in the symbol table, and that of another lambda in the line is not theirs."""
    text = "from __future__ import annotations\nx: A[lambda a: 0] = B(lambda b: 0, [c for c in x])\n"
    syntax, _, symtable, _ = cells(text)
    scopes = DefinitionKeys("r", "m.py", syntax["definitions"]).of_scopes(symtable["blocks"])
    comprehension = "<listcomp>#0"
    paths = {"", "<lambda>#1", comprehension}.difference(inlined([comprehension]))
    assert sorted(scopes.values()) == sorted(map(key, paths))


def test_code_that_the_compiler_copies() -> None:
    """The body of a `finally` is compiled more than once; a copy that CPython does not merge has a key."""
    text = "def f():\n    try: return g()\n    finally:\n        class C: x = lambda: 0\n"
    syntax, _, _, bytecode = cells(text)
    units = {
        name: bytecode["code_objects"][name]
        for name in ("code_unit_key", "parent_key", "name", "bstart", "bend")
    }
    copied = {name: [*column, column[units["name"].index("C")]] for name, column in units.items()}
    copied["code_unit_key"][-1] += "copy"
    keys = DefinitionKeys("r", "m.py", syntax["definitions"]).of_units(copied)
    assert list(keys.values()) == [key(), key("f"), key("f.C"), key("f.C.<lambda>#0"), key("f.C~1")]


def test_code_without_a_definition() -> None:
    """It has a path of its own, below the code that contains it."""
    units: dict[str, list[Any]] = {
        "code_unit_key": ["m", "m/<generic parameters of f>@1#0"],
        "parent_key": [None, "m"],
        "name": ["<module>", "<generic parameters of f>"],
        "bstart": [0, None],
        "bend": [9, None],
    }
    keys = DefinitionKeys("r", "m.py", {}).of_units(units)
    assert list(keys.values()) == [key(), key("/<generic parameters of f>~0")]


def test_scopes_of_type_parameters() -> None:
    """As Python 3.12 lists them for `def f[T: int](): ...` and `type X[U] = U`."""
    definitions: dict[str, list[Any]] = {
        "kind": ["Module", "FunctionDef"],
        "name": ["", "f"],
        "path": ["", "f"],
        "line": [1, 1],
        "entered": [0, 1],
    }
    rows = [
        ("m", None, "module", "top", 0),
        ("m/1", "m", "type parameters", "f", 1),
        ("m/1/1", "m/1", "TypeVar bound", "T", 1),
        ("m/1/2", "m/1", "function", "f", 1),
        ("m/2", "m", "type parameters", "X", 2),
        ("m/2/1", "m/2", "type alias", "X", 2),
    ]
    names = ("scope_key", "parent_key", "type", "name", "lineno")
    blocks = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    scopes = DefinitionKeys("r", "m.py", definitions).of_scopes(blocks)
    assert [scopes[each] for each, *_ in rows] == [
        key(),
        key("/<type parameters f>#0"),
        key("/<type parameters f>#0/<TypeVar bound T>#0"),
        key("f"),
        key("/<type parameters X>#0"),
        key("/<type parameters X>#0/<type alias X>#0"),
    ]
