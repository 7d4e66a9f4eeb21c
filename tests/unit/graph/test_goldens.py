"""Goldens: the whole graph of one small program per construct of Python, as annotated source.

Each folder of `tests/cases/golden` is a program; its `expected.txt` is the output of `annotated` for its
graph. After an intended change, `pytest tests/unit/graph/test_goldens.py --regenerate` rewrites them, and the
diff is reviewed.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import pytest

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, Profile
from codeanatomy.extract.scip.documents import document_cells
from codeanatomy.extract.scip.index_file import Dialect
from codeanatomy.extract.scip.schema import Document, Occurrence, SymbolInformation
from codeanatomy.node_ids import edge_id
from support.annotated_sources import Row, Text, Unshown, annotated, displayed
from support.folders import CASES
from support.graph_checks import CONSTRUCTS
from support.graph_stage import Graph, graph_of
from support.normalize_stage import source_of
from support.relate_stage import sources_below

GOLDEN = CASES / "golden"
# Bytecode, and the nodes of the tree, are those of one version of Python.
AS_WRITTEN = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the goldens are of Python 3.11")
SYMBOL = "scip-python python golden 1.0 "
DEFINITION, IMPORT, READ = 1, 2, 8


@cache
def sources(construct: str) -> Mapping[str, bytes]:
    return sources_below(GOLDEN / construct)


@cache
def built(construct: str, profile: Profile = "full") -> Graph:
    return graph_of(sources(construct), profile, scip_cells() if construct == "scip_index" else None)


def scip_cells() -> Mapping[str, Mapping[str, Any]]:
    """What a small index says of `scip_index`, as the rows of its documents have it."""
    cells = {}
    for document in scip_documents(sources("scip_index")):
        path = document.relative_path
        source = source_of(sources("scip_index")[path], path)
        cells[path] = document_cells(document.SerializeToString(), source, Dialect(), {}).cells
    return cells


def scip_documents(texts: Mapping[str, bytes]) -> list[Any]:
    """What an indexer might say: symbols of most of what the two files define."""
    shapes, main = "shapes/", "main/"

    def seen(path: str, text: str, symbol: str, roles: int, number: int = 0) -> Any:
        raw, start = texts[path].decode(), -1
        for _ in range(number + 1):
            start = raw.index(text, start + 1)
        line = raw.count("\n", 0, start)
        col = start - raw.rfind("\n", 0, start) - 1
        whole = symbol if symbol.startswith("local ") else SYMBOL + symbol
        return Occurrence(range=[line, col, col + len(text)], symbol=whole, symbol_roles=roles)

    area = SymbolInformation(
        symbol=f"{SYMBOL}{main}Square#area().",
        documentation=["Area of a square."],
        kind=26,
        display_name="area",
        signature_documentation={"language": "python", "text": "def area(self):"},
        relationships=[
            {"symbol": f"{SYMBOL}{shapes}Shape#area().", "is_implementation": True, "is_reference": True}
        ],
    )
    square = SymbolInformation(
        symbol=f"{SYMBOL}{main}Square#",
        kind=7,
        relationships=[
            {"symbol": f"{SYMBOL}{shapes}Shape#", "is_type_definition": True, "is_definition": True}
        ],
    )
    return [
        Document(
            relative_path="main.py",
            language="python",
            position_encoding=1,
            symbols=[square, area],
            occurrences=[
                seen("main.py", "shapes", f"{shapes}__init__:", READ),
                seen("main.py", "Shape", f"{shapes}Shape#", IMPORT),
                seen("main.py", "Square", f"{main}Square#", DEFINITION),
                seen("main.py", "Shape", f"{shapes}Shape#", READ, 1),
                seen("main.py", "area", f"{main}Square#area().", DEFINITION),
                seen("main.py", "side", f"{shapes}Shape#side.", READ),
                seen("main.py", "total", f"{main}total().", DEFINITION),
                seen("main.py", "shapes", f"{main}total().(shapes)", DEFINITION, 1),
                seen("main.py", "sum", "builtins/sum().", READ),
                seen("main.py", "shape", "local 0", READ, 2),
                seen("main.py", "total", f"{main}total().", READ, 1),
                seen("main.py", "Square", f"{main}Square#", READ, 1),
            ],
        ),
        Document(
            relative_path="shapes.py",
            language="python",
            position_encoding=1,
            symbols=[SymbolInformation(symbol=f"{SYMBOL}{shapes}Shape#", kind=7, display_name="Shape")],
            occurrences=[
                Occurrence(range=[0, 0, 0], symbol=f"{SYMBOL}{shapes}__init__:", symbol_roles=DEFINITION),
                seen("shapes.py", "Shape", f"{shapes}Shape#", DEFINITION),
                seen("shapes.py", "side", f"{shapes}Shape#side.", DEFINITION),
                seen("shapes.py", "area", f"{shapes}Shape#area().", DEFINITION),
            ],
        ),
    ]


# The goldens


@AS_WRITTEN
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_the_graph_is_as_reviewed(construct: str, request: pytest.FixtureRequest) -> None:
    path = GOLDEN / construct / "expected.txt"
    found = annotated(sources(construct), built(construct))
    if request.config.getoption("--regenerate"):
        path.write_bytes(found.encode())
    assert path.exists(), "a new construct: run this test with --regenerate and review what it writes"
    expected = path.read_bytes().decode()
    assert found.split("\n") == expected.split("\n")


def test_every_kind_occurs() -> None:
    """A kind that is declared and never emitted is a promise that is not kept."""
    graphs = [built(construct) for construct in CONSTRUCTS]
    nodes = {row["node_kind"] for graph in graphs for row in graph.nodes}
    edges = {row["edge_kind"] for graph in graphs for row in graph.edges}
    assert (set(NODE_KINDS) - nodes, set(EDGE_KINDS) - edges) == (set(), set())
    assert (nodes - set(NODE_KINDS), edges - set(EDGE_KINDS)) == (set(), set())


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_the_default_profile_leaves_out_whole_kinds(construct: str) -> None:
    """And with them the edges that touch them; what stays is the same."""
    full, default = built(construct), built(construct, "default")
    nodes = {row["node_id"]: row for row in full.nodes if "default" in NODE_KINDS[row["node_kind"]].profiles}
    edges = {
        row["edge_id"]: row
        for row in full.edges
        if "default" in EDGE_KINDS[row["edge_kind"]].profiles
        and {row["src_node_id"], row["dst_node_id"]} <= nodes.keys()
    }
    assert {row["node_id"]: row for row in default.nodes} == nodes
    assert {row["edge_id"]: row for row in default.edges} == edges
    kept = [row for row in full.props if row["entity_id"] in nodes or row["entity_id"] in edges]
    assert in_order(default.props) == in_order(kept)


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["entity_kind"], row["entity_id"], row["prop_key"]))


# The sources


@AS_WRITTEN
def test_every_form_of_syntax_occurs() -> None:
    """All classes of CPython's tree but those that only other modes of the parser make."""
    seen = set()
    for construct in CONSTRUCTS:
        for raw in sources(construct).values():
            try:
                tree = ast.parse(raw, type_comments=True)
            except SyntaxError:
                continue
            seen |= {type(node).__name__ for node in ast.walk(tree)}
    abstract = {"mod", "stmt", "expr", "expr_context", "boolop", "operator", "unaryop", "cmpop", "pattern"}
    abstract |= {"excepthandler", "type_ignore", "slice", "AST"}
    modes = {"Interactive", "Expression", "FunctionType"}
    # Kept by CPython for programs older than 3.9.
    old = {"AugLoad", "AugStore", "Bytes", "Ellipsis", "ExtSlice", "Index", "NameConstant", "Num", "Param"}
    old |= {"Str", "Suite"}
    every = {name for name, each in vars(ast).items() if isinstance(each, type) and issubclass(each, ast.AST)}
    assert every - abstract - modes - old - seen == set()


