"""`codeanatomy maintain --readers`: the same rows for other readers, published and refreshed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from msgspec import json

from codeanatomy import catalog
from codeanatomy.catalog.readers import READERS, VECTORS, VECTORS_NAME
from codeanatomy.delta.light_feed import changed_owners
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.protocol import VECTORS_ENABLED
from codeanatomy.delta.log.replay import logged_versions, read_actions, replay_log
from codeanatomy.delta.read.light import light_table, table_facts
from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import FeatureError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from support.commands import RunCommand, command_runner
from support.light_builds import MODERN, clean_lake, refreshed
from support.log_files import replay_vectors

APP = "app"
FILES = {
    "a.py": "def one(x):\n    return x\n",
    "b.py": "from a import one\n\n\ndef two():\n    return one(2)\n",
    "c.py": "from b import two\n\nprint(two())\n",
}
EDITED = "def one(x):\n    return x + 1\n"
DECLARED = [table.name for table in catalog.TABLES if VECTORS in table.write.enable_features]


def put(folder: Path, **changes: str) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    for name, text in (FILES | {f"{name}.py": text for name, text in changes.items()}).items():
        (folder / name).write_text(text)
    return {APP: folder}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A refreshed lake with deletion vectors, and its source."""
    folder = tmp_path_factory.mktemp("base")
    clean_lake(folder / "lake", put(folder / "source"), MODERN)
    refreshed(folder / "lake", put(folder / "source", a=EDITED))
    return folder


@pytest.fixture
def made(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "made"))


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def vectors_of(lake: Path) -> int:
    pins = Snapshot.open(str(lake)).pins
    return sum(len(replay_vectors(location(str(lake), name), pin.version)) for name, pin in pins.items())


@pytest.mark.system
def test_a_lake_is_brought_to_all_readers_and_back(run: RunCommand, made: Path) -> None:
    lake, sources = made / "lake", {APP: made / "source"}
    before = Snapshot.open(str(lake))
    rows = {name: pin.rows for name, pin in before.pins.items()}
    assert vectors_of(lake) > 0
    code, out, err = run("maintain", "--lake", str(lake), "--readers", "all")
    assert code == 0
    changed = [line.split()[:3] for line in out.splitlines()[1:]]
    stored = [name for name in DECLARED if name in before.pins]
    assert sorted(changed) == sorted([name, "features", "done"] for name in stored)
    assert "has published new versions" in err
    after = Snapshot.open(str(lake))
    assert after.run_id != before.run_id
    assert {name: pin.rows for name, pin in after.pins.items()} == rows
    for name, pin in after.pins.items():
        assert table_facts(str(lake), name, pin.version).min_reader_version == 1, name
        opened = DeltaTable(location(str(lake), name))
        assert opened.version() == pin.version
        assert len(opened.to_pyarrow_dataset().to_table(columns=["repo_id"])) == rows[name], name
        assert VECTORS_ENABLED not in opened.metadata().configuration
        if name in stored:
            assert pin.version == before.pins[name].version + 1
            # No row has changed.
            actions = read_actions(location(str(lake), name), pin.version)
            changes = [side for each in actions for side in (each.add, each.remove) if side is not None]
            assert not any(side.data_change for side in changes)
    assert vectors_of(lake) == 0
    events = light_table(str(lake), "delta_maintenance", ["table_name", "operation", "reason"]).to_pylist()
    assert {each["table_name"] for each in events if each["operation"] == "features"} == set(stored)
    # Again: nothing to do.
    code, out, err = run("maintain", "--lake", str(lake), "--readers", "all")
    assert (code, out) == (0, "")
    assert "nothing to do" in err
    # A refresh follows the lake, and redoes only what was edited.
    put(made / "source", a="def one(x):\n    return x + 2\n")
    report = refreshed(lake, sources, "delta.readers=all")
    assert report.steps["extract"] == {APP: "refresh"}
    assert report.steps["graph"] == {APP: "refresh"}
    clean_lake(made / "clean", sources)
    assert not compare_lakes(str(lake), str(made / "clean")).tables
    assert vectors_of(lake) == 0
    for name in Snapshot.open(str(lake)).pins:
        DeltaTable(location(str(lake), name)).to_pyarrow_dataset()
    # And back.
    code, out, _ = run("maintain", "--lake", str(lake), "--readers", "modern")
    assert code == 0
    for name, pin in Snapshot.open(str(lake)).pins.items():
        features = table_facts(str(lake), name, pin.version).features
        assert (VECTORS_NAME in features) == (name in stored), name
        assert ("changeDataFeed" in features) == (
            "change_data_feed" in catalog.table(name).write.enable_features
        )
    put(made / "source", b="def two():\n    return 3\n")
    refreshed(lake, sources, "delta.readers=modern")
    assert vectors_of(lake) > 0
    clean_lake(made / "third", sources)
    assert not compare_lakes(str(lake), str(made / "third")).tables
    assert not verify(str(lake)).findings


