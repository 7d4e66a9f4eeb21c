"""Every rule of `codeanatomy verify` finds the damage it is for, and nothing else is found.

All damages to rows are in one lake, each in a repository of its own; damages to logs and files are done to
copies of a lake of one repository.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from pyroaring import BitMap64

from codeanatomy.catalog import TABLES
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.cli import main as cli
from codeanatomy.delta.log.deletion_vectors import write_vectors
from codeanatomy.delta.read.light import light_files
from codeanatomy.errors import StorageFailure, TableMissing, UnknownName
from codeanatomy.node_ids import edge_id
from codeanatomy.query.checks.key_rules import key_rules
from codeanatomy.query.checks.verify import Finding, Verification, verify
from codeanatomy.query.checks.verify_rules import RULES
from support.light_builds import clean_lake
from support.tiny_graph import (
    ARGUMENT,
    BINDING,
    CALL,
    FUNCTION,
    GRAPH,
    HIDDEN,
    NAME,
    PARAMETER,
    REPO,
    REPOSITORY,
    RUN,
    SCOPE,
    TREE,
    A,
    B,
    Row,
    Tables,
    derived,
    edge,
    healthy,
    made,
    manifest,
    node,
    one,
    prop,
    write,
)

# The end of the key in the id of a node, also where it is part of the id of an edge.
KEY_END = re.compile(r"\b([a-z_]+:[\w-]{14})[\w-]{2}(?=[.;]|$)")
GONE = made("function", "gone")
END = made("ts_missing", "end")


class Damage(NamedTuple):
    """What is done to the rows, and what has to be found."""

    rule: str
    place: str
    entity_id: str | None
    change: Callable[[Tables], object]
    # Whether the copies and the manifest exist already.
    late: bool = False


def changed(table: str, where: dict[str, Any], **values: Any) -> Callable[[Tables], None]:
    """Other values in a row."""

    def change(tables: Tables) -> None:
        one(tables[table], **where).update(values)

    return change


def replaced(table: str, where: dict[str, Any], **values: Any) -> Callable[[Tables], None]:
    """The same for a copy, which shares rows with its table."""

    def change(tables: Tables) -> None:
        row = one(tables[table], **where)
        tables[table] = [{**each, **values} if each is row else each for each in tables[table]]

    return change


def dropped(table: str, **where: Any) -> Callable[[Tables], None]:
    def change(tables: Tables) -> None:
        row = one(tables[table], **where)
        tables[table] = [each for each in tables[table] if each is not row]

    return change


def added(table: str, *rows: Row) -> Callable[[Tables], None]:
    return lambda tables: tables[table].extend(rows)


def repeated(table: str, **where: Any) -> Callable[[Tables], None]:
    return lambda tables: tables[table].append(dict(one(tables[table], **where)))


def of(node_id: str) -> dict[str, Any]:
    return {"node_id": node_id}


CALLS = edge("CALLS", CALL, FUNCTION, A, (15, 19))
CALLS_ID, ARGUMENT_ID = CALLS["edge_id"], edge("HAS_ARGUMENT", CALL, ARGUMENT)["edge_id"]
PARAMETER_ID = edge("HAS_PARAMETER", FUNCTION, PARAMETER)["edge_id"]
COUNT = {"prop_key": "parameter_count"}
NODES, EDGES, PROPS, MAP, BY_SRC, BY_DST = (
    "cpg_nodes",
    "cpg_edges",
    "cpg_props",
    "cpg_props_map",
    "cpg_edges_by_src",
    "cpg_edges_by_dst",
)
SECOND = edge("HAS_ARGUMENT", CALL, ARGUMENT, A, (17, 18), repeat=1)
SYNTAX = [edge("SYNTAX_OF", CALL, each, A, (15, 19)) for each in TREE[1:3]]
INVENTED = edge("REFERS_TO", NAME, BINDING, A, (15, 16))


def reordered(tables: Tables) -> None:
    one(tables[MAP], entity_id=A)["props"].reverse()


def miscounted(tables: Tables) -> None:
    row = tables["run_manifest"][0]
    row["row_counts"] = {name: rows + (name == PROPS) for name, rows in row["row_counts"].items()}


def uncounted(tables: Tables) -> None:
    row = tables["run_manifest"][0]
    row["row_counts"] = {name: rows for name, rows in row["row_counts"].items() if name != MAP}


DAMAGES = (
    Damage("node_id_unique", "a.py:2", CALL, repeated(NODES, node_id=CALL)),
    Damage("edge_id_unique", "a.py:2", ARGUMENT_ID, repeated(EDGES, edge_id=ARGUMENT_ID)),
    Damage("prop_unique", "a.py:1", FUNCTION, repeated(PROPS, **COUNT)),
    Damage(
        "repeat_counted",
        "a.py:2",
        edge_id("HAS_ARGUMENT", CALL, ARGUMENT, 2),
        changed(EDGES, {"edge_id": ARGUMENT_ID}, repeat=2),
    ),
    Damage(
        "cpg_edges(src_node_id)",
        "a.py:1",
        edge_id("HAS_PARAMETER", GONE, PARAMETER),
        changed(EDGES, {"edge_id": PARAMETER_ID}, src_node_id=GONE),
    ),
    Damage(
        "cpg_edges(dst_node_id)",
        "a.py:2",
        edge_id("CALLS", CALL, GONE),
        changed(EDGES, {"edge_id": CALLS_ID}, dst_node_id=GONE),
    ),
    Damage(
        "ends_allowed",
        "a.py:2",
        edge_id("HAS_ARGUMENT", NAME, ARGUMENT),
        changed(EDGES, {"edge_id": ARGUMENT_ID}, src_node_id=NAME),
    ),
    Damage("kind_known", "a.py:2", NAME, changed(NODES, of(NAME), node_kind="NOTHING")),
    Damage(
        "kind_known",
        "a.py:2",
        edge_id("NOTHING", CALL, ARGUMENT),
        changed(EDGES, {"edge_id": ARGUMENT_ID}, edge_kind="NOTHING"),
    ),
    Damage("id_prefix", "a.py:2", made("name", "f"), changed(NODES, of(NAME), node_id=made("name", "f"))),
    Damage("cardinality", "a.py:2", SECOND["edge_id"], added(EDGES, SECOND)),
    Damage("cardinality", "a.py:2", SYNTAX[0]["edge_id"], added(EDGES, *SYNTAX)),
    Damage("cardinality", "a.py", BINDING, dropped(EDGES, dst_node_id=BINDING)),
    Damage(
        "cardinality",
        "a.py:1",
        made("type_expr", "x"),
        added(NODES, node(made("type_expr", "x"), "TYPE_EXPR", A, (6, 7))),
    ),
    Damage("prop_required", "a.py:1", FUNCTION, dropped(PROPS, **COUNT)),
    Damage(
        "prop_typed",
        "a.py:1",
        FUNCTION,
        changed(PROPS, COUNT, value_type="string", value_string="1", value_int=None),
    ),
    Damage("prop_typed", "a.py:1", FUNCTION, changed(PROPS, COUNT, value_bool=True)),
    Damage("prop_typed", "a.py:2", CALLS_ID, changed(PROPS, {"prop_key": "cut"}, value_string=None)),
    Damage("prop_declared", "a.py:1", FUNCTION, changed(PROPS, COUNT, prop_key="colour")),
    Damage("prop_declared", "a.py:2", CALLS_ID, changed(PROPS, {"prop_key": "cut"}, prop_key="colour")),
    Damage("prop_entity_exists", "a.py", GONE, changed(PROPS, COUNT, entity_id=GONE)),
    Damage(
        "prop_entity_exists",
        "a.py",
        edge_id("CALLS", GONE, FUNCTION),
        changed(PROPS, {"prop_key": "cut"}, entity_id=edge_id("CALLS", GONE, FUNCTION)),
    ),
    Damage("prop_entity_exists", "a.py", "CALLS", changed(PROPS, {"prop_key": "cut"}, entity_id="CALLS")),
    Damage("prop_entity_exists", "a.py:1", FUNCTION, changed(PROPS, COUNT, node_kind="CLASS")),
    Damage("span_in_file", "a.py:2", CALL, changed(NODES, of(CALL), bend=21)),
    Damage("span_in_file", "a.py:2", CALL, changed(NODES, of(CALL), bend=14)),
    Damage("span_in_file", "a.py:2", CALLS_ID, changed(EDGES, {"edge_id": CALLS_ID}, bend=99)),
    Damage("span_in_file", "b.py:1", TREE[3], changed(NODES, of(TREE[3]), bend=1)),
    Damage("span_in_file", "a.py", END, changed(NODES, of(END), bstart=None, bend=None, line=None)),
    Damage("span_in_file", "a.py:1", BINDING, changed(NODES, of(BINDING), bstart=0, bend=1, line=1)),
    Damage("line_right", "a.py:2", CALL, changed(NODES, of(CALL), line=1)),
    Damage("line_right", "a.py:2", CALL, changed(NODES, of(CALL), line=3)),
    Damage("line_right", "a.py:2", CALL, changed(NODES, of(CALL), line=None)),
    Damage("line_right", "a.py:2", END, changed(NODES, of(END), line=3)),
    Damage("line_right", "b.py:1", TREE[3], changed(NODES, of(TREE[3]), line=2)),
    Damage("path_right", "a.py:2", CALL, changed(NODES, of(CALL), path="b.py")),
    Damage("path_right", "a.py:2", CALL, changed(NODES, of(CALL), path=None)),
    Damage("path_right", "a.py:2", ARGUMENT_ID, changed(EDGES, {"edge_id": ARGUMENT_ID}, path="b.py")),
    Damage("owner", "a.py:2", CALL, changed(NODES, of(CALL), owner_file_id=None)),
    Damage("owner", "a.py:2", CALL, changed(NODES, of(CALL), owner_file_id=B)),
    Damage(
        "cpg_nodes(owner_file_id)",
        "a.py",
        BINDING,
        changed(NODES, of(BINDING), file_id=None, owner_file_id=A + "?", path="a.py"),
    ),
    Damage("owner", "a.py", REPOSITORY, changed(NODES, of(REPOSITORY), owner_file_id=A)),
    Damage("owner", "a.py:2", ARGUMENT_ID, changed(EDGES, {"edge_id": ARGUMENT_ID}, owner_file_id=None)),
    Damage(
        "cpg_edges(owner_file_id)",
        "a.py:2",
        ARGUMENT_ID,
        changed(EDGES, {"edge_id": ARGUMENT_ID}, owner_file_id=GONE),
    ),
    Damage("owner", "a.py:1", FUNCTION, changed(PROPS, COUNT, owner_file_id=B)),
    Damage("by_src_equal", "a.py:2", ARGUMENT_ID, dropped(BY_SRC, edge_id=ARGUMENT_ID), late=True),
    Damage("by_src_equal", "a.py:2", ARGUMENT_ID, repeated(BY_SRC, edge_id=ARGUMENT_ID), late=True),
    Damage(
        "by_dst_equal", "a.py:2", CALLS_ID, replaced(BY_DST, {"edge_id": CALLS_ID}, role="init"), late=True
    ),
    Damage("props_map_equal", "a.py:1", FUNCTION, dropped(MAP, entity_id=FUNCTION), late=True),
    Damage("props_map_equal", "a.py:1", FUNCTION, repeated(MAP, entity_id=FUNCTION), late=True),
    Damage("props_map_equal", "a.py", A, reordered, late=True),
    Damage(
        "props_map_equal",
        "a.py:1",
        FUNCTION,
        replaced(
            MAP, {"entity_id": FUNCTION}, props=[prop(node(FUNCTION, "FUNCTION", A), "parameter_count", 2)]
        ),
        late=True,
    ),
    Damage(
        "props_map_equal",
        "a.py:2",
        CALL,
        added(MAP, {**prop(node(CALL, "CALLSITE", A), "x", 1), "props": []}),
        late=True,
    ),
    Damage("counts", "", None, miscounted, late=True),
    Damage("counts", "", None, uncounted, late=True),
    Damage("constraints", "a.py:2", ARGUMENT_ID, changed(EDGES, {"edge_id": ARGUMENT_ID}, confidence=0.1)),
    Damage("constraints", "a.py:2", ARGUMENT_ID, changed(EDGES, {"edge_id": ARGUMENT_ID}, origin=None)),
    Damage("constraints", "a.py:2", CALL, changed(NODES, of(CALL), bend=None)),
    Damage("constraints", "a.py:2", CALL, changed(NODES, of(CALL), line=0)),
    Damage("constraints", "a.py:1", FUNCTION, changed(PROPS, COUNT, value_int=None)),
    Damage("relations_kept", "a.py:2", CALL, dropped(EDGES, edge_id=CALLS_ID)),
    Damage("relations_kept", "a.py:2", CALL, changed(EDGES, {"edge_id": CALLS_ID}, role="init")),
    Damage("relations_kept", "a.py:2", NAME, added(EDGES, INVENTED)),
    Damage("relations_kept", "a.py", SCOPE, dropped(EDGES, dst_node_id=HIDDEN)),
    Damage("syntax_complete", "a.py", A, dropped(NODES, node_id=TREE[2])),
    Damage("syntax_complete", "b.py", B, added(NODES, node(made("ast", "more"), "AST_NODE", B, (0, 0)))),
)


def name_of(number: int) -> str:
    return f"repository-{number:02}"


def moved(value: Any, number: int) -> Any:
    """Rows as those of another repository, with ids of their own."""
    if isinstance(value, dict):
        return {
            key: name_of(number) if key == "repo_id" else moved(each, number) for key, each in value.items()
        }
    if isinstance(value, list):
        return [moved(each, number) for each in value]
    return KEY_END.sub(rf"\g<1>{number:02}", value) if isinstance(value, str) else value


def damaged(damage: Damage | None) -> Tables:
    tables = healthy()
    if damage is not None and not damage.late:
        damage.change(tables)
    tables = derived(tables)
    if damage is not None and damage.late:
        damage.change(tables)
    return tables


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Verification:
    """What is found in a lake with every damage, read as a large one is; the last repository has none."""
    lake = tmp_path_factory.mktemp("damaged")
    together: Tables = {}
    for number, damage in enumerate((*DAMAGES, None)):
        for name, rows in moved(damaged(damage), number).items():
            together.setdefault(name, []).extend(rows)
    for row in together["run_manifest"]:
        row["output_pins"] = [{**pin, "rows": None} for pin in row["output_pins"]]
    write(lake, together)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codeanatomy.query.checks.verify.MAX_COPIED_ROWS", -1)
        return verify(str(lake), limit=10_000)


@pytest.mark.parametrize("number", range(len(DAMAGES)), ids=lambda number: f"{DAMAGES[number].rule}-{number}")
def test_a_damage_is_found(answer: Verification, number: int) -> None:
    damage = DAMAGES[number]
    found = [each for each in answer.findings if each.repo_id == name_of(number) and each.rule == damage.rule]
    expected = (damage.place, moved(damage.entity_id, number))
    assert expected in [(each.place, each.entity_id) for each in found]
    assert all(each.message for each in found)


def test_what_is_healthy_is_not_complained_about(answer: Verification) -> None:
    mine = name_of(len(DAMAGES))
    assert mine in answer.runs
    assert [each for each in answer.findings if each.repo_id == mine] == []
    assert answer.total == len(answer.findings) == sum(answer.rules.values())
    # One data file per damage of a kind that is not declared; they belong to no repository.
    strangers = [each for each in answer.findings if each.repo_id is None]
    assert {(each.rule, each.kind) for each in strangers} == {("partition", "NOTHING")}
    assert len(strangers) == 2


# Logs and files


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of which nothing is wrong, in a folder whose name is neither a pattern nor SQL."""
    folder = tmp_path_factory.mktemp("sound")
    write(folder / "lake", derived(healthy()))
    return (folder / "lake").rename(folder / "it's a [lake]*")


