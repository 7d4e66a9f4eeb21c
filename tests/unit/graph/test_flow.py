"""Control and data flow in the graph: from a parameter to its uses, into callees, and what decides what."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from textwrap import dedent
from typing import Any
from unicodedata import normalize

import pytest

from codeanatomy.file_view import iter_rows
from support.graph_checks import CONSTRUCTS, Row, View, built, files_of, names, problems_of
from support.graph_stage import graph_of

SOURCES = {
    "lib.py": "def scale(value, factor=2):\n    total = value * factor\n    return total\n",
    "main.py": dedent("""\
        from lib import scale

        def run(number):
            if number:
                return scale(number, factor=number + 1)
            return number
    """),
}
EDGES_OF = {"USE_EVENT": "READS", "DEF_EVENT": "WRITES", "DEL_EVENT": "DELETES"}
PACKAGES = ["requests", pytest.param("flask", marks=pytest.mark.system)]
# LibCST says nothing of this one, and without it relations do not say which binding a name reads.
BOUND = [construct for construct in CONSTRUCTS if construct != "libcst_cannot_parse"]


@cache
def whole(name: str) -> View:
    return View(built(name))


@cache
def small() -> View:
    graph = graph_of(SOURCES)
    assert problems_of(graph) == []
    return View(graph)


# Walks


def uses_of(view: View, parameter: Row) -> list[Row]:
    """The names that may get the value that a parameter was given."""
    [binding] = view.targets("DEFINES_BINDING", parameter)
    found = []
    for event in view.sources("EVENT_OF", binding):
        if event["node_kind"] == "DEF_EVENT":
            for use in view.targets("REACHES", event):
                [syntax] = view.targets("ANCHORED_AT", use)
                found += [row for row in view.sources("SYNTAX_OF", syntax) if row["node_kind"] == "NAME_REF"]
    return sorted(found, key=lambda row: row["bstart"])


def test_from_a_parameter_to_its_uses() -> None:
    view = small()
    found = uses_of(view, view.one("PARAMETER", "number"))
    assert [(row["name"], row["line"]) for row in found] == [
        ("number", 4),
        ("number", 5),
        ("number", 5),
        ("number", 6),
    ]


def test_from_a_parameter_through_an_argument_into_another_file() -> None:
    view = small()
    use = uses_of(view, view.one("PARAMETER", "number"))[1]
    [syntax] = view.targets("SYNTAX_OF", use)
    [argument] = [row for row in view.sources("SYNTAX_OF", syntax) if row["node_kind"] == "ARGUMENT"]
    [parameter] = view.targets("PASSES_TO", argument)
    assert (parameter["qualname"], parameter["path"]) == ("lib.scale.value", "lib.py")
    assert [(row["name"], row["line"]) for row in uses_of(view, parameter)] == [("value", 2)]
    # A keyword and an expression.
    other = view.one("ARGUMENT", "factor")
    assert names(view.targets("PASSES_TO", other), "qualname") == ["lib.scale.factor"]
    [edge] = view.out("PASSES_TO", other)
    assert (edge["role"], edge["ordinal"]) == ("factor", 1)


def test_what_is_assigned_is_defined_and_used() -> None:
    view = small()
    [event] = view.all("DEF_EVENT", name="total")
    assert names(view.targets("ANCHORED_AT", event), "subkind") == ["Name"]
    assert [(row["name"], row["line"]) for row in view.targets("REACHES", event)] == [("total", 3)]
    [block] = view.sources("STEP_DEF", event)
    [unit] = view.sources("HAS_BLOCK", block)
    assert names(view.sources("HAS_CODE_UNIT", unit), "qualname") == ["lib.scale"]


def test_what_crosses_functions_says_how() -> None:
    view = View(graph_of({"main.py": "x = 1\ndef f(a):\n    def g(): return a, x\n    return g\n"}))
    roles = {
        (view.nodes[edge["dst_node_id"]]["name"], view.nodes[edge["src_node_id"]]["line"]): edge["role"]
        for edge in view.edges["REACHES"]
    }
    assert roles == {("a", 2): "closure", ("x", 1): "global", ("g", 3): "local"}


def test_a_deletion_is_an_event() -> None:
    view = View(graph_of({"main.py": "def f(a):\n    del a\n    return a\n"}))
    [event] = view.all("DEL_EVENT")
    assert names(view.targets("EVENT_OF", event), "qualname") == ["main.f.a"]
    assert [row["node_kind"] for row in view.sources("STEP_DEL", event)] == ["CFG_BLOCK"]
    [use] = view.all("USE_EVENT")
    assert view.props(use) == {"may_be_unbound": True}
    assert view.into("REACHES", use) == []


# Events and bindings


def disagreements(view: View) -> Iterator[tuple[str, str, str, int]]:
    """Events whose binding is another than that of the name at their place."""
    refs = {
        (row["file_id"], row["bstart"], row["bend"]): row
        for row in view.by_kind["NAME_REF"]
        if row["bstart"] is not None
    }
    for kind, relation in EDGES_OF.items():
        for event in view.by_kind[kind]:
            ref = refs.get((event["file_id"], event["bstart"], event["bend"]))
            if ref is not None and view.targets("EVENT_OF", event) != view.targets(relation, ref):
                yield kind, event["path"], event["name"], event["line"]


@pytest.mark.parametrize("name", PACKAGES)
def test_the_bindings_of_events_are_those_of_names(name: str) -> None:
    """The compiler's bytecode and its symbol tables are two witnesses of what a name means."""
    view = whole(name)
    assert list(disagreements(view)) == []
    assert len(view.edges["EVENT_OF"]) > 3000