def test_there_is_a_source_of_each_awkward_form() -> None:
    """What an editor or a formatter would repair without asking."""
    text = {construct: b"".join(sources(construct).values()) for construct in CONSTRUCTS}
    assert b"\r\n" in text["crlf_lines"]
    assert b"\r" in text["lone_cr_lines"].replace(b"\r\n", b"")
    assert text["bom_and_cookie"].startswith(b"\xef\xbb\xbf")
    assert b"\xe9" in text["latin1_cookie"]
    assert b"\x0c" in text["form_feed"]
    assert b"\t" in text["tabs"]
    assert text["empty_file"] == b""
    assert not text["comments"].endswith(b"\n")


# The renderer, on graphs made by hand


class Made(NamedTuple):
    """A graph of a few rows."""

    nodes: list[Row]
    edges: list[Row]
    props: list[Row]


def row_of(table: str, **cells: Any) -> Row:
    columns = {column.name: None for column in catalog.table(table).readable_columns}
    assert cells.keys() <= columns.keys()
    return {**columns, **cells}


def node(key: str, kind: str, name: str | None = None, at: tuple[int, int] | None = None, **more: Any) -> Row:
    start, end = at or (None, None)
    place = (
        {} if kind in ("QUALIFIED_NAME", "TYPE") else {"file_id": "F", "path": "a.py", "owner_file_id": "F"}
    )
    cells = {"node_id": key, "node_kind": kind, "name": name, "bstart": start, "bend": end, "line": 1}
    return row_of("cpg_nodes", **{**cells, **place, **more})