@pytest.mark.system
def test_the_feed_goes_on(run: RunCommand, made: Path) -> None:
    lake = made / "lake"
    newest = Snapshot.open(str(lake)).pins["repo_files_v1"].version
    assert run("maintain", "--lake", str(lake), "--readers", "all")[0] == 0
    assert changed_owners(str(lake), "repo_files_v1", newest + 1, newest + 1, "path", APP) == frozenset()
    put(made / "source", a=EDITED, c="print(1)\n")
    refreshed(lake, {APP: made / "source"})
    changed = changed_owners(str(lake), "repo_files_v1", newest + 1, newest + 2, "path", APP)
    assert changed == {"c.py"}


def test_after_a_killed_build_the_advice_leads_somewhere(run: RunCommand, made: Path) -> None:
    """A build with the other readers names `maintain --readers`, which names a build that works."""
    lake, sources = made / "lake", {APP: made / "source"}
    place = location(str(lake), "cpg_nodes")
    version = DeltaTable(place).version() + 1
    entries.write_entry(place, version, [{"commitInfo": {"operation": "WRITE"}}], 10)
    with pytest.raises(FeatureError) as refused:
        refreshed(lake, sources, "delta.readers=all")
    assert "maintain --readers all" in refused.value.hint
    code, _, err = run("maintain", "--lake", str(lake), "--readers", "all")
    assert code != 0
    assert "cpg_nodes has versions that no run has published" in err
    assert "codeanatomy build --readers modern" in err
    refreshed(lake, sources, "delta.readers=modern")
    assert run("maintain", "--lake", str(lake), "--readers", "all")[0] == 0
    refreshed(lake, sources, "delta.readers=all")


def test_what_would_be_done(run: RunCommand, made: Path) -> None:
    lake = made / "lake"
    before = Snapshot.open(str(lake)).run_id
    code, out, _ = run("maintain", "--lake", str(lake), "--readers", "all", "--dry-run", "--format", "json")
    report = json.decode(out)
    assert (code, report["run_id"]) == (0, None)
    assert {each["outcome"] for each in report["outcomes"]} == {"planned"}
    assert Snapshot.open(str(lake)).run_id == before


def test_what_it_is_not_for(run: RunCommand, made: Path, tmp_path: Path) -> None:
    lake = str(made / "lake")
    code, _, err = run("maintain", "cpg_nodes", "--lake", lake, "--readers", "all")
    assert code == 2
    assert "for all tables of a lake" in err
    code, _, err = run("maintain", "--lake", str(tmp_path / "none"), "--readers", "all")
    assert code != 0
    table = DeltaTable(location(lake, "cpg_nodes"))
    mapped = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [VECTORS_NAME, "columnMapping"]}
    mapped["writerFeatures"] = [VECTORS_NAME, "columnMapping"]
    before = {name: logged_versions(location(lake, name)) for name in DECLARED}
    entries.write_entry(location(lake, "cpg_nodes"), table.version() + 1, [{"protocol": mapped}])
    before["cpg_nodes"].append(table.version() + 1)
    code, _, err = run("maintain", "--lake", lake, "--readers", "all")
    assert code == 4
    assert "cpg_nodes has features that only Spark writes" in err
    assert {name: logged_versions(location(lake, name)) for name in DECLARED} == before


@pytest.mark.system
def test_an_older_run_can_be_restored(run: RunCommand, made: Path) -> None:
    """Its tables have vectors, and so has the protocol again."""
    lake, sources = made / "lake", {APP: made / "source"}
    older = Snapshot.open(str(lake)).run_id
    assert run("maintain", "--lake", str(lake), "--readers", "all")[0] == 0
    put(made / "source", c="print(1)\n")
    refreshed(lake, sources)
    code, _, err = run("restore", "--lake", str(lake), "--run", older)
    assert code == 0, err
    put(made / "source", a=EDITED)
    clean_lake(made / "clean", sources)
    assert not compare_lakes(str(lake), str(made / "clean")).tables
    for name, pin in Snapshot.open(str(lake)).pins.items():
        state = replay_log(location(str(lake), name), pin.version)
        has_vectors = any(add.deletion_vector for add in state.adds.values())
        assert not has_vectors or state.has_vectors, name


def test_status_and_features_name_the_readers(run: RunCommand, made: Path) -> None:
    lake = str(made / "lake")
    code, _, err = run("status", "--lake", lake)
    assert code == 0
    assert "readers of its tables: Spark with Delta, codeanatomy without Spark, deltalake QueryBuilder" in err
    rows = json.decode(run("features", "cpg_nodes", "run_manifest", "--lake", lake, "--format", "json")[1])
    assert "deltalake to_pyarrow_dataset, to_pandas" not in rows[0]["readers"]
    assert rows[1]["readers"] == [reader.name for reader in READERS]
    out = run("features", "cpg_nodes", "run_manifest", "--lake", lake)[1].splitlines()
    assert out[1].endswith("not deltalake to_pyarrow_dataset, to_pandas, DuckDB on the files")
    assert out[2].endswith("all")
    assert run("maintain", "--lake", lake, "--readers", "all")[0] == 0
    status = json.decode(run("status", "--lake", lake, "--format", "json")[1])
    assert status["readers"] == [reader.name for reader in READERS]
