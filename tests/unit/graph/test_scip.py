"""A SCIP index in the graph: symbols, where they stand, and what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from codeanatomy.extract.scip.documents import document_cells
from codeanatomy.extract.scip.index_file import Dialect
from codeanatomy.extract.scip.schema import Document, Occurrence, SymbolInformation
from support.graph_checks import Row, View, names, problems_of
from support.graph_stage import Graph, graph_of
from support.normalize_stage import source_of

SCHEME = "scip-python python demo 1.0 "
DEFINITION, IMPORT, WRITE, READ = 1, 2, 4, 8
SOURCES = {
    "shapes.py": "class Shape:\n    def area(self): return self.side\n",
    "main.py": (
        "from shapes import Shape as Base\n"
        "class Square(Base):\n"
        "    def area(self):\n"
        "        size = self.side\n"
        "        return size * size\n"
        "Square().area()\n"
    ),
}
SHAPE, AREA = f"{SCHEME}shapes/Shape#", f"{SCHEME}shapes/Shape#area()."
SQUARE, OWN_AREA = f"{SCHEME}main/Square#", f"{SCHEME}main/Square#area()."


def seen(path: str, text: str, symbol: str, roles: int = 0, number: int = 0) -> Any:
    """An occurrence at the place of a text, of which the first has number 0."""
    raw, start = SOURCES[path], -1
    for _ in range(number + 1):
        start = raw.index(text, start + 1)
    line, col = raw.count("\n", 0, start), start - raw.rfind("\n", 0, start) - 1
    return Occurrence(range=[line, col, col + len(text)], symbol=symbol, symbol_roles=roles)


def documents() -> list[Any]:
    area = SymbolInformation(
        symbol=OWN_AREA,
        documentation=["Area of a square.", "Exact."],
        display_name="area",
        kind=26,
        signature_documentation={"language": "python", "text": "def area(self):"},
        relationships=[{"symbol": AREA, "is_implementation": True, "is_reference": True}],
    )
    square = SymbolInformation(
        symbol=SQUARE, relationships=[{"symbol": SHAPE, "is_type_definition": True, "is_definition": True}]
    )
    main = [
        Occurrence(range=[0, 0, 0], symbol=f"{SCHEME}main/__init__:", symbol_roles=DEFINITION),
        seen("main.py", "Shape", SHAPE, IMPORT),
        seen("main.py", "Base", SHAPE, READ, 1),
        seen("main.py", "Square", SQUARE, DEFINITION),
        seen("main.py", "area", OWN_AREA, DEFINITION),
        seen("main.py", "self", f"{OWN_AREA}(self)", DEFINITION),
        seen("main.py", "size", "local 0", DEFINITION | WRITE),
        seen("main.py", "size", "local 0", READ, 1),
        seen("main.py", "side", f"{SHAPE}side.", READ),
        seen("main.py", "Square", SQUARE, READ, 1),
        seen("main.py", "area", OWN_AREA, 0, 1),
        # Somewhere behind the end of the file.
        Occurrence(range=[99, 0, 4], symbol=f"{SCHEME}main/gone().", symbol_roles=READ),
    ]
    shapes = [
        seen("shapes.py", "Shape", SHAPE, DEFINITION),
        seen("shapes.py", "area", AREA, DEFINITION),
        seen("shapes.py", "self", "local 0", DEFINITION),
        seen("shapes.py", "self", "local 0", READ, 1),
    ]
    told = SymbolInformation(symbol=SHAPE, documentation=["A shape."], display_name="Shape", kind=7)
    return [
        document("main.py", [square, area], main),
        document("shapes.py", [told], shapes),
    ]


def document(path: str, symbols: Sequence[Any], occurrences: Sequence[Any]) -> Any:
    return Document(
        relative_path=path,
        language="python",
        position_encoding=1,
        symbols=symbols,
        occurrences=occurrences,
    )


@cache
def built(profile: Any = "full") -> Graph:
    cells = {}
    for one in documents():
        source = source_of(SOURCES[one.relative_path], one.relative_path)
        said = document_cells(one.SerializeToString(), source, Dialect(), {})
        cells[one.relative_path] = said.cells
    return graph_of(SOURCES, profile, cells)


@cache
def view() -> View:
    return View(built())


def symbol(name: str, **cells: Any) -> Row:
    return view().one("SCIP_SYMBOL", qualname=name, **cells)


def standing(kind: str, name: str, **cells: Any) -> list[tuple[str, str | None, int, str]]:
    """What defines or references a symbol: kind, name, line, path."""
    rows = view().sources(kind, symbol(name, **cells))
    return sorted((row["node_kind"], row["name"], row["line"], row["path"]) for row in rows)


def test_the_graph_is_whole() -> None:
    assert problems_of(built()) == []
    assert problems_of(built("default"), "default") == []


def test_the_default_profile_has_symbols_without_their_places() -> None:
    kinds = {row["node_kind"] for row in built("default").nodes}
    assert "SCIP_SYMBOL" in kinds
    assert "SCIP_OCCURRENCE" not in kinds
    edges = {row["edge_kind"] for row in built("default").edges}
    assert edges >= {"DEFINES_SYMBOL", "REFERENCES_SYMBOL", "SYMBOL_RELATION"}


# Symbols


def test_symbols_of_the_index_are_of_the_repository() -> None:
    found = {row["qualname"] for row in view().all("SCIP_SYMBOL") if row["owner_file_id"] is None}
    assert found == {
        SHAPE,
        AREA,
        SQUARE,
        OWN_AREA,
        f"{OWN_AREA}(self)",
        f"{SHAPE}side.",
        f"{SCHEME}main/__init__:",
        f"{SCHEME}main/gone().",
    }


def test_a_symbol_of_two_files_is_one_and_knows_all() -> None:
    """Only the document that defines it has its documentation."""
    row = symbol(SHAPE)
    assert (row["name"], row["subkind"]) == ("Shape", "Class")
    assert view().props(row) == {"documentation": "A shape."}
    assert {edge["path"] for edge in view().into("REFERENCES_SYMBOL", row)} == {"main.py"}
    assert {edge["path"] for edge in view().into("DEFINES_SYMBOL", row)} == {"shapes.py"}


def test_what_the_index_says_of_a_symbol() -> None:
    row = symbol(OWN_AREA)
    assert row["name"] == "area"
    assert view().props(row) == {
        "documentation": "Area of a square.\n\nExact.",
        "signature": "def area(self):",
    }


def test_a_symbol_without_a_name_for_people_has_its_last_part() -> None:
    assert [symbol(name)["name"] for name in (SQUARE, f"{OWN_AREA}(self)", f"{SHAPE}side.")] == [
        "Square",
        "self",
        "side",
    ]


def test_local_symbols_are_of_their_files() -> None:
    found = view().all("SCIP_SYMBOL", qualname="local 0")
    assert names(found, "path") == ["main.py", "shapes.py"]
    assert len({row["node_id"] for row in found}) == 2
    assert standing("DEFINES_SYMBOL", "local 0", path="main.py") == [("NAME_REF", "size", 4, "main.py")]
    assert standing("DEFINES_SYMBOL", "local 0", path="shapes.py") == [("PARAMETER", "self", 2, "shapes.py")]


# What stands there


def test_definitions() -> None:
    assert standing("DEFINES_SYMBOL", SHAPE) == [("CLASS", "Shape", 1, "shapes.py")]
    assert standing("DEFINES_SYMBOL", SQUARE) == [("CLASS", "Square", 2, "main.py")]
    assert standing("DEFINES_SYMBOL", OWN_AREA) == [("FUNCTION", "area", 3, "main.py")]
    assert standing("DEFINES_SYMBOL", AREA) == [("FUNCTION", "area", 2, "shapes.py")]
    assert standing("DEFINES_SYMBOL", f"{OWN_AREA}(self)") == [("PARAMETER", "self", 3, "main.py")]
    assert standing("DEFINES_SYMBOL", f"{SCHEME}main/__init__:") == [("MODULE", "main", 1, "main.py")]


def test_references() -> None:
    assert standing("REFERENCES_SYMBOL", SQUARE) == [("NAME_REF", "Square", 6, "main.py")]
    assert standing("REFERENCES_SYMBOL", OWN_AREA) == [("ATTRIBUTE_REF", "area", 6, "main.py")]
    assert standing("REFERENCES_SYMBOL", f"{SHAPE}side.") == [("ATTRIBUTE_REF", "side", 4, "main.py")]
    assert ("NAME_REF", "Base", 2, "main.py") in standing("REFERENCES_SYMBOL", SHAPE)


def test_an_import_refers_to_what_it_imports() -> None:
    assert ("IMPORT_ALIAS", "Base", 1, "main.py") in standing("REFERENCES_SYMBOL", SHAPE)


def test_roles_are_kept() -> None:
    [edge] = view().into("DEFINES_SYMBOL", symbol("local 0", path="main.py"))
    assert edge["symbol_roles"] == DEFINITION | WRITE
    assert (edge["origin"], edge["confidence"]) == ("scip", 1.0)


def test_the_index_agrees_with_ours() -> None:
    """What defines the symbol of a reference is what the reference refers to."""
    checked = 0
    for edge in view().edges["REFERENCES_SYMBOL"]:
        src, dst = view().nodes[edge["src_node_id"]], view().nodes[edge["dst_node_id"]]
        defined = names(view().sources("DEFINES_SYMBOL", dst), "node_id")
        meant = names(view().targets("REFERS_TO", src), "node_id")
        if {node.partition(":")[0] for node in defined} & {"class", "function"} and meant:
            assert set(defined) <= set(meant), src
            checked += 1
    assert checked >= 3


# Occurrences


def test_occurrences_have_places_and_roles() -> None:
    rows = view().all("SCIP_OCCURRENCE", path="main.py")
    assert [(row["name"], row["subkind"], row["line"]) for row in rows if row["bend"] > row["bstart"]] == [
        ("Shape", "import", 1),
        ("Square", "definition", 2),
        ("Shape", "read", 2),
        ("area", "definition", 3),
        ("self", "definition", 3),
        ("0", "definition", 4),
        ("side", "read", 4),
        ("0", "read", 5),
        ("Square", "read", 6),
        ("area", "reference", 6),
    ]
    file = view().one("FILE", path="main.py")
    assert sorted(names(view().targets("HAS_OCCURRENCE", file), "node_id")) == sorted(names(rows, "node_id"))
    for row in rows:
        [edge] = view().out("OCCURRENCE_OF", row)
        assert edge["role"] == row["subkind"]


def test_an_occurrence_without_a_place_is_left_out() -> None:
    gone = symbol(f"{SCHEME}main/gone().")
    assert view().into("OCCURRENCE_OF", gone) == []
    assert view().into("REFERENCES_SYMBOL", gone) == []


# Relations


def test_relations_say_how() -> None:
    found = {
        (
            view().nodes[edge["src_node_id"]]["qualname"],
            view().nodes[edge["dst_node_id"]]["qualname"],
            edge["role"],
        )
        for edge in view().edges["SYMBOL_RELATION"]
    }
    assert found == {
        (OWN_AREA, AREA, "implementation"),
        (OWN_AREA, AREA, "reference"),
        (SQUARE, SHAPE, "type_definition"),
        (SQUARE, SHAPE, "definition"),
    }


def test_without_an_index_there_is_none_of_this() -> None:
    graph = graph_of(SOURCES)
    assert not [row for row in graph.nodes if row["node_kind"].startswith("SCIP")]