def edge(kind: str, src: str, dst: str, **more: Any) -> Row:
    cells = {"edge_id": edge_id(kind, src, dst), "edge_kind": kind, "src_node_id": src, "dst_node_id": dst}
    return row_of("cpg_edges", **{**cells, "repeat": 0, "confidence": 1.0, "owner_file_id": "F", **more})


def prop(key: str, name: str, kind: str, value: Any) -> Row:
    cells = {"entity_kind": "node", "entity_id": key, "prop_key": name, "value_type": kind}
    return row_of("cpg_props", **cells, **{f"value_{kind}": value})


SOURCE = {"a.py": "\té = f(\n 1)\n"}
MADE = Made(
    [
        node("file", "FILE", "a.py"),
        node("store", "NAME_REF", "é", (1, 3), subkind="store"),
        node("call", "CALLSITE", "f", (6, 12), subkind="name"),
        node("name", "NAME_REF", "f", (6, 7), subkind="load"),
        node("scope", "SCOPE", "top", subkind="module"),
        node("binding", "BINDING", "é", qualname="a.é", subkind="local"),
        node("len", "QUALIFIED_NAME", "len", qualname="builtins.len"),
        node("unit", "CODE_UNIT", "<module>", (1, 12), subkind="module"),
        node("block", "CFG_BLOCK", at=(1, 12), subkind="entry"),
        node("exit", "CFG_BLOCK", subkind="exit"),
        node("op", "INSTRUCTION", "é", (1, 3), subkind="STORE_NAME"),
        node("def", "DEF_EVENT", "é", (1, 3), subkind="name"),
        node("use", "USE_EVENT", "é", subkind="name"),
        node("root", "AST_NODE", subkind="Module"),
        node("target", "AST_NODE", "é", (1, 3), subkind="Name"),
        node("ctx", "AST_NODE", subkind="Store"),
    ],
    [
        edge("WRITES", "store", "binding", role="name"),
        edge("CALLS_NAME", "call", "len", resolution_method="values", confidence=0.7, ambiguity_group_id="g"),
        edge("SCOPE_BINDS", "scope", "binding", role="é"),
        edge("OWNS_SCOPE", "file", "scope"),
        edge("HAS_BLOCK", "unit", "block", role="entry", ordinal=0),
        edge("HAS_BLOCK", "unit", "exit", role="exit", ordinal=1),
        edge("CFG_NEXT", "block", "exit"),
        edge("HAS_INSTRUCTION", "block", "op", ordinal=0),
        edge("STEP_DEF", "block", "def", ordinal=4),
        edge("STEP_USE", "block", "use", ordinal=6),
        edge("REACHES", "def", "use", role="local"),
        edge("EVENT_OF", "def", "binding"),
        edge("ANCHORED_AT", "op", "target"),
        edge("AST_PARENT_OF", "root", "target", role="targets", ordinal=0),
        edge("AST_PARENT_OF", "target", "ctx", role="ctx"),
        edge("SYNTAX_OF", "store", "target"),
    ],
    [
        prop("file", "sha256", "string", "abc"),
        prop("op", "offset", "int", 4),
        prop("use", "may_be_unbound", "bool", True),
        prop("call", "unresolved", "string", "why"),
    ],
)
RENDERED = """\
==== a.py

FILE a.py {sha256}

---- source

   1 |         é = f(
     |         ^
     # NAME_REF store é
     #     -> WRITES [name] binding é of module top
     |             ^~ ... 2 lines
     # CALLSITE name f {unresolved="why"}
     #     -> CALLS_NAME QUALIFIED_NAME builtins.len (values 0.7) ?1
     |             ^
     # NAME_REF load f
   2 |  1)

---- scopes

SCOPE module top of FILE a.py
    binding é local (a.é)

---- flow

CODE_UNIT module <module> 1:1-2:3
    b0 entry 1:1-2:3 next b1
        4 STORE_NAME é 1:1-2 at Name@1:1
        4 def é name 1:1-2 of binding é of module top; reaches [local] use é
        6 use é name {may_be_unbound}
    b1 exit

---- syntax

Module
    targets[0] Name é 1:1-2 ctx=Store is NAME_REF é@1

==== outside of files

QUALIFIED_NAME len (builtins.len)
"""


