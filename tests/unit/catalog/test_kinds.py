"""The catalogue of kinds agrees with itself, with the tables, and with the lists of the graph stage."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from functools import cache
from typing import NamedTuple

import pytest

from codeanatomy import catalog
from codeanatomy.catalog.describe import id_text
from codeanatomy.catalog.entry_points import RULES, rule_set
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, PROFILES, EdgeKind, NodeKind, kind
from codeanatomy.catalog.kinds.edges import EDGES
from codeanatomy.catalog.kinds.nodes import NODES, UNRESOLVED_PROP
from codeanatomy.catalog.semantic_types import SEMANTIC_TYPES
from codeanatomy.errors import UnknownName
from codeanatomy.graph.context import Context
from codeanatomy.graph.facts import (
    FAMILIES,
    FILE_LISTS,
    SHARED_LISTS,
    USES,
    collect_facts,
    facts_of,
    shared_facts_of,
)
from codeanatomy.graph.flow import CFG_KINDS, EVENT_KINDS
from codeanatomy.graph.reads import READS
from codeanatomy.graph.rows import NODES as NODE_ROWS
from codeanatomy.graph.rows import rows_of_files
from codeanatomy.node_ids import PREFIXES
from support.graph_checks import CONSTRUCTS, files_of
from support.graph_stage import nodes_of, resolved_file

RELATED = "relations."
# How the catalogue says that a qualified name begins with that of the module.
NAMED_BY_MODULE = r"(module\b|qualified name of the (function|definition|scope's owner)\b|dotted name$)"
KINDS: tuple[NodeKind | EdgeKind, ...] = (*NODES, *EDGES)
IN_MODULE = {each.name for each in NODES if each.in_module}
NODE_COLUMNS = set(catalog.table("cpg_nodes").column_names)
EDGE_COLUMNS = set(catalog.table("cpg_edges").column_names)
# Examples that Python refuses, each for a reason.
NO_PYTHON = {"REPOSITORY", "TS_ERROR", "TS_MISSING", "DIAGNOSTIC", "HAS_DIAGNOSTIC"}
NEWER_PYTHON = {"TYPE_PARAM"} if sys.version_info < (3, 12) else set()


def test_names_are_unique_and_written_in_capitals() -> None:
    found = Counter(each.name for each in KINDS)
    assert set(found.values()) == {1}
    assert all(re.fullmatch(r"[A-Z]+(_[A-Z]+)*", name) for name in found)


def test_ends_are_kinds_of_nodes() -> None:
    for each in EDGES:
        assert each.ends, each.name
        for ends in each.ends:
            assert ends.src, each.name
            assert ends.dst, each.name
            assert set(ends.src) | set(ends.dst) <= NODE_KINDS.keys(), each.name
            assert len(set(ends.src)) == len(ends.src), each.name
            assert len(set(ends.dst)) == len(ends.dst), each.name


def test_every_kind_of_node_is_an_end_of_an_edge() -> None:
    touched = {name for each in EDGES for ends in each.ends for name in (*ends.src, *ends.dst)}
    assert touched == NODE_KINDS.keys()


def test_what_is_said_is_said_in_words() -> None:
    for each in KINDS:
        assert each.doc[0].isupper(), each.name
        assert each.doc.endswith("."), each.name
        assert each.family
        assert each.sources, each.name
        for prop in each.props:
            assert prop.doc.endswith("."), (each.name, prop.name)
    assert all(kind.key for kind in NODES)


def test_profiles() -> None:
    for each in KINDS:
        assert each.profiles, each.name
        assert set(each.profiles) <= PROFILES.keys()
        assert "full" in each.profiles, each.name


def test_an_edge_of_the_default_profile_has_ends_there() -> None:
    for each in EDGES:
        if "default" not in each.profiles:
            continue
        for ends in each.ends:
            for side in (ends.src, ends.dst):
                assert any("default" in NODE_KINDS[name].profiles for name in side), each.name


def test_an_edge_of_the_full_profile_alone_touches_nodes_of_it() -> None:
    """Otherwise nothing would be gained by leaving it out."""
    for each in EDGES:
        if each.profiles == ("full",):
            ends = {name for both in each.ends for name in (*both.src, *both.dst)}
            assert any(NODE_KINDS[name].profiles == ("full",) for name in ends), each.name


def test_properties_are_no_columns_and_unique() -> None:
    for each in KINDS:
        found = [prop.name for prop in each.props]
        assert len(set(found)) == len(found), each.name
        assert not set(found) & (NODE_COLUMNS if isinstance(each, NodeKind) else EDGE_COLUMNS), each.name


def test_a_kind_that_a_rule_makes_says_which() -> None:
    for each in EDGES:
        is_related = each.made_of.of.startswith(RELATED)
        assert bool(each.origin) == bool(each.rule) == (not is_related), each.name


# Prefixes


def test_prefixes_are_those_of_the_semantic_types() -> None:
    fixed = {}
    for each in SEMANTIC_TYPES:
        found = re.match(r"startswith\(\{c\}, '(\w+):'\)", each.check or "")
        if found and "NodeId" in each.is_a:
            fixed[each.name] = found.group(1)
    kinds = {
        "FileId": {"FILE"},
        "TypeId": {"TYPE"},
        "ExprId": {"TYPE_EXPR"},
        "ScopeId": {"SCOPE"},
        "CodeUnitId": {"CODE_UNIT"},
        "BlockId": {"CFG_BLOCK"},
        "EventId": {"DEF_EVENT", "USE_EVENT", "DEL_EVENT"},
        "DiagId": {"DIAGNOSTIC"},
    }
    assert fixed.keys() == kinds.keys()
    for name, prefix in fixed.items():
        assert {each for each in PREFIXES if PREFIXES[each] == prefix} == kinds[name]


def test_kinds_share_a_prefix_only_if_their_keys_tell_them_apart() -> None:
    shared = defaultdict(list)
    for each in NODES:
        assert re.fullmatch("[a-z_]+", each.prefix)
        shared[each.prefix].append(each)
    several = {prefix: found for prefix, found in shared.items() if len(found) > 1}
    assert several.keys() == {"event"}
    # Events of all kinds are counted together.
    assert {each.key for each in several["event"]} == {("definition", "number")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("REPOSITORY", "repo:<repo_id>"),
        ("QUALIFIED_NAME", "qname:<repo_id>:<qualname>"),
        ("FUNCTION", "function:<definition key>"),
        ("BINDING", "binding:<definition key>.<name>"),
        ("CALLSITE", "callsite:<definition key>.<number>"),
        ("DIAGNOSTIC", "diag:<definition key>.<kind>.<code>.<number>"),
    ],
)
def test_what_an_id_is_made_of(name: str, expected: str) -> None:
    assert id_text(NODE_KINDS[name]) == expected


def test_ids_of_nodes_of_a_file_begin_with_a_definition() -> None:
    for each in NODES:
        # Symbols that are local to a document have the key of its file.
        assert (each.key[0] == "definition") == (each.owner == "file"), each.name
        assert each.key[0] in ("definition", "repo_id"), each.name


# Examples


@pytest.mark.parametrize("each", KINDS, ids=lambda each: each.name)
def test_examples_are_short_and_compile(each: NodeKind | EdgeKind) -> None:
    assert 0 < len(each.example.split("\n")) <= 3
    if each.name in NO_PYTHON | NEWER_PYTHON:
        with pytest.raises(SyntaxError):
            compile(each.example, each.name, "exec", ast.PyCF_ONLY_AST)
    else:
        compile(each.example, each.name, "exec", ast.PyCF_ONLY_AST)


# Sources


def test_sources_are_tables_that_the_stage_reads() -> None:
    tables = {table.name for table in catalog.TABLES}
    named = {table for each in KINDS for table in each.sources}
    assert named <= tables
    assert named == READS.keys()


@pytest.mark.parametrize(("table", "kinds"), [("cpg_nodes", NODES), ("cpg_edges", EDGES)])
def test_sources_are_the_inputs_of_the_table(table: str, kinds: tuple[NodeKind | EdgeKind, ...]) -> None:
    assert {name for each in kinds for name in each.sources} == set(catalog.table(table).inputs)


def test_what_is_read_is_there() -> None:
    for name, columns in READS.items():
        table = catalog.table(name)
        for column, fields in columns.items():
            declared = {field.name for field in table.column(column).fields}
            assert set(fields) <= declared, (name, column)


# Lists of facts


class MadeLists(NamedTuple):
    """The columns of the lists that each stage makes of the goldens, by name."""

    # Where a file is parsed: its own, and those of the repository.
    of_file: dict[str, set[str]]
    of_repository: dict[str, set[str]]
    # Where relations are known.
    resolved: dict[str, set[str]]
    resolved_shared: dict[str, set[str]]
    # Properties of nodes that are made without them: kind and name.
    properties: set[tuple[str, str]]


@cache
def made_lists() -> MadeLists:
    made = MadeLists({}, {}, {}, {}, set())
    names = {each.made_of.of for each in KINDS}
    for construct in CONSTRUCTS:
        for file in files_of(construct):
            context = Context(file)
            own, shared = facts_of(context, names), shared_facts_of(context)
            resolved = resolved_file(file, collect_facts(context, own, shared))
            made.properties.update((kind or "", name) for _, kind, name, _, _ in resolved.properties())
            stages = (own, shared, resolved.lists(rule_set(RULES)), resolved.shared_lists())
            for columns, found in zip(made, stages, strict=False):
                for name, rows in found.items():
                    columns.setdefault(name, set()).update(rows if any(rows.values()) else ())
    return made


def known_lists() -> set[str]:
    families = {
        "relations": emitted_relations(),
        "events": EVENT_KINDS,
        "cfg": {name for name, _ in CFG_KINDS.values()},
    }
    assert families.keys() == FAMILIES.keys()
    several = {f"{family}.{name}" for family, found in families.items() for name in found}
    made = made_lists()
    assert {*made.of_file, *made.resolved} == several | {
        *FILE_LISTS,
        *("entry_points", "anchors", "spelled", "diagnostics", "complaints"),
    }
    assert {*made.of_repository} == {*SHARED_LISTS}
    return {*made.of_file, *made.of_repository, *made.resolved, *made.resolved_shared}


@cache
def emitted_relations() -> frozenset[str]:
    """The kinds of relations that the relate stage makes of the goldens."""
    files = [file for construct in CONSTRUCTS for file in files_of(construct)]
    return frozenset(name for file in files for name in file.rows("relations_v1").get("relation_kind", ()))


def test_every_list_exists_and_every_relation_is_an_edge() -> None:
    assert emitted_relations() <= EDGE_KINDS.keys()
    made_of = {each.made_of.of for each in KINDS}
    assert made_of <= known_lists()
    # Names that only relations know are among the bindings, scopes among the scopes, names in strings among
    # the entry points.
    only_related = {f"{RELATED}{kind}" for kind in ("SCOPE_BINDS", "SCOPE_PARENT", "ENTRY_POINT")}
    inlined = set() if sys.version_info >= (3, 12) else {f"{RELATED}SCOPE_PARENT"}
    assert known_lists() - made_of == only_related - inlined


def test_lists_are_made_by_the_stages_that_know_their_rows() -> None:
    """Edges that two stages make are numbered apart: their ends must not be the same."""
    made = made_lists()
    both = made.of_file.keys() & made.resolved.keys()
    # Uses that only relations have; attributes that are set from elsewhere; the module in its package;
    # variables in brackets after `Generic`; problems of both stages.
    relations = {f"{RELATED}SCOPE_BINDS", f"{RELATED}DEFINES_BINDING"}
    assert both == relations | {
        *USES.values(),
        *("bindings", "contained", "type_param_uses", "diagnostics", "complaints"),
    }
    assert f"{RELATED}SCOPE_BINDS" not in {each.made_of.of for each in KINDS}
    # Contributions to the repository are handed over and made into rows once.
    assert made.of_repository.keys() == SHARED_LISTS.keys()
    assert made.resolved_shared.keys() == SHARED_LISTS.keys() | {
        *("repositories", "packages", "contained", "external_modules", "qualified_names")
    }


def test_names_that_begin_with_the_module_lack_it_where_the_file_is_parsed() -> None:
    begun: defaultdict[bool, set[str]] = defaultdict(set)
    for construct in CONSTRUCTS:
        files = files_of(construct)
        for file, graph in zip(files, rows_of_files(files, "full"), strict=True):
            assert {row["node_kind"] for row in graph.named.to_pylist()} <= IN_MODULE
            assert not {row["node_kind"] for row in graph.tables[NODE_ROWS].to_pylist()} & IN_MODULE
            for row in graph.named.to_pylist():
                assert row["qualname"] == "" or row["qualname"][0] == ".", row
            name = resolved_file(file, graph.facts).module_name
            for row in nodes_of(graph, name).to_pylist():
                is_inside = f"{row['qualname']}.".startswith(f"{name}.")
                begun[row["qualname"] is not None and is_inside].add(row["node_kind"])
    assert begun[True] >= IN_MODULE
    # A document of SCIP and a reference may be named like the module they are in.
    assert not begun[False] & IN_MODULE


def test_kinds_whose_names_begin_with_the_module_say_so() -> None:
    for each in NODES:
        is_said = each.owner == "file" and bool(re.match(NAMED_BY_MODULE, each.qualified))
        assert each.in_module == is_said, each.name


def test_shared_lists_are_of_kinds_that_a_repository_owns() -> None:
    made = made_lists()
    of_file, shared = made.of_file.keys() | made.resolved.keys(), made.resolved_shared.keys()
    for each in KINDS:
        if isinstance(each, NodeKind) or not each.made_of.of.startswith(RELATED):
            owners = {"file"} if each.made_of.of not in shared else {"repository", "either"}
            assert each.owner in owners, each.name
            is_both = each.made_of.of in of_file and each.made_of.of in shared
            assert is_both == (each.owner == "either"), each.name


def test_fields_and_properties_are_in_the_lists() -> None:
    """A property that no list has would be a promise that is not kept."""
    made = made_lists()
    columns: defaultdict[str, set[str]] = defaultdict(set)
    for found in (made.of_file, made.resolved, made.resolved_shared):
        for name, known in found.items():
            columns[name] |= known
    for each in KINDS:
        if each.made_of.of.startswith("scip_") or each.made_of.of == "diagnostics":
            continue
        fields = columns[each.made_of.of]
        assert set(each.made_of.fields.values()) <= fields, each.name
        apart = {name for kind, name in made.properties if kind == each.name}
        # Why a class has an unknown base, no golden has: `tests/unit/graph/test_resolution.py`.
        apart |= {UNRESOLVED_PROP.name} if each.name == "CLASS" else set()
        assert {prop.name for prop in each.props} <= fields | apart, each.name
        own = {*fields, *each.made_of.fields}
        needed = {"node_id"} if isinstance(each, NodeKind) else {"src_id", "dst_id"}
        assert needed <= own, each.name
        said = {"role": each.role, "ordinal": each.ordinal} if isinstance(each, EdgeKind) else {}
        if isinstance(each, NodeKind):
            said = {"subkind": each.subkind, "name": each.named, "qualname": each.qualified}
        if each.name == "MODULE":
            # Its name is that which the names of its definitions begin with.
            del said["name"]
        assert {column for column, words in said.items() if words} <= own, each.name


# Asking for a kind


def test_a_kind_by_name() -> None:
    assert kind("CALLSITE") is NODE_KINDS["CALLSITE"]
    assert kind("CALLS") is EDGE_KINDS["CALLS"]


def test_an_unknown_kind_lists_what_exists() -> None:
    with pytest.raises(UnknownName) as caught:
        kind("CALL_SITE")
    assert "'CALL_SITE'" in caught.value.message
    assert "did you mean CALLSITE?" in caught.value.hint
    assert all(each.name in caught.value.hint for each in KINDS)
