"""What other files decide of a file: reasons, names with the module, packages, nodes of relations alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from codeanatomy.catalog.entry_points import RULES, Rule, rule_set
from codeanatomy.file_view import iter_rows
from codeanatomy.graph import facts as file_facts
from codeanatomy.graph.facts import (
    FILE_LISTS,
    SHARED_LISTS,
    CallArgument,
    GenericArgument,
    IfBlock,
    KeptFacts,
    PlacedDefinition,
    UseSite,
)
from codeanatomy.graph.resolution import REASONED, ResolvedFile, complete_names
from codeanatomy.graph.rows import EDGES, NODES, TABLES, resolution_rows, rows_of_files
from codeanatomy.node_ids import file_id, module_id, natural_id
from support.graph_checks import CONSTRUCTS, Sources, View, files_of, graph_from, names, problems_of
from support.graph_stage import graph_files, graph_of, resolved_file

MAIN = file_id("test", "main.py")
WHOLE = rule_set(RULES)


def view_of(sources: Sources) -> View:
    graph = graph_of(sources)
    assert problems_of(graph) == []
    return View(graph)


def resolved(sources: Sources) -> dict[str, ResolvedFile]:
    """The files with their relations, by path."""
    files = graph_files(sources, {}, "test")
    graphs = rows_of_files(files, "full")
    return {file.path: resolved_file(file, graph.facts) for file, graph in zip(files, graphs, strict=True)}


def cells_of(rows: Mapping[str, Any], *columns: str) -> list[tuple[Any, ...]]:
    return sorted(iter_rows(rows, *columns), key=str)


# Reasons

UNRESOLVED = """\
from . import above
class A(missing): ...
@nothing
def f(): ...
gone()
A().nope
"""


def test_why_something_is_unresolved_is_a_property() -> None:
    view = view_of({"main.py": UNRESOLVED})
    found = {
        (view.nodes[row["entity_id"]]["node_kind"], view.nodes[row["entity_id"]]["name"], row["value_string"])
        for row in view.graph.props
        if row["prop_key"] == "unresolved"
    }
    assert found == {
        ("IMPORT_ALIAS", "above", "above_all_packages"),
        ("CLASS", "A", "unknown_base"),
        ("DECORATOR", "nothing", "unknown_value"),
        ("CALLSITE", "gone", "unknown_value"),
        ("ATTRIBUTE_REF", "nope", "unknown_base"),
        *(("NAME_REF", name, "unbound") for name in ("missing", "nothing", "gone")),
    }
    assert {kind for kind, _, _ in found} == REASONED
    # It is among the other properties of the class, in both tables.
    assert view.props(view.one("CLASS", "A")) == {"base_count": 1, "unresolved": "unknown_base"}


def test_several_reasons_are_one_property() -> None:
    rows = relation_rows(*(("CALLS", "callsite:a", "CALLSITE", reason) for reason in ("two", "one", "two")))
    file = ResolvedFile(KeptFacts("test", MAIN, "main.py"), rows)
    assert file.properties() == [("callsite:a", "CALLSITE", "unresolved", "string", "one, two")]
    assert file.lists(WHOLE)["relations.CALLS"]["src_id"] == []


def test_classes_that_a_list_lacks_have_no_reasons() -> None:
    rows = relation_rows(*(("INHERITS", node, "CLASS", "unknown_base") for node in ("class:a", "class:b")))
    file = ResolvedFile(KeptFacts("test", MAIN, "main.py", classes=[("class:a", 2), ("class:c", None)]), rows)
    assert file.properties() == [
        ("class:a", "CLASS", "base_count", "int", 2),
        ("class:a", "CLASS", "unresolved", "string", "unknown_base"),
    ]


def relation_rows(*rows: tuple[str, str, str, str], **cells: Any) -> dict[str, list[Any]]:
    """Relations without a target, of kind, source, kind of the source and reason."""
    names = ("relation_kind", "src_id", "src_kind", "reason")
    columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    others = {"origin": "values", "bstart": 0, "bend": 3, "line": 1, "confidence": 1.0, **cells}
    empty = ("dst_id", "dst_kind", "dst_qname", "role", "ordinal", "resolution_method", "rule_name")
    return {
        **columns,
        **{name: [others.get(name)] * len(rows) for name in (*others, *empty)},
    }


# Attributes that code elsewhere sets


def test_attributes_set_from_elsewhere_are_bindings_of_the_class() -> None:
    view = view_of(
        {
            "a.py": "class C:\n    size = 1\n",
            "b.py": "from a import C\nC.size = 2\nC.color = 3\nC().shape = 4\n",
        }
    )
    scope = view.one("SCOPE", "C")
    bound = {
        (row["name"], row["qualname"], row["subkind"], row["path"])
        for row in view.targets("SCOPE_BINDS", scope)
    }
    assert bound == {
        ("size", "a.C.size", "local", "a.py"),
        ("color", "a.C.color", "attribute", "a.py"),
        ("shape", "a.C.shape", "attribute", "a.py"),
    }
    color = view.one("BINDING", "color")
    [edge] = view.into("SCOPE_BINDS", color)
    assert edge["owner_file_id"] == color["owner_file_id"] == file_id("test", "a.py")
    assert [row["path"] for row in view.sources("DEFINES_BINDING", color)] == ["b.py"]


@pytest.mark.parametrize("place", ["main.py", "other.py"])
def test_a_variable_of_a_comprehension_is_no_attribute_of_the_class(place: str) -> None:
    """From Python 3.12 on the compiler lists it among the names of the class."""
    sources = {"main.py": "class C:\n    y = [x for x in z]\n", "other.py": "from main import C\n"}
    view = view_of({**sources, place: f"{sources[place]}C.x = 1\n"})
    assert {(row["qualname"], row["subkind"]) for row in view.all("BINDING", name="x")} == {
        ("main.C.x", "attribute"),
        ("main.C.<listcomp>.x", "local"),
    }
    attribute = view.one("BINDING", "x", subkind="attribute")
    assert [row["path"] for row in view.sources("DEFINES_BINDING", attribute)] == [place]
    assert view.into("EVENT_OF", attribute) == []


@pytest.mark.parametrize(
    "sources",
    [
        {"main.py": "class C:\n    x = __name__\nC.__name__ = 1\n"},
        {"main.py": "class C:\n    x = __name__\n", "other.py": "from main import C\nC.__name__ = 1\n"},
    ],
    ids=["same file", "other file"],
)
def test_a_name_that_a_class_reads_is_no_attribute_that_is_set_elsewhere(sources: Sources) -> None:
    """The body of the class ran before, and reads the variable of the module."""
    view = view_of(sources)
    attribute = view.one("BINDING", "__name__", subkind="attribute")
    assert attribute["qualname"] == "main.C.__name__"
    assert view.into("EVENT_OF", attribute) == []
    assert "__name__" in names(view.all("USE_EVENT"))
    # Events of variables that the class binds are theirs.
    assert view.edges_told("EVENT_OF") >= {("x", "x"), ("C", "C")}


# Nodes that only relations have


def test_uses_that_only_relations_have_are_nodes() -> None:
    """A place that has an id but is in no list, and one that has no number."""
    facts = KeptFacts("test", MAIN, "main.py", unlisted=["callsite:k.000003"], unnumbered=["callsite:k.@1-2"])
    ids = (
        "callsite:k.000001",
        "callsite:k.000003",
        "callsite:k.@1-2",
        "callsite:k.@5-9",
        "callsite:k.unplaced",
    )
    rows = relation_rows(*(("CALLS", node, "CALLSITE", "unbound") for node in ids))
    lists = ResolvedFile(facts, rows).lists(WHOLE)
    assert cells_of(lists["calls"], "node_id", "bstart", "bend", "line") == [
        ("callsite:k.000003", 0, 3, 1),
        ("callsite:k.@5-9", 0, 3, 1),
        ("callsite:k.unplaced", 0, 3, 1),
    ]
    assert lists["names"] == lists["attributes"] == {}


def test_a_call_that_only_relations_have_registers_an_entry_point() -> None:
    site, target = "callsite:k.000003", "function:f"
    facts = KeptFacts(
        "test",
        MAIN,
        "main.py",
        unlisted=[site],
        definitions=[PlacedDefinition(target, "FUNCTION", "f", module_id(MAIN), 0, 9, 1)],
        arguments=msgspec.Raw(msgspec.msgpack.encode([CallArgument(site, 0, None, 20, 21, None)])),
    )
    calls = relation_rows(
        ("CALLS_NAME", site, "CALLSITE", ""), dst_id="qname:on", dst_qname="lib.on", bstart=18
    )
    refers = relation_rows(
        ("REFERS_TO", "name_ref:f", "NAME_REF", ""),
        dst_id=target,
        dst_kind="FUNCTION",
        dst_qname="main.f",
        bstart=20,
    )
    rows = {name: [*calls[name], *refers[name]] for name in calls}
    rule = Rule("lib", "event", call=("lib.on",), argument=0)
    found = ResolvedFile(facts, rows).lists(rule_set((rule,)))["entry_points"]
    assert cells_of(found, "src_id", "dst_id", "role", "entry_name", "bstart") == [
        (site, target, "event", "f", 18)
    ]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="f-strings have places")
def test_names_in_f_strings_that_have_lost_their_places_are_nodes() -> None:
    [file] = resolved({"main.py": (text := LOST)}).values()
    [node] = file.lists(WHOLE)["names"]["node_id"]
    assert node.endswith(".unplaced")
    view = view_of({"main.py": text})
    assert view.nodes[node]["bstart"] is None
    assert node in {row["src_node_id"] for row in view.graph.edges}


LOST = """\
a, b, c = 1, 2, 3
z = f\"\"\"{a}
 {f'''
{(lambda x: x)(b.real)}'''} {c}\"\"\"
"""


# Names with the module


SPACE = {"space/one/part.py": "class A:\n    def f(self, a): ...\n", "main.py": "x = 1\n"}


def test_names_are_completed_with_that_of_the_module() -> None:
    view = view_of(SPACE)
    assert {
        (row["node_kind"], row["qualname"])
        for row in view.graph.nodes
        if row["path"] == "space/one/part.py" and row["qualname"] is not None
    } == {
        ("MODULE", "space.one.part"),
        ("CLASS", "space.one.part.A"),
        ("FUNCTION", "space.one.part.A.f"),
        *(("PARAMETER", f"space.one.part.A.f.{name}") for name in ("self", "a")),
        *(("SCOPE", name) for name in ("space.one.part", "space.one.part.A", "space.one.part.A.f")),
        *(("BINDING", f"space.one.part.{name}") for name in ("A", "A.f", "A.f.self", "A.f.a")),
        *(("CODE_UNIT", name) for name in ("space.one.part", "space.one.part.A", "space.one.part.A.f")),
    }
    assert view.one("MODULE", "part")["qualname"] == "space.one.part"


def test_namespace_packages_contain_their_modules() -> None:
    view = view_of(SPACE)
    [package] = view.sources("CONTAINS", view.one("MODULE", "part"))
    assert (package["node_kind"], package["qualname"], package["subkind"]) == (
        "PACKAGE",
        "space.one",
        "namespace",
    )
    files = resolved(SPACE)
    assert files["space/one/part.py"].module_name == "space.one.part"
    shared = files["space/one/part.py"].shared_lists()
    assert cells_of(shared["packages"], "qualname", "path", "subkind") == [
        ("space", "space", "namespace"),
        ("space.one", "space/one", "namespace"),
    ]
    outer = natural_id("PACKAGE", "test", "space")
    assert (outer, natural_id("PACKAGE", "test", "space.one")) in cells_of(
        shared["contained"], "src_id", "dst_id"
    )
    assert not files["main.py"].shared_lists()["packages"]["qualname"]


def test_an_import_of_another_file_names_a_module() -> None:
    """The rows that need no other file are the same, whatever its name is."""
    part = {"ns/part/__init__.py": "class A: ...\n"}
    made = []
    for sources, name in ((part, "part"), ({**part, "main.py": "import ns.part\n"}, "ns.part")):
        view = view_of(sources)
        assert [row["qualname"] for row in view.all("CLASS")] == [f"{name}.A"]
        packages = name.split(".")
        assert {row["qualname"] for row in view.all("PACKAGE")} == {packages[0], name}
        assert view.one("MODULE", "part")["qualname"] == name
        files = {file.path: file for file in graph_files(sources, {}, "test")}
        [graph] = rows_of_files([files["ns/part/__init__.py"]], "full")
        made.append((graph.tables, graph.named, graph.facts))
    assert made[0] == made[1]


def test_a_file_without_relations_is_named_by_its_path() -> None:
    file = ResolvedFile(KeptFacts("test", MAIN, "pkg/main.py"), {})
    assert file.module_name == "pkg/main.py"
    lists = file.lists(WHOLE)
    assert not any(any(rows.values()) for rows in lists.values())
    shared = {name: rows for name, rows in file.shared_lists().items() if any(rows.values())}
    assert shared == {"repositories": {"node_id": ["repo:test"], "name": ["test"]}}


def test_names_of_files_are_completed_together() -> None:
    kinds = ["MODULE", "CLASS", "FUNCTION", "MODULE"]
    nodes = pa.RecordBatch.from_pydict(
        {
            "node_kind": kinds,
            "file_id": ["a", "b", "a", "b"],
            "name": [None, "C", "f", None],
            "qualname": ["", ".C", ".C.f", ""],
            "line": [1, 2, 3, 4],
        }
    )
    completed = complete_names(nodes, {"a": "one", "b": "pkg.two"})
    assert completed.schema.names == nodes.schema.names
    assert [tuple(row.values()) for row in completed.to_pylist()] == [
        ("MODULE", "a", "one", "one", 1),
        ("CLASS", "b", "C", "pkg.two.C", 2),
        ("FUNCTION", "a", "f", "one.C.f", 3),
        ("MODULE", "b", "two", "pkg.two", 4),
    ]


# External names


def test_names_outside_of_the_repository_are_shared() -> None:
    shared = resolved({"main.py": "import os, os.path as p\nlen(); len(); print()\n"})[
        "main.py"
    ].shared_lists()
    assert cells_of(shared["external_modules"], "qualname", "name") == [("os", "os"), ("os.path", "path")]
    assert cells_of(shared["qualified_names"], "qualname", "name") == [
        ("builtins.len", "len"),
        ("builtins.print", "print"),
    ]
    assert not shared["packages"]["qualname"]


# Entry points


SETUP = """\
from setuptools import setup
setup(entry_points={"console_scripts": ["serve = main:run", "main:run"]}, other="a=b")
"""


def test_strings_with_an_equals_sign_are_labels() -> None:
    sources = {"setup.py": SETUP, "main.py": "def run(): ...\n"}
    file = resolved(sources)["setup.py"]
    assert [label for _, _, label in file.facts.labels] == ["serve", "a"]
    view = view_of(sources)
    found = {(edge["role"], view.props(edge)["entry_name"]) for edge in view.edges["ENTRY_POINT"]}
    # Without a label the name is that of the definition.
    assert ("command", "serve") in found
    assert {name for _, name in found} == {"serve", "main.run"}


# Facts


def test_facts_are_the_same_after_they_were_packed() -> None:
    for construct in CONSTRUCTS:
        for graph in rows_of_files(files_of(construct), "full"):
            again = KeptFacts.unpack(graph.facts.pack())
            assert again == graph.facts
            assert again.call_arguments() == graph.facts.call_arguments()
            assert again.pack() == graph.facts.pack()


def test_facts_have_their_types_after_they_were_packed() -> None:
    text = """\
    from typing import Generic, TYPE_CHECKING, TypeVar
    T = TypeVar("T")
    if TYPE_CHECKING:
        class Box(Generic[T]): ...
    @app.route("/items", name="x")
    def items(): ...
    labels = "web = shop.web:run"
    """.replace("\n    ", "\n").strip(" ")
    facts = resolved({"main.py": text})["main.py"].facts
    assert [(each.name, each.kind, each.line) for each in facts.definitions] == [
        ("Box", "CLASS", 4),
        ("items", "FUNCTION", 6),
    ]
    assert all(isinstance(each, PlacedDefinition) for each in facts.definitions)
    assert {type(each) for each in (*facts.calls, *facts.decorators)} == {UseSite}
    assert [each.owner_id for each in facts.decorators] == [facts.definitions[1].node_id]
    [block], [generic] = facts.blocks, facts.generics
    assert isinstance(block, IfBlock)
    assert (block.name, block.line) == ("TYPE_CHECKING", 3)
    assert isinstance(generic, GenericArgument)
    assert generic.class_id == facts.definitions[0].node_id
    assert [(each.keyword, each.number, each.text) for each in facts.call_arguments()] == [
        (None, 0, "'T'"),
        (None, 0, "'/items'"),
        ("name", 1, "'x'"),
    ]
    assert [label for *_, label in facts.labels] == ["web"]


# What fails


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("_bindings", "bindings"),
        ("_contained_module", "contained"),
        ("_generic_arguments", "type_param_uses"),
        ("_entry_points", "entry_points"),
        ("_package_nodes", "packages"),
        ("_contained_packages", "contained"),
        ("_external_modules", "external_modules"),
        ("_qualified_names", "qualified_names"),
    ],
)
def test_a_list_that_fails_costs_itself_and_is_a_diagnostic(
    method: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("ours")

    files = graph_files({"main.py": "import os\nos.getcwd()\n"}, {}, "test")
    whole = graph_from(files)
    monkeypatch.setattr(ResolvedFile, method, fail)
    view = View(graph_from(files))
    row = view.one("DIAGNOSTIC", "not_graphed")
    assert view.props(row) == {"severity": "error", "message": f"{name}: ValueError: ours"}
    assert names(view.sources("HAS_DIAGNOSTIC", row)) == ["main.py"]
    assert {row["node_kind"] for row in view.graph.nodes if row["path"]} - {"DIAGNOSTIC"} == {
        row["node_kind"] for row in whole.nodes if row["path"]
    }


def test_facts_that_fail_are_a_diagnostic_after_those_of_the_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("ours")

    monkeypatch.setattr(file_facts, "_labels", fail)
    monkeypatch.setattr(ResolvedFile, "_bindings", fail)
    monkeypatch.setitem(FILE_LISTS, "literals", fail)
    monkeypatch.setitem(SHARED_LISTS, "types", fail)
    graph = graph_of({"main.py": "def f(): ...\nf()\n"})
    view = View(graph)
    rows = view.all("DIAGNOSTIC", name="not_graphed")
    # Each has an id of its own.
    assert {view.props(row)["message"] for row in rows} == {
        f"{name}: ValueError: ours" for name in ("literals", "types", "facts", "bindings")
    }
    # Edges between nodes that are known anyway stay.
    assert view.edges_told("CALLS") == {("f", "f")}


# Both stages


def test_rows_of_both_stages_are_apart() -> None:
    """Each node, edge and property is made by one of them, so that tables have it once."""
    for construct in CONSTRUCTS:
        files = files_of(construct)
        graphs = list(rows_of_files(files, "full"))
        pairs = [resolved_file(file, graph.facts) for file, graph in zip(files, graphs, strict=True)]
        for graph, rest in zip(graphs, resolution_rows(pairs, "full"), strict=True):
            for name in TABLES:
                own = [*graph.tables[name].to_pylist(), *(graph.named.to_pylist() if name == NODES else ())]
                both = [[key_of(name, row) for row in rows] for rows in (own, rest.tables[name].to_pylist())]
                assert not set(both[0]) & set(both[1]), (construct, name)


def key_of(name: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    if name == NODES:
        return (row["node_id"],)
    if name == EDGES:
        # Without `repeat`, which is counted in each of the stages.
        return row["edge_kind"], row["src_node_id"], row["dst_node_id"]
    return row["entity_id"], row.get("prop_key")
