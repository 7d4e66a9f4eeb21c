"""`delta.readers`: lakes with deletion vectors and lakes that every reader opens have the same rows."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.catalog.readers import VECTORS, VECTORS_NAME, without_vectors
from codeanatomy.config import load_settings
from codeanatomy.delta.log.replay import logged_versions, read_actions
from codeanatomy.delta.read.light import table_facts
from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import ConfigError, FeatureError, GateError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan.run_plan import stored_features
from codeanatomy.plan.steps import catalog_hash
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.run.build import plan
from support.edits import repository, script, write_tree
from support.light_builds import MODERN, clean_lake, order, refreshed
from support.log_files import entry_path, replay_vectors

APP = "app"
ALL = "delta.readers=all"
STEPS = 2


class Edited:
    """A lake of each kind, refreshed after each edit of a script."""

    def __init__(self, work: Path) -> None:
        self.source, self.lakes = {APP: work / "source"}, {ALL: work / "all", MODERN: work / "modern"}
        tree = repository(4)
        write_tree(work / "source", tree)
        for setting, lake in self.lakes.items():
            clean_lake(lake, self.source, setting)
        for edit in script(4, STEPS):
            tree = edit.apply(tree)
            write_tree(work / "source", tree, tuple(edit.writes))
            # A lake stays as it is without the setting.
            for setting, lake in self.lakes.items():
                refreshed(lake, self.source, *((setting,) if edit.writes else ()))
        self.clean = work / "clean"
        clean_lake(self.clean, self.source)


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Edited:
    return Edited(tmp_path_factory.mktemp("readers"))


@pytest.fixture
def copied(edited: Edited, tmp_path: Path) -> Any:
    """Copy a lake of one kind."""
    return lambda setting: Path(shutil.copytree(edited.lakes[setting], tmp_path / setting[-3:]))


def tables_of(lake: Path) -> dict[str, str]:
    """The folders of the tables that a run pins."""
    return {name: location(str(lake), name) for name in Snapshot.open(str(lake)).pins}


@pytest.mark.parametrize("setting", [ALL, MODERN])
def test_refreshed_lakes_have_the_rows_of_a_clean_one(edited: Edited, setting: str) -> None:
    found = compare_lakes(str(edited.lakes[setting]), str(edited.clean))
    assert not found.tables, (found.tables, found.differences[:5])
    assert sum(found.rows.values()) > 10_000


@pytest.mark.parametrize("setting", [ALL, MODERN])
def test_refreshes_do_not_change_the_protocol(edited: Edited, setting: str) -> None:
    for name, place in tables_of(edited.lakes[setting]).items():
        versions = logged_versions(place)
        assert [bool(each.protocol) for each in read_actions(place, 0)].count(True) == 1
        for version in versions[1:]:
            assert not any(each.protocol for each in read_actions(place, version)), (name, version)
        features = table_facts(str(edited.lakes[setting]), name, versions[-1]).features
        declared = VECTORS in catalog.table(name).write.enable_features
        assert (VECTORS_NAME in features) == (declared and setting == MODERN), name


def test_rows_left_by_vectors_in_one_and_by_rewriting_in_the_other(edited: Edited) -> None:
    vectors = {
        setting: sum(
            len(replay_vectors(place, logged_versions(place)[-1])) for place in tables_of(lake).values()
        )
        for setting, lake in edited.lakes.items()
    }
    assert vectors[MODERN] > 0 == vectors[ALL]


def test_every_table_opens_with_every_reader(edited: Edited) -> None:
    lake = edited.lakes[ALL]
    for name, pin in Snapshot.open(str(lake)).pins.items():
        place, keys = location(str(lake), name), list(catalog.table(name).primary_key)
        ours = Snapshot.open(str(edited.clean)).rows(name, keys).to_pylist()
        expected = Counter(tuple(row[key] for key in keys) for row in ours)
        table = DeltaTable(place)
        assert table.version() == pin.version
        rows = table.to_pyarrow_dataset().to_table(columns=keys).to_pylist()
        if name != "extract_error_artifacts":
            # Its rows name the run.
            assert Counter(tuple(row[key] for key in keys) for row in rows) == expected, name
        assert len(table.to_pandas(columns=keys)) == len(rows), name
        assert pl.read_delta(place, columns=keys).height == len(rows), name


def test_readers_of_vectors(edited: Edited) -> None:
    """Polars applies vectors; deltalake refuses them, instead of reading deleted rows."""
    lake = str(edited.lakes[MODERN])
    opened = Snapshot.open(lake)
    assert replay_vectors(location(lake, "cpg_edges"), opened.pins["cpg_edges"].version)
    for name in ("cpg_nodes", "cpg_edges"):
        assert pl.read_delta(location(lake, name), columns=["repo_id"]).height == opened.pins[name].rows
        with pytest.raises(Exception, match="deletionVectors"):
            DeltaTable(location(lake, name)).to_pyarrow_dataset()


@pytest.mark.parametrize(("lake", "setting"), [(ALL, MODERN), (MODERN, ALL)])
def test_the_other_setting_is_refused_with_the_command(edited: Edited, lake: str, setting: str) -> None:
    before = tables_of(edited.lakes[lake])
    readers = setting.partition("=")[2]
    request = order(edited.lakes[lake], edited.source, setting)
    with pytest.raises(FeatureError, match=f"delta.readers is {readers}") as problem:
        plan(request, Progress(io.StringIO()))
    assert problem.value.hint == f"codeanatomy maintain --readers {readers} --lake {edited.lakes[lake]}"
    with pytest.raises(FeatureError, match="deletion vectors"):
        refreshed(edited.lakes[lake], edited.source, setting)
    assert tables_of(edited.lakes[lake]) == before


def test_the_setting_changes_no_fingerprint(edited: Edited) -> None:
    for lake in edited.lakes.values():
        found = plan(order(lake, edited.source), Progress(io.StringIO()))
        assert found.nothing_to_do
    rules = [Snapshot.open(str(lake)).repositories[APP].rule_fingerprints for lake in edited.lakes.values()]
    assert rules[0] == rules[1]
    assert catalog_hash(without_vectors(catalog.TABLES)) == catalog_hash(catalog.TABLES)
    gated = structs.replace(
        catalog.table("cpg_nodes"),
        gate=structs.replace(catalog.table("cpg_nodes").gate, min_writer_version=7),
    )
    assert catalog_hash([gated]) != catalog_hash([catalog.table("cpg_nodes")])


@pytest.mark.parametrize("setting", [ALL, MODERN])
def test_a_table_that_is_made_again_is_like_the_others(copied: Any, edited: Edited, setting: str) -> None:
    lake, name = copied(setting), "graph_shared_v1"
    shutil.rmtree(location(str(lake), name))
    refreshed(lake, edited.source)
    version = Snapshot.open(str(lake)).pins[name].version
    assert (VECTORS_NAME in table_facts(str(lake), name, version).features) == (setting == MODERN)


def test_a_new_lake_opens_with_every_reader_after_a_build_and_after_a_refresh(
    edited: Edited, tmp_path: Path
) -> None:
    """Nothing is set: no table of it, also of those about runs, has a feature that a reader may lack."""
    expect_open(edited.clean)
    lake = Path(shutil.copytree(edited.clean, tmp_path / "lake"))
    source = Path(shutil.copytree(edited.source[APP], tmp_path / "source"))
    path = min(source.glob("*.py"))
    path.write_bytes(path.read_bytes() + b"\nmore = 1\n")
    assert refreshed(lake, {APP: source}).redone[APP]["changed"] == 1
    expect_open(lake)


def expect_open(lake: Path) -> None:
    """Check that all readers open all tables of a lake, and count the same rows."""
    places = sorted(log.parent for log in lake.rglob("_delta_log"))
    pins = Snapshot.open(str(lake)).pins
    assert {"run_manifest", "run_lease", *pins} <= {place.name for place in places}
    for place in places:
        table = DeltaTable(str(place))
        protocol = table.protocol()
        assert (protocol.min_reader_version, protocol.reader_features) == (1, None), place.name
        count = table.to_pyarrow_table().num_rows
        assert len(table.to_pandas()) == count, place.name
        assert pl.read_delta(str(place)).height == count, place.name
        assert counted_by_duckdb(table) == count, place.name
        assert count == pins[place.name].rows if place.name in pins else count > 0, place.name


def counted_by_duckdb(table: DeltaTable) -> int:
    """Count the rows in the Parquet files of a version."""
    files = [unquote(urlsplit(uri).path) for uri in table.file_uris()]
    if not files:
        return 0
    with duckdb.connect() as database:
        rows = database.execute("SELECT count(*) FROM read_parquet($1)", [files]).fetchone()
    return int(rows[0]) if rows else 0


def test_what_no_run_has_published_counts_unless_it_is_damaged(edited: Edited, copied: Any) -> None:
    lake = copied(MODERN)
    versions = {"cpg_nodes": logged_versions(location(str(lake), "cpg_nodes"))[-1], "cpg_edges": 0}
    entry_path(location(str(lake), "cpg_edges"), 0).write_text("{")
    found = stored_features(str(lake), {}, versions)
    assert list(found) == ["cpg_nodes"]
    assert VECTORS_NAME in found["cpg_nodes"]
    pins = Snapshot.open(str(edited.lakes[ALL])).pins
    assert not any(stored_features(str(lake), {"cpg_nodes": pins["cpg_nodes"]}, versions).values())


def test_other_reader_features_are_refused_with_all() -> None:
    features = "tables.cpg_nodes.write.enable_features=column_mapping"
    with pytest.raises(ConfigError, match=r"delta\.readers is all, but tables\.cpg_nodes"):
        load_settings((ALL, features), env={}, start=None)
    assert not any(
        VECTORS in table.write.enable_features for table in load_settings((ALL,), env={}, start=None).tables
    )


def test_a_gate_is_checked_by_plans_and_commits(copied: Any, edited: Edited) -> None:
    gate = "tables.cpg_nodes.gate.min_writer_version=7"
    for setting, lake in ((MODERN, copied(MODERN)), (ALL, copied(ALL))):
        request = order(lake, edited.source, gate)
        if setting == MODERN:
            plan(request, Progress(io.StringIO()))
        else:
            with pytest.raises(
                GateError, match=r"cpg_nodes version \d+ fails its gate: writer version 2 < 7"
            ):
                plan(request, Progress(io.StringIO()))