@pytest.fixture
def lake(sound: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return shutil.copytree(sound, tmp_path / "lake")


def log(lake: Path, table: str) -> Path:
    return lake / "graph" / table / "_delta_log" / f"{0:020}.json"


def relog(lake: Path, table: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions of a table's only commit."""
    actions = [msgspec.json.decode(line) for line in log(lake, table).read_bytes().splitlines()]
    for action in actions:
        change(action)
    log(lake, table).write_bytes(b"\n".join(map(msgspec.json.encode, actions)))


def other_value(lake: Path) -> None:
    def change(action: dict[str, Any]) -> None:
        if action.get("add", {}).get("partitionValues") == {"node_kind": "CALLSITE"}:
            action["add"]["partitionValues"]["node_kind"] = "ARGUMENT"

    relog(lake, NODES, change)


def other_folder(lake: Path) -> None:
    (lake / "graph" / PROPS / "entity_kind=edge").rename(lake / "graph" / PROPS / "entity_kind=thing")

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["path"] = action["add"]["path"].replace("=edge", "=thing")

    relog(lake, PROPS, change)


def other_records(lake: Path) -> None:
    def change(action: dict[str, Any]) -> None:
        if action.get("add", {}).get("partitionValues") == {"edge_kind": "CALLS"}:
            stats = msgspec.json.decode(action["add"]["stats"])
            action["add"]["stats"] = msgspec.json.encode({**stats, "numRecords": 7}).decode()

    relog(lake, EDGES, change)


def other_pins(lake: Path) -> None:
    tables = derived(healthy())
    pins = [
        {**pin, "rows": pin["rows"] + (pin["table_name"] == NODES)}
        for pin in tables["run_manifest"][0]["output_pins"]
    ]
    shutil.rmtree(lake / "meta")
    write(lake, {"run_manifest": [{**tables["run_manifest"][0], "output_pins": pins}]})


FILE_DAMAGES = (
    ("partition", NODES, "graph/cpg_nodes/node_kind=CALLSITE/", other_value),
    ("partition", PROPS, "graph/cpg_props/entity_kind=thing/", other_folder),
    ("counts", EDGES, "graph/cpg_edges/edge_kind=CALLS/", other_records),
    ("counts", NODES, "", other_pins),
)


@pytest.mark.parametrize(("rule", "table", "place", "change"), FILE_DAMAGES)
def test_a_damage_to_logs_is_found(
    lake: Path, rule: str, table: str, place: str, change: Callable[[Path], None]
) -> None:
    change(lake)
    found = [each for each in verify(str(lake)).findings if each.rule == rule]
    assert [each.table for each in found] == [table]
    assert found[0].place.startswith(place)


def test_every_rule_has_a_damage() -> None:
    """Those of foreign keys have theirs in `test_key_rules.py`."""
    damaged = {damage.rule for damage in DAMAGES} | {rule for rule, *_ in FILE_DAMAGES}
    assert damaged <= set(RULES)
    assert set(RULES) - damaged <= set(key_rules(TABLES, {}))


def test_a_sound_lake_has_no_findings(sound: Path) -> None:
    found = verify(str(sound))
    assert found.findings == ()
    assert found.rules == dict.fromkeys(RULES, 0)
    assert found.runs == {REPO: RUN}
    tables = derived(healthy())
    assert found.rows == {name: len(tables[name]) for name in found.rows}
    assert set(GRAPH) < set(found.rows)
    assert verify(sound.as_uri()).findings == ()


def test_the_sound_lake_has_what_can_go_wrong() -> None:
    """Otherwise a rule would be right about nothing."""
    tables = healthy()
    kinds = [NODE_KINDS[row["node_kind"]] for row in tables[NODES]]
    assert {kind.owner for kind in kinds} >= {"file", "repository"}
    assert {kind.placed for kind in kinds} == {"always", "sometimes", "never"}
    edges = [EDGE_KINDS[row["edge_kind"]] for row in tables[EDGES]]
    assert {kind.per_dst for kind in edges} == {"one", "at most one", "many"}


def test_edges_that_a_profile_leaves_out_are_not_missed(lake: Path) -> None:
    place = node(made("scip_occurrence", "f"), "SCIP_OCCURRENCE", A, (15, 16))
    symbol = node(made("scip_symbol", "f"), "SCIP_SYMBOL")
    tables = healthy()
    tables[NODES] += [place, symbol]
    shutil.rmtree(lake)
    write(lake, derived(tables))
    assert verify(str(lake)).findings == ()
    tables[EDGES].append(edge("HAS_OCCURRENCE", A, place["node_id"], A, (15, 16)))
    other = node(made("scip_occurrence", "g"), "SCIP_OCCURRENCE", A, (0, 1))
    tables[NODES].append(other)
    shutil.rmtree(lake)
    write(lake, derived(tables))
    assert [(each.rule, each.entity_id) for each in verify(str(lake)).findings] == [
        ("cardinality", other["node_id"])
    ]


def test_an_edge_into_another_repository_is_found(lake: Path) -> None:
    first, second = (moved(damaged(None), number) for number in range(2))
    one(second[EDGES], edge_kind="HAS_PARAMETER")["src_node_id"] = moved(FUNCTION, 0)
    shutil.rmtree(lake)
    write(lake, {name: [*first[name], *second[name]] for name in first})
    found = verify(str(lake), limit=100).findings
    assert [(each.repo_id, each.place) for each in found if each.rule == "cpg_edges(src_node_id)"] == [
        (name_of(1), "a.py:1")
    ]


def test_the_lake_is_checked_at_the_versions_that_its_newest_run_pins(lake: Path) -> None:
    second = moved(damaged(Damage("line_right", "", None, changed(NODES, of(CALL), line=1))), 1)
    del second["run_manifest"]
    write(lake, second, mode="append")
    # Nobody has published it yet.
    assert verify(str(lake)).findings == ()
    assert set(verify(str(lake)).newer) == set(second)
    row = manifest(second, run_id="run-2", repo_id=name_of(1))
    row["output_pins"] = [{"table_name": name, "version": 1, "rows": None} for name in second]
    write(lake, {"run_manifest": [row]})
    found = verify(str(lake))
    assert found.runs == {REPO: RUN, name_of(1): "run-2"}
    assert {(each.rule, each.repo_id) for each in found.findings} == {("line_right", name_of(1))}
    assert found.rows[NODES] == 2 * len(second[NODES])
    assert found.newer == ()
    assert verify(str(lake), REPO).findings == ()
    assert verify(str(lake), as_of=RUN).runs == {REPO: RUN}
    assert verify(str(lake), as_of=RUN).findings == ()
    stray = node(made("callsite", "stray"), "NOTHING", A, (15, 19))
    write(lake, {NODES: [stray]}, mode="append")
    assert {(each.rule, each.repo_id) for each in verify(str(lake)).findings} == {("line_right", name_of(1))}
    assert verify(str(lake)).newer == (NODES,)


@pytest.mark.parametrize(("extracted", "wrong"), [({"extract": "run-0/extract"}, []), ({}, ["counts"])])
def test_failures_are_counted_in_the_run_that_read_the_files(
    tmp_path: Path, extracted: dict[str, str], wrong: list[str]
) -> None:
    tables = derived(healthy())
    failure = {"run_id": "run-0", "repo_id": REPO, "extractor_name": "ast_files_v1", "path": "a.py"}
    failures = [
        {**failure, "error_index": 0, "error_type": "SyntaxError", "message": "no"},
        {**failure, "error_index": 0, "error_type": "SyntaxError", "message": "no", "run_id": "run-00"},
    ]
    row = manifest({**tables, "extract_error_artifacts": failures}, artifact_ids=extracted)
    row["row_counts"] = {**row["row_counts"], "extract_error_artifacts": 1}
    row["output_pins"] = [pin for pin in row["output_pins"] if pin["table_name"] != "run_manifest"]
    del row["row_counts"]["run_manifest"]
    write(tmp_path, {**tables, "extract_error_artifacts": failures, "run_manifest": [row]})
    assert [each.rule for each in verify(str(tmp_path)).findings] == wrong


def test_findings_are_bounded_and_counted(lake: Path) -> None:
    tables = healthy()
    for row in tables[NODES]:
        row["line"] = 9
    shutil.rmtree(lake)
    write(lake, derived(tables))
    found = verify(str(lake), limit=2)
    wrong = sum(row["bstart"] is not None for row in tables[NODES])
    assert found.rules["line_right"] == wrong > 2
    assert [each.rule for each in found.findings] == ["line_right", "line_right"]


# What is no graph


def test_a_lake_without_a_graph_says_what_to_do(tmp_path: Path) -> None:
    tables = derived(healthy())
    row = tables["run_manifest"][0]
    pins = [pin for pin in row["output_pins"] if pin["table_name"] not in GRAPH]
    write(tmp_path, {"run_manifest": [{**row, "output_pins": pins, "plan_fingerprints": {}}]})
    with pytest.raises(TableMissing, match="tiny was last built without it") as problem:
        verify(str(tmp_path))
    assert "--until" in problem.value.hint


def test_a_repository_without_a_graph_is_named(lake: Path) -> None:
    tables = derived(healthy())
    del tables["run_manifest"]
    row = manifest(tables, repo_id="other", run_id="run-2", plan_fingerprints={}, row_counts={})
    write(lake, {"run_manifest": [row]})
    assert verify(str(lake)).unbuilt == ("other",)
    assert verify(str(lake)).findings == ()
    with pytest.raises(TableMissing):
        verify(str(lake), "other")


def test_a_lake_where_every_build_failed_has_no_graph(tmp_path: Path) -> None:
    write(tmp_path, {"run_manifest": [manifest({}, status="failed", error="no")]})
    with pytest.raises(TableMissing, match="no build has succeeded"):
        verify(str(tmp_path))


def test_unknown_and_missing_things_are_errors_of_ours(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        verify(str(lake), "tinny")
    with pytest.raises(TableMissing):
        verify(str(tmp_path / "nowhere"))
    next((lake / "graph" / NODES / "node_kind=CALLSITE").iterdir()).unlink()
    with pytest.raises(StorageFailure, match=r"node_kind=CALLSITE/.* is missing"):
        verify(str(lake))


def test_a_data_file_that_is_no_parquet_is_an_error_of_ours(lake: Path) -> None:
    next((lake / "graph" / NODES / "node_kind=CALLSITE").iterdir()).write_bytes(b"nothing")
    with pytest.raises(StorageFailure, match="cannot be read"):
        verify(str(lake))


def test_deleted_rows_are_not_read_as_if_they_were_there(lake: Path) -> None:
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}

    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        elif action.get("add", {}).get("partitionValues") == {"node_kind": "CALLSITE"}:
            vectors = write_vectors(str(lake / "graph" / NODES), {"": BitMap64([0])})
            action["add"]["deletionVector"] = msgspec.to_builtins(vectors[""])

    relog(lake, NODES, change)
    (file,) = (each for each in light_files(str(lake), NODES, 0) if each.vector)
    assert file.partition == {"node_kind": "CALLSITE"}
    found = verify(str(lake))
    # The node is missed, and the manifest has counted it; the data file has the rows that the log says.
    assert {"counts", "cpg_edges(src_node_id)"} <= {each.rule for each in found.findings}
    assert [each.path for each in found.findings if each.rule == "counts"] == [None, None]
    features |= {key: ["columnMapping"] for key in features}
    relog(lake, NODES, change)
    with pytest.raises(StorageFailure, match="columnMapping"):
        light_files(str(lake), NODES, 0)


# The command


Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ran:
    def call(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["codeanatomy", "verify", *args])
        try:
            cli.run_command()
            code = 0
        except SystemExit as ending:
            code = int(ending.code or 0)
        return code, *capfd.readouterr()

    return call


def test_the_command_says_that_all_is_well(sound: Path, run: Ran) -> None:
    code, out, err = run("--lake", str(sound))
    assert (code, out) == (0, "")
    assert re.fullmatch(r"0 findings; \d+ rules over \d+ rows of 1 repositories in [\d.]+ s\n", err)


def test_the_command_shows_findings(lake: Path, run: Ran) -> None:
    tables = healthy()
    one(tables[NODES], node_id=CALL)["line"] = 1
    shutil.rmtree(lake)
    write(lake, derived(tables))
    code, out, err = run("--lake", str(lake), "--repo", REPO)
    header, row = out.splitlines()
    assert code == 1
    assert header.split() == ["place", "rule", "table", "kind", "id", "message", "repository"]
    assert row.split()[:5] == ["a.py:2", "line_right", NODES, "CALLSITE", CALL]
    assert err.startswith("1 findings;")
    code, out, _ = run("--lake", str(lake), "--format", "jsonl")
    [found] = [msgspec.json.decode(line, type=Finding) for line in out.splitlines()]
    assert (code, found.place) == (1, "a.py:2")
    code, out, _ = run("--lake", str(lake), "--format", "json")
    whole = msgspec.json.decode(out, type=Verification)
    assert (code, whole.findings, whole.rules["line_right"]) == (1, (found,), 1)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--lake", "nowhere"), 6, "never written"),
        (("--repo", "tinny"), 2, "did you mean tiny?"),
        (("--limit", "0"), 2, "--limit"),
    ],
)
def test_the_command_refuses(sound: Path, run: Ran, args: tuple[str, ...], code: int, said: str) -> None:
    done, out, err = run("--lake", str(sound), *args)
    assert (done, out) == (code, "")
    assert said in err
    assert "Traceback" not in err


def test_a_repository_without_files_has_nothing_to_find(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "README.md").write_text("# Nothing\n")
    clean_lake(tmp_path / "lake", {"empty": tmp_path / "source"})
    found = verify(str(tmp_path / "lake"))
    assert (found.findings, sum(found.rows.values())) == ((), 0)
