"""The generated pages follow the code; the JSON ones are the snapshots of the contracts."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from msgspec.structs import replace

from codeanatomy import catalog, errors
from codeanatomy.catalog.semantic_types import SEMANTIC_TYPES
from codeanatomy.catalog.spec import Column, Constraint, Table, contract_json
from codeanatomy.cli import docs_pages as docs
from codeanatomy.cli.main import COMMANDS, cli
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta import events
from codeanatomy.sql_functions import FUNCTIONS
from support.folders import ROOT

PAGES = ROOT / "docs"
FAMILY = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind)
    and issubclass(kind, errors.CodeAnatomyError)
    and kind is not errors.CodeAnatomyError
]


def page(name: str) -> str:
    return (PAGES / name).read_text(encoding="utf-8")


def test_the_pages_are_fresh() -> None:
    stale = docs.stale_pages(PAGES, cli)
    assert not stale, f"{', '.join(stale)} in docs/ do not follow the code: run `make docs`, review the diff"


def test_no_page_depends_on_the_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    docs.write_pages(tmp_path, cli)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERMINAL_WIDTH", "40")
    assert docs.stale_pages(tmp_path, cli) == []


# What makes a page stale


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    docs.write_pages(tmp_path, cli)
    return tmp_path


CHANGES = {
    "a column": {"columns": (*catalog.TABLES[0].columns, Column("new", "int", "New."))},
    "a constraint": {"constraints": (Constraint("new", "size_bytes > 1", "New."),)},
    "a layout": {"write": replace(catalog.TABLES[0].write, zorder_by=("path",))},
    "a sentence": {"doc": "Another."},
    "an owner": {"owner": None},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_table_makes_its_two_pages_stale(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    first, *others = catalog.TABLES
    monkeypatch.setattr(catalog, "TABLES", (replace(first, **CHANGES[change]), *others))
    assert docs.stale_pages(fresh, cli) == ["tables.md", "catalog.json"]
    assert docs.write_pages(fresh, cli) == ["tables.md", "catalog.json"]
    assert docs.stale_pages(fresh, cli) == []


def test_a_changed_version_is_seen_in_the_snapshot(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = catalog.TABLES
    monkeypatch.setattr(catalog, "TABLES", (replace(first, version=99), *others))
    assert "catalog.json" in docs.stale_pages(fresh, cli)


def test_a_changed_struct_makes_the_schemas_stale(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = msgspec.defstruct("More", [("x", int)])
    monkeypatch.setattr(docs, "CONTRACTS", (*docs.CONTRACTS, more))
    assert docs.stale_pages(fresh, cli) == ["schemas.json"]


def test_a_changed_function_makes_its_page_stale(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {name: each for name, each in FUNCTIONS.items() if name != "span_len"}
    monkeypatch.setattr(docs, "FUNCTIONS", others)
    assert docs.stale_pages(fresh, cli) == ["views.md", "functions.md"]


def test_a_changed_command_makes_its_page_stale(fresh: Path) -> None:
    context = click.Context(cli)
    known = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    more = click.Group("codeanatomy", commands={**known, "frob": click.Command("frob")})
    assert docs.stale_pages(fresh, more) == ["commands.md"]


@pytest.mark.parametrize(
    "name", ["tables.md", "errors.md", "functions.md", "commands.md", "catalog.json", "schemas.json"]
)
def test_a_missing_or_edited_page_is_stale_and_written_anew(fresh: Path, name: str) -> None:
    good = (fresh / name).read_bytes()
    for spoil in (lambda path: path.unlink(), lambda path: path.write_bytes(good.replace(b"\n", b"\r\n"))):
        spoil(fresh / name)
        assert docs.stale_pages(fresh, cli) == [name]
        assert docs.write_pages(fresh, cli) == [name]
        assert (fresh / name).read_bytes() == good


# What is in the pages


@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
def test_every_error_is_listed_with_its_exit_code(kind: type[errors.CodeAnatomyError]) -> None:
    row = f"| {kind.code} | {kind.__name__} | {kind.exit_code} | "
    assert page("errors.md").count(row) == 1
    assert f"\n| {kind.exit_code} | " in page("errors.md")


def test_error_codes_are_unique() -> None:
    assert len({kind.code for kind in FAMILY}) == len(FAMILY) > 10


def test_every_command_has_its_help() -> None:
    paths = [context.command_path for context in docs._contexts(cli, "codeanatomy", None)]
    assert {*paths} >= {"codeanatomy", "codeanatomy config show", *(f"codeanatomy {n}" for n in COMMANDS)}
    for path in paths:
        assert page("commands.md").count(f"\n## {path}\n\n```text\nUsage: {path} ") == 1
    # As it is when it is called: the short form of help is inherited.
    assert page("commands.md").count("  -h, --help ") == len(paths)


@pytest.mark.parametrize("table", catalog.TABLES, ids=lambda table: table.name)
def test_every_table_has_its_section(table: Table) -> None:
    text = page("tables.md")
    assert text.count(f"| [{table.name}](#{table.name}) | {table.stage} | ") == 1
    section = text.split(f"\n## {table.name}\n")[1].split("\n## ")[0]
    for column in table.columns:
        assert section.count(f"\n| {column.name} | ") == 1
    for rule in table.constraints:
        assert f"\n| {rule.name} | `" in section
    # Every line of a Markdown table has as many cells as its head.
    for line in section.splitlines():
        if line.startswith("| "):
            assert line.replace("\\|", "").count("|") in (4, 6)


def test_every_semantic_type_is_listed() -> None:
    section = page("tables.md").split("\n## Semantic types\n")[1]
    for known in SEMANTIC_TYPES:
        assert section.count(f"\n| {known.name} | {known.type} | ") == 1


def test_every_function_is_listed() -> None:
    for known in FUNCTIONS.values():
        assert page("functions.md").count(f"| `{known.signature}` | {known.returns} | ") == 1


# The snapshots


def test_the_snapshot_is_the_catalogue() -> None:
    assert msgspec.json.decode(page("catalog.json"), type=tuple[Table, ...]) == catalog.TABLES


@pytest.mark.parametrize("table", catalog.TABLES, ids=lambda table: table.name)
def test_a_contract_survives_the_round_trip(table: Table) -> None:
    assert msgspec.json.decode(contract_json(table), type=Table) == table


def test_every_contract_struct_and_event_has_a_schema() -> None:
    event_types = [
        kind for kind in vars(events).values() if inspect.isclass(kind) and issubclass(kind, events.Event)
    ]
    for kind in (*docs.CONTRACTS, *(kind for kind in event_types if kind is not events.Event)):
        fields = {*kind.__struct_encode_fields__, *(["type"] if issubclass(kind, events.Event) else [])}
        assert schemas()[kind.__name__]["properties"].keys() == fields
    assert {"Column", "DeltaWritePolicy", "DeltaSchemaPolicy", "DeltaFeatureGate"} <= schemas().keys()


def test_the_schemas_describe_the_json() -> None:
    for table in msgspec.json.decode(page("catalog.json")):
        assert misfits(table, {"$ref": "#/$defs/Table"}) == []


@pytest.mark.parametrize(
    "value",
    [
        RuntimeProfile(cores=2, spark={"spark.a": "1"}),
        RuntimeProfile(),
        events.GateChecked(table="t", version=1, passed=False, problems=("x",)),
        events.Committed(table="t", operation="append", version=1, run_id="r"),
        SEMANTIC_TYPES[0],
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_schemas_describe_settings_and_events(value: msgspec.Struct) -> None:
    data = msgspec.json.decode(msgspec.json.encode(value))
    assert misfits(data, {"$ref": f"#/$defs/{type(value).__name__}"}) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"name": 3}, "$.name"),
        ({"stage": "nope"}, "$.stage"),
        ({"columns": [{"name": "x"}]}, "$.columns[0]"),
        ({"write": {"target_file_size": "big"}}, "$.write.target_file_size"),
        ({"write": {"target_file_size": True}}, "$.write.target_file_size"),
        ({"owner": 3}, "$.owner"),
    ],
)
def test_the_schemas_find_what_does_not_fit(change: dict[str, object], where: str) -> None:
    table = {**msgspec.json.decode(page("catalog.json"))[0], **change}
    assert misfits(table, {"$ref": "#/$defs/Table"}) == [where]


def schemas() -> dict[str, Any]:
    definitions: dict[str, Any] = msgspec.json.decode(page("schemas.json"))["$defs"]
    return definitions


JSON_TYPES = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def misfits(value: object, schema: dict[str, Any], where: str = "$") -> list[str]:
    """Places of a JSON value that its schema does not allow; as much of JSON Schema as our pages use."""
    if "$ref" in schema:
        return misfits(value, schemas()[schema["$ref"].removeprefix("#/$defs/")], where)
    if "anyOf" in schema:
        return [] if [] in [misfits(value, choice, where) for choice in schema["anyOf"]] else [where]
    if "enum" in schema:
        return [] if value in schema["enum"] else [where]
    kind = schema["type"]
    # `type` and not isinstance: true is no integer in JSON.
    if type(value) not in JSON_TYPES[kind] or set(schema.get("required", ())) - set(_parts(value)):
        return [where]
    inside = schema.get("properties", {})
    more = schema.get("items") or schema.get("additionalProperties") or {}
    misfits_of_parts = (
        misfits(part, inside.get(name, more), f"{where}{_step(name)}") for name, part in _parts(value).items()
    )
    return [place for places in misfits_of_parts for place in places]


def _step(name: str | int) -> str:
    return f"[{name}]" if isinstance(name, int) else f".{name}"


def _parts(value: object) -> dict[Any, object]:
    if isinstance(value, list):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else {}