def test_a_graph_as_annotated_source() -> None:
    assert annotated(SOURCE, MADE) == RENDERED


def test_the_order_of_rows_does_not_matter() -> None:
    backwards = Made(*([*reversed(rows)] for rows in MADE))
    assert annotated(SOURCE, backwards) == RENDERED


def test_what_cannot_be_shown_raises() -> None:
    nodes, edges, props = MADE
    lost = {
        "a binding of no scope": Made([*nodes, node("b", "BINDING", "b")], edges, props),
        "an end of an edge": Made(nodes, [*edges, edge("CALLS", "call", "nowhere")], props),
        "0 times": Made(nodes, [*edges, edge("SYNTAX_OF", "call", "len")][:-1] + looping(), props),
        "2 times": Made(nodes, [*edges, edge("AST_PARENT_OF", "root", "ctx", role="x")], props),
        "property of nothing": Made(nodes, edges, [*props, prop("nothing", "x", "int", 1)]),
        "no byte 99": Made([*nodes, node("n", "NAME_REF", "n", (99, 99))], edges, props),
        "inside a character": Made([*nodes, node("n", "NAME_REF", "n", (2, 3))], edges, props),
        "no such file": Made([*nodes, node("n", "NAME_REF", "n", path="b.py")], edges, props),
    }
    for message, graph in lost.items():
        with pytest.raises(Unshown, match=message):
            annotated(SOURCE, graph)


def looping() -> list[Row]:
    """Two nodes below each other, which no root leads to."""
    return [edge("SCOPE_PARENT", "scope", "scope")]


def test_references_are_as_precise_as_needed() -> None:
    text = {"a.py": "x; x\nf(x)\n"}
    rows = [node("file", "FILE", "a.py"), node("top", "MODULE", "a", (0, 10))]
    rows += [
        node(f"x{start}", "NAME_REF", "x", (start, start + 1), line=line)
        for start, line in ((0, 1), (3, 1), (7, 2))
    ]
    rows += [node(f"t{end}", "TYPE_EXPR", "t", (5, end), line=2) for end in (6, 8)]
    edges = [edge("CONTAINS", "top", row["node_id"]) for row in rows[2:]]
    line = next(line for line in annotated(text, Made(rows, edges, [])).split("\n") if "CONTAINS" in line)
    assert line.strip() == (
        "-> CONTAINS NAME_REF x@1:0, NAME_REF x@1:3, TYPE_EXPR t@2:0-3, TYPE_EXPR t@2:0-1, NAME_REF x@2"
    )


def test_lines_and_columns_are_those_of_characters() -> None:
    text = Text("a.py", b"\xef\xbb\xbf\xc3\xa9 = 1\r\n\x0cb\r")
    assert [displayed(line.rstrip("\r\n")) for line in text.lines] == ["é = 1", "␌b"]
    assert [text.place(offset) for offset in (0, 2, 8, 9)] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert (text.span(0, 2), text.span(3, 9), text.carets(8, 9)) == ("1:0-1", "1:2-2:1", "^")