def test_the_bindings_of_events_are_those_of_names_in_all_constructs() -> None:
    found = {construct: list(disagreements(whole(construct))) for construct in BOUND}
    assert {construct: rows for construct, rows in found.items() if rows} == {}


@pytest.mark.xfail(reason="READS and WRITES need LibCST's places of names")
def test_the_bindings_of_events_are_those_of_names_without_libcst() -> None:
    assert list(disagreements(whole("libcst_cannot_parse"))) == []


@pytest.mark.parametrize("name", PACKAGES)
def test_events_are_anchored_at_the_nodes_that_they_are_of(name: str) -> None:
    """By name; of an import that is the name that becomes bound."""
    view, seen = whole(name), Counter[tuple[str, str]]()
    for kind in EDGES_OF:
        for event in view.by_kind[kind]:
            anchors = view.targets("ANCHORED_AT", event)
            assert bool(anchors) == (event["bstart"] is not None), event
            for anchor in anchors:
                seen[kind, anchor["subkind"]] += 1
                if anchor["subkind"] != "alias":
                    assert normalize("NFKC", anchor["name"]) == event["name"], event
    # Nothing is deleted in requests.
    assert set(seen) == {
        ("USE_EVENT", "Name"),
        *([("DEL_EVENT", "Name")] if name == "flask" else ()),
        *(
            ("DEF_EVENT", kind)
            for kind in ("Name", "arg", "FunctionDef", "ClassDef", "alias", "ExceptHandler")
        ),
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_every_event_is_in_a_block(name: str) -> None:
    view = whole(name)
    for kind, step in (("USE_EVENT", "STEP_USE"), ("DEF_EVENT", "STEP_DEF"), ("DEL_EVENT", "STEP_DEL")):
        found = {edge["dst_node_id"] for edge in view.edges[step]}
        assert found == {row["node_id"] for row in view.by_kind[kind]}


# Code units and instructions


@pytest.mark.parametrize("name", PACKAGES)
def test_every_code_unit_has_an_owner_of_its_name(name: str) -> None:
    view = whole(name)
    assert len(view.by_kind["CODE_UNIT"]) > (400 if name == "flask" else 300)
    for unit in view.by_kind["CODE_UNIT"]:
        [owner] = view.sources("HAS_CODE_UNIT", unit)
        assert (owner["bstart"], owner["bend"], owner["file_id"]) == (
            unit["bstart"],
            unit["bend"],
            unit["file_id"],
        )
        if unit["subkind"] in ("module", "class", "function"):
            assert unit["qualname"].replace(".<locals>", "") == owner["qualname"]
            assert owner["node_kind"] == unit["subkind"].upper()
        elif unit["subkind"] == "lambda":
            assert owner["subkind"] == "lambda"
        else:
            assert owner["subkind"] in ("ListComp", "SetComp", "DictComp", "GeneratorExp")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_definition_has_a_code_unit(name: str) -> None:
    view = whole(name)
    for kind in ("MODULE", "CLASS", "FUNCTION"):
        for row in view.by_kind[kind]:
            assert len(view.out("HAS_CODE_UNIT", row)) == 1, row


def test_what_units_say_of_themselves() -> None:
    view = View(graph_of({"main.py": "async def f(): ...\ndef g(): yield\nclass A: ...\nh = lambda: 0\n"}))
    said = {row["name"]: (row["subkind"], view.props(row)["is_generator"]) for row in view.all("CODE_UNIT")}
    assert said == {
        "<module>": ("module", False),
        "f": ("function", True),
        "g": ("function", True),
        "A": ("class", False),
        "<lambda>": ("lambda", False),
    }


def test_instructions_are_in_the_blocks_that_cover_them() -> None:
    view = whole("requests")
    blocks: dict[str, list[Any]] = {}
    for file in files_of("requests"):
        columns = ("bc_block_id", "bc_offset_start", "bc_offset_end", "bc_block_kind")
        blocks |= {node: place for node, *place in iter_rows(file.rows("py_bc_blocks_norm_v1"), *columns)}
    for block, (start, end, kind) in blocks.items():
        inside = view.targets("HAS_INSTRUCTION", view.nodes[block])
        offsets = [view.props(row)["offset"] for row in inside]
        assert offsets == sorted(offsets)
        assert all(start <= offset < end for offset in offsets)
        assert bool(offsets) == (kind != "exit")
        assert names(view.out("HAS_INSTRUCTION", view.nodes[block]), "ordinal") == list(range(len(offsets)))
    assert len(view.edges["HAS_INSTRUCTION"]) == len(view.by_kind["INSTRUCTION"]) > 10_000


def test_instructions_of_calls_over_lines_are_anchored_at_the_call() -> None:
    """The compiler places them from the attribute on, where no node begins."""
    view = View(graph_of({"main.py": "(a\n .b()\n .c())\n"}))
    called = [row for row in view.all("INSTRUCTION", subkind="CALL") if row["bstart"] is not None]
    assert [names(view.targets("ANCHORED_AT", row), "subkind") for row in called] == [["Call"], ["Call"]]
    anchors = {view.targets("ANCHORED_AT", row)[0]["node_id"] for row in called}
    assert len(anchors) == 2


# Control

CHOICE = """\
def f(a):
    if a:
        g()
    else:
        h()
    return 1
"""
LOOP = """\
def f(a):
    for x in a:
        g()
    h()
"""
CAUGHT = """\
def f(a):
    try:
        g()
    except E:
        h()
"""


class Blocks:
    """The blocks of a function `f` by their numbers."""

    def __init__(self, text: str) -> None:
        self.view = View(graph_of({"main.py": text}))
        self.rows = self.view.targets("HAS_BLOCK", self.view.one("CODE_UNIT", "f"))
        self.number = {row["node_id"]: place for place, row in enumerate(self.rows)}

    def edges(self, kind: str) -> set[tuple[int, int, str | None]]:
        return {
            (self.number[edge["src_node_id"]], self.number[edge["dst_node_id"]], edge["role"])
            for edge in self.view.edges[kind]
            if edge["src_node_id"] in self.number
        }

    def of_line(self, line: int) -> list[int]:
        return [place for place, row in enumerate(self.rows) if row["line"] == line]


def test_a_choice() -> None:
    found = Blocks(CHOICE)
    # From 3.12 on each branch has the return in it.
    joined = [("normal", 6)] if sys.version_info < (3, 12) else []
    assert [(row["subkind"], row["line"]) for row in found.rows] == [
        ("entry", 2),
        ("normal", 3),
        ("normal", 5),
        *joined,
        ("exit", None),
    ]
    assert found.edges("CFG_BRANCH_TRUE") == {(0, 1, None)}
    assert found.edges("CFG_BRANCH_FALSE") == {(0, 2, None)}
    assert found.edges("CFG_JUMP") == ({(1, 3, None)} if joined else set())
    assert found.edges("CFG_NEXT") == {(2, 3, None), (3, 4, None) if joined else (1, 3, None)}
    assert found.edges("CFG_EXCEPTION") == set()
    assert found.edges("CONTROL_DEPENDS") == {(1, 0, "branch_true"), (2, 0, "branch_false")}


def test_a_loop() -> None:
    found = Blocks(LOOP)
    [(test, body, _)] = found.edges("CFG_BRANCH_TRUE")
    [(_, after, _)] = found.edges("CFG_BRANCH_FALSE")
    assert found.edges("CFG_BRANCH_TRUE") == {(test, body, "loop_body")}
    assert found.edges("CFG_BRANCH_FALSE") == {(test, after, "loop_exit")}
    assert (body, test, None) in found.edges("CFG_JUMP")
    # It decides whether it runs again.
    assert found.edges("CONTROL_DEPENDS") == {(test, test, "loop_body"), (body, test, "loop_body")}


def test_a_handler() -> None:
    found = Blocks(CAUGHT)
    raising = found.of_line(3)[0]
    handlers = {place for place, row in enumerate(found.rows) if row["subkind"] == "handler"}
    caught = {(src, dst) for src, dst, _ in found.edges("CFG_EXCEPTION")}
    [handler] = {dst for src, dst in caught if src == raising}
    assert handler in handlers
    depends = found.edges("CONTROL_DEPENDS")
    assert (handler, raising, "exception") in depends
    [(_, matched, _)] = [edge for edge in found.edges("CFG_BRANCH_TRUE") if edge[0] == handler]
    assert (matched, handler, "branch_true") in depends
    # Nothing is decided by what runs in any case.
    assert not [edge for edge in depends if edge[1] == 0]


def test_blocks_are_numbered_in_their_order() -> None:
    view = whole("requests")
    for unit in view.by_kind["CODE_UNIT"]:
        edges = view.out("HAS_BLOCK", unit)
        assert names(edges, "ordinal") == list(range(len(edges)))
        kinds = names(view.targets("HAS_BLOCK", unit), "subkind")
        assert (kinds[0], kinds[-1]) == ("entry", "exit")
        assert names(edges, "role") == kinds


def test_control_stays_in_its_unit() -> None:
    view = whole("requests")
    unit_of = {edge["dst_node_id"]: edge["src_node_id"] for edge in view.edges["HAS_BLOCK"]}
    for kind in ("CFG_NEXT", "CFG_JUMP", "CFG_BRANCH_TRUE", "CFG_BRANCH_FALSE", "CFG_EXCEPTION"):
        assert view.edges[kind]
        for edge in view.edges[kind]:
            assert unit_of[edge["src_node_id"]] == unit_of[edge["dst_node_id"]]
    for edge in view.edges["CONTROL_DEPENDS"]:
        assert unit_of[edge["src_node_id"]] == unit_of[edge["dst_node_id"]]
