"""Steps and fingerprints: the same where rows would be the same, different where they might not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

import codeanatomy
from codeanatomy import catalog
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.config import load_settings
from codeanatomy.plan.build_request import BuildRequest, build_inputs, source_inputs
from codeanatomy.plan.repositories import Repository
from codeanatomy.plan.steps import (
    RESULT_SETTINGS,
    BuildInputs,
    catalog_hash,
    result_settings,
    rule_fingerprints,
    step_fingerprint,
    steps_of,
)
from codeanatomy.sources.listing import Listing

STEPS = {step.name: step for step in steps_of(catalog.TABLES)}
SETTINGS = load_settings((), env={}, start=None)


def asked(*flags: str, profile: str = "default", **versions: str) -> BuildInputs:
    settings = load_settings(flags, env={}, start=None)
    return BuildInputs(result_settings(settings, profile), {"ast_files_v1": "ast 1", **versions})  # type: ignore[arg-type]


def print_of(
    step: str, told: BuildInputs, source: str = "s", tables: tuple[catalog.Table, ...] = catalog.TABLES
) -> str:
    rules = rule_fingerprints(list(STEPS.values()), told, tables)
    return step_fingerprint(STEPS[step], "requests", {"source": source}, rules[step])


def test_steps_follow_from_the_catalogue() -> None:
    assert list(STEPS) == ["extract", "normalize", "relate", "graph"]
    assert STEPS["graph"].after == ("extract", "normalize", "relate")
    assert STEPS["extract"].inputs == ()
    for name, step in STEPS.items():
        own = {table.name for table in catalog.TABLES if table.stage == name}
        assert own <= set(step.outputs)
        assert not own & set(step.inputs)
    with pytest.raises(codeanatomy.errors.UnknownName, match="nope"):
        steps_of(catalog.TABLES, "nope")


def test_fingerprints_are_the_same_in_other_processes_and_folders(tmp_path: Path) -> None:
    program = (
        "from codeanatomy import catalog\n"
        "from codeanatomy.config import load_settings\n"
        "from codeanatomy.plan.steps import *\n"
        "settings = load_settings((), env={}, start=None)\n"
        "told = BuildInputs(result_settings(settings, 'default'), {'ast_files_v1': 'ast 1'})\n"
        "steps = steps_of(catalog.TABLES)\n"
        "rules = rule_fingerprints(steps, told, catalog.TABLES)\n"
        "for step in steps:\n"
        "    print(step_fingerprint(step, 'requests', {'source': 's'}, rules[step.name]))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert said.split() == [print_of(name, asked()) for name in STEPS]


@pytest.mark.parametrize(
    "flag",
    [
        "extract.partitions=7",
        "runtime.shuffle_partitions=3",
        "runtime.driver_memory=1g",
        "runtime.master=local[1]",
        "tables.ast_files_v1.write.target_file_size=1MB",
        "tables.cpg_nodes.write.zorder_by=node_id",
        "observe.trace=console",
    ],
)
def test_what_cannot_change_rows_changes_no_fingerprint(flag: str) -> None:
    tables = load_settings((flag,), env={}, start=None).tables
    for name in STEPS:
        assert print_of(name, asked(flag), tables=tables) == print_of(name, asked())


def test_what_can_change_rows_changes_the_fingerprint_of_its_step() -> None:
    # And of those after it.
    assert print_of("extract", asked("extract.max_value_chars=9")) != print_of("extract", asked())
    assert print_of("relate", asked("extract.max_value_chars=9")) != print_of("relate", asked())
    assert print_of("graph", asked(profile="full")) != print_of("graph", asked())
    assert print_of("normalize", asked(profile="full")) == print_of("normalize", asked())
    assert print_of("extract", asked(libcst_files_v1="libcst 9")) != print_of("extract", asked())
    assert print_of("relate", asked(), source="other") != print_of("relate", asked())


def test_a_new_version_of_a_table_is_another_fingerprint() -> None:
    changed = tuple(
        structs.replace(table, version=2) if table.name == "cpg_nodes" else table for table in catalog.TABLES
    )
    assert print_of("graph", asked(), tables=changed) != print_of("graph", asked())
    assert print_of("relate", asked(), tables=changed) == print_of("relate", asked())
    assert catalog_hash(changed) != catalog_hash(catalog.TABLES)
    described = tuple(structs.replace(table, doc="Other words.") for table in catalog.TABLES)
    assert catalog_hash(described) == catalog_hash(catalog.TABLES)


def test_every_setting_of_extraction_is_declared_or_cannot_change_rows() -> None:
    declared = {name.removeprefix("extract.") for name in RESULT_SETTINGS["extract"]}
    assert declared | {"partitions"} == {field.name for field in structs.fields(ExtractOptions)}


def test_what_is_asked_for_has_the_versions_of_the_witnesses(tmp_path: Path) -> None:
    index = tmp_path / "index.scip"
    index.write_bytes(b"one")
    order = BuildRequest(str(tmp_path), SETTINGS, (Repository("a", tmp_path), Repository("b", tmp_path)))
    assert set(build_inputs(order).witness_versions) >= {"ast_files_v1", "libcst_files_v1", "scip_index_v1"}
    listings = dict.fromkeys("ab", Listing("/", "folder", ()))
    assert source_inputs(order, {"a": "1"}, listings) == {"a": {"source": "1", "scip": "off"}}
    package = {"a": Listing("/shop", "folder", (), package="shop")}
    assert source_inputs(order, {"a": "1"}, package)["a"]["package"] == "shop"
    given = structs.replace(order, scip=structs.replace(order.scip, given={"a": index}))
    first = source_inputs(given, {"a": "1", "b": "2"}, listings)
    assert first["b"]["scip"] == "off"
    index.write_bytes(b"two")
    assert source_inputs(given, {"a": "1"}, listings)["a"] != first["a"]
