"""Copies of a published run: their contents, the readers that open them, and refused requests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log.replay import replay_log
from codeanatomy.delta.read.light import light_files, table_facts
from codeanatomy.delta.read.open_table import location, newest_version
from codeanatomy.delta.read.readable import have_same_content
from codeanatomy.delta.write import rewrite
from codeanatomy.errors import StorageFailure, TableMissing, UnknownName, UsageError, VersionGone
from codeanatomy.lake.lease import acquire
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain import snapshot_export as snapshot_copy
from codeanatomy.maintain import table_copies as copying
from codeanatomy.maintain.snapshot_export import export_snapshot
from codeanatomy.maintain.table_copies import copied_bytes, copy_table
from codeanatomy.query.checks.verify import verify
from codeanatomy.query.status.failures import failures
from support.commands import RunCommand, command_runner
from support.light_builds import refreshed
from support.log_files import entry_path, vector_file
from support.published_rows import counted
from support.three_runs import FILES, ThreeRuns, copied, rows, table_rows, three_runs

NODES, EDGES = "cpg_nodes", "cpg_edges"
V2 = "v2Checkpoint"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    return three_runs(tmp_path_factory)


@pytest.fixture(scope="module")
def copy(made: ThreeRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the newest run, which has vectors; not to be written to."""
    target = tmp_path_factory.mktemp("copies") / "copy"
    export_snapshot(str(made.root), target)
    return target


@pytest.fixture
def lake(made: ThreeRuns, tmp_path: Path) -> ThreeRuns:
    """A lake to be written to."""
    return copied(tmp_path, made)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def expect_nothing(target: Path) -> None:
    """There is no copy, and nothing beside it."""
    assert not target.exists()
    assert not [path for path in target.parent.iterdir() if path.name.startswith(f".{target.name}.")]


# A lake of its own


def test_a_copy_has_every_row(made: ThreeRuns, copy: Path) -> None:
    assert rows(copy) == rows(made.root)
    here, there = Snapshot.open(str(made.root)), Snapshot.open(str(copy))
    assert (there.run_id, there.published_at) == (here.run_id, here.published_at)
    assert set(there.repositories) == {"a", "b", "c"}
    for repo_id, row in there.repositories.items():
        old = here.repositories[repo_id]
        assert row == structs.replace(old, output_pins=row.output_pins, input_pins=(), change_windows=())
    assert {pin.version for pin in there.pins.values()} == {0}
    assert {name: pin.rows for name, pin in there.pins.items()} == {
        name: pin.rows for name, pin in here.pins.items()
    }
    assert not counted(copy)
    assert not verify(str(copy)).findings
    assert failures(str(copy)).rows == failures(str(made.root)).rows != ()


def test_files_are_the_same_bytes_unless_rows_were_removed(made: ThreeRuns, copy: Path) -> None:
    lake = Snapshot.open(str(made.root))
    rewritten = 0
    for name in lake.pins:
        here, there = Path(location(str(made.root), name)), Path(location(str(copy), name))
        files = {file.path: file for file in light_files(str(copy), name)}
        for file in lake.files(name):
            if file.vector is None:
                assert (here / file.path).read_bytes() == (there / file.path).read_bytes()
            else:
                assert not (there / file.path).exists()
                rewritten += 1
        # What is in the folder is what the log lists.
        assert {str(path.relative_to(there)) for path in there.rglob("*.parquet")} == set(files)
        assert sum(file.rows or 0 for file in files.values()) == lake.pins[name].rows
    assert rewritten > 20


def test_what_was_written_anew_has_true_statistics_and_the_policy(made: ThreeRuns, copy: Path) -> None:
    known = {file.path for file in light_files(str(made.root), NODES)}
    new = [file for file in light_files(str(copy), NODES) if file.path not in known]
    adds = replay_log(location(str(copy), NODES), 0).adds
    assert new
    for file in new:
        assert file.path.startswith(f"node_kind={file.partition['node_kind']}/")
        stored = pq.read_table(Path(location(str(copy), NODES), file.path), partitioning=None)
        assert "node_kind" not in stored.column_names
        assert file.rows == len(stored) > 0
        ids = stored.column("node_id").to_pylist()
        stats = json.loads(adds[file.path].stats or "")
        assert stats["numRecords"] == file.rows
        assert (stats["minValues"]["node_id"], stats["maxValues"]["node_id"]) == (min(ids), max(ids))
        assert (
            pq.ParquetFile(Path(location(str(copy), NODES), file.path))
            .metadata.row_group(0)
            .column(0)
            .compression
            == "ZSTD"
        )


def test_the_oldest_protocol_is_enough(made: ThreeRuns, copy: Path) -> None:
    readers = {
        table_facts(str(made.root), name, pin.version).min_reader_version
        for name, pin in Snapshot.open(str(made.root)).pins.items()
    }
    assert readers == {1, 3}
    for name in Snapshot.open(str(copy)).pins:
        facts = table_facts(str(copy), name, 0)
        has_feed = "change_data_feed" in catalog.table(name).write.enable_features
        assert (facts.min_reader_version, facts.min_writer_version) == (1, 4 if has_feed else 2)
        assert facts.features == ()
        state = replay_log(location(str(copy), name), 0)
        here = replay_log(location(str(made.root), name), Snapshot.open(str(made.root)).pins[name].version)
        assert state.metadata["schemaString"] == here.metadata["schemaString"]
        gone = here.metadata["configuration"].items() - state.metadata["configuration"].items()
        assert {key for key, _ in gone} <= {"delta.enableDeletionVectors"}


def test_any_reader_opens_it(copy: Path) -> None:
    """deltalake's own engine, and DuckDB by the files."""
    lake = Snapshot.open(str(copy))
    for name in lake.pins:
        table = DeltaTable(location(str(copy), name))
        assert table.to_pyarrow_table().num_rows == lake.pins[name].rows
        files = table.file_uris()
        if files:
            counts = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [files]).fetchall()
            assert counts == [(lake.pins[name].rows,)]


@pytest.mark.parametrize("run", [0, 1])
def test_an_older_run(made: ThreeRuns, tmp_path: Path, run: int) -> None:
    report = export_snapshot(str(made.root), tmp_path / "copy", as_of=made.runs[run])
    assert (report.run_id, report.repositories) == (made.runs[run], ("a", "b"))
    assert rows(tmp_path / "copy") == rows(made.root, made.runs[run])
    assert report.size_bytes == sum(each.size_bytes for each in report.tables)


@pytest.mark.system
def test_a_restored_run(lake: ThreeRuns, tmp_path: Path) -> None:
    lake.restore(lake.runs[0])
    lake.build(1)
    export_snapshot(str(lake.root), tmp_path / "copy")
    assert rows(tmp_path / "copy") == rows(lake.root)
    assert set(Snapshot.open(str(tmp_path / "copy")).repositories) == {"a", "b"}


@pytest.mark.system
def test_a_build_goes_on_from_it(made: ThreeRuns, copy: Path, tmp_path: Path) -> None:
    """There is nothing to do; after an edit the copy is refreshed, without Spark."""
    lake = ThreeRuns(tmp_path, ())
    shutil.copytree(copy, lake.root)
    assert lake.build(2).status == "unchanged"
    (lake.folder / "a" / "two.py").write_text("def g():\n    return 3\n")
    sources = {name: tmp_path / name for name in FILES}
    assert refreshed(lake.root, sources).status == "succeeded"
    assert not verify(str(lake.root)).findings
    assert not counted(lake.root)


def test_it_needs_nothing_of_the_lake(lake: ThreeRuns, tmp_path: Path) -> None:
    wanted = rows(lake.root)
    export_snapshot(str(lake.root), tmp_path / "copy")
    shutil.rmtree(lake.root)
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "copy").rename(tmp_path / "elsewhere" / "copy")
    assert rows(moved) == wanted


def test_while_another_run_writes(lake: ThreeRuns, tmp_path: Path) -> None:
    """What is not published is not in it, and no run is waited for."""
    wanted = rows(lake.root)
    with acquire(str(lake.root), "other", ["a"], wait=False, report=print, base_run_id=None):
        DeltaTable(location(str(lake.root), NODES)).delete()
        export_snapshot(str(lake.root), tmp_path / "copy")
    assert rows(tmp_path / "copy") == wanted


# One repository


def test_one_repository(made: ThreeRuns, tmp_path: Path) -> None:
    report = export_snapshot(str(made.root), tmp_path / "copy", repo_id="a")
    assert report.repositories == ("a",)
    lake, there = Snapshot.open(str(made.root)), Snapshot.open(str(tmp_path / "copy"))
    assert set(there.repositories) == {"a"}
    for name in lake.pins:
        columns = catalog.table(name).column_names
        wanted = [row for row in lake.rows(name, columns).to_pylist() if row["repo_id"] == "a"]
        assert table_rows(there, name) == sorted(map(repr, wanted))
    assert not verify(str(tmp_path / "copy")).findings
    with pytest.raises(UnknownName, match="repository"):
        export_snapshot(str(made.root), tmp_path / "other", repo_id="z")
    expect_nothing(tmp_path / "other")


# Parquet files


def test_parquet_files(made: ThreeRuns, tmp_path: Path) -> None:
    target = tmp_path / "files"
    report = export_snapshot(str(made.root), target, form="parquet", as_of=made.runs[1])
    lake = Snapshot.open(str(made.root), made.runs[1])
    manifest = json.loads((target / "manifest.json").read_text())
    assert (manifest["format_version"], manifest["run_id"]) == (1, lake.run_id)
    assert {each["repo_id"]: each["source_digest"] for each in manifest["repositories"]} == {
        name: row.source_digest for name, row in lake.repositories.items()
    }
    tables = {each["table"]: each for each in manifest["tables"]}
    assert set(tables) == set(lake.pins) == {each.table for each in report.tables}
    assert {path.name for path in target.iterdir()} == {*tables, "manifest.json"}
    for name, each in tables.items():
        table = pq.read_table(target / each["folder"])
        assert (each["rows"], each["version"]) == (len(table), lake.pins[name].version)
        assert each["files"] == len(list((target / name).iterdir()))
        assert [column["name"] for column in each["columns"]] == table.column_names
        assert table.column_names == list(catalog.table(name).column_names)
        ours = lake.rows(name, table.column_names)
        assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, ours.to_pylist()))
    # Another engine reads them, values of partitions too.
    counted = duckdb.execute(
        f"SELECT node_kind, count(*) FROM '{target}/{NODES}/*.parquet' GROUP BY 1"
    ).fetchall()
    assert dict(counted) == _kinds(lake)


def _kinds(lake: Snapshot) -> dict[str, int]:
    counts = lake.rows(NODES, ["node_kind"]).column(0).value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in counts}


def test_large_tables_are_several_files_and_row_groups(
    made: ThreeRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "GROUP_BYTES", 2_000)
    monkeypatch.setattr(copying, "FILE_BYTES", 6_000)
    monkeypatch.setattr(rewrite, "BATCH_ROWS", 3)
    export_snapshot(str(made.root), tmp_path / "files", form="parquet", repo_id="a")
    parts = sorted((tmp_path / "files" / EDGES).iterdir())
    assert len(parts) > 2
    assert pq.ParquetFile(parts[0]).num_row_groups > 2
    lake = Snapshot.open(str(made.root))
    columns = [*catalog.table(EDGES).primary_key, "repo_id"]
    wanted = [row for row in lake.rows(EDGES, columns).to_pylist() if row["repo_id"] == "a"]
    copied = pq.read_table(parts[0].parent, columns=columns).to_pylist()
    assert sorted(map(repr, copied)) == sorted(map(repr, wanted))


# What is refused


def test_a_target_that_is_not_empty(made: ThreeRuns, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists and is not an empty folder"):
        export_snapshot(str(made.root), tmp_path / "full")
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "note.txt"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="exists and is not an empty folder"):
        export_snapshot(str(made.root), tmp_path / "file")
    with pytest.raises(UsageError, match=r"the folder .* does not exist"):
        export_snapshot(str(made.root), tmp_path / "no" / "such")
    with pytest.raises(UsageError, match="the path of a lake must not contain"):
        export_snapshot(str(made.root), tmp_path / "a[1]")
    # One that is empty will do, through a link, too.
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    export_snapshot(str(made.root), tmp_path / "link")
    assert rows(tmp_path / "empty") == rows(made.root)


def test_a_target_in_the_lake(made: ThreeRuns, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(made.root)
    for target in (made.root, made.root / "copy", made.root / "graph" / "copy", tmp_path / "link" / "copy"):
        with pytest.raises(UsageError, match="is inside the lake"):
            export_snapshot(str(made.root), target)


def test_a_lake_of_which_files_are_gone(lake: ThreeRuns, tmp_path: Path) -> None:
    target, place = tmp_path / "copy", location(str(lake.root), NODES)
    adds = replay_log(place, lake.version(NODES, 1)).adds
    Path(place, next(iter(adds))).unlink()
    with pytest.raises(VersionGone, match=r"1 of its \d+ files is missing"):
        export_snapshot(str(lake.root), target, as_of=lake.runs[1])
    expect_nothing(target)
    with pytest.raises(UnknownName):
        export_snapshot(str(lake.root), target, as_of="2099")
    with pytest.raises(TableMissing):
        export_snapshot(str(tmp_path / "nowhere"), target)
    expect_nothing(target)


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_a_file_that_goes_while_it_is_copied(
    lake: ThreeRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Any
) -> None:
    """Maintenance by a tool that does not check first."""
    target, place = tmp_path / "copy", location(str(lake.root), NODES)
    adds = replay_log(place, lake.version(NODES, 2)).adds
    whole = [path for path, add in adds.items() if add.deletion_vector is None]

    def vacuuming(folder: Path, size: int) -> None:
        Path(place, whole[0]).unlink()

    monkeypatch.setattr(snapshot_copy, "_refuse_small_disk", vacuuming)
    with pytest.raises(VersionGone, match=f"of {NODES} at .* such as {whole[0]}"):
        export_snapshot(str(lake.root), target, form=form)
    expect_nothing(target)


def test_a_vector_that_is_damaged(lake: ThreeRuns, tmp_path: Path) -> None:
    place = location(str(lake.root), NODES)
    vector = next(
        add.deletion_vector
        for add in replay_log(place, lake.version(NODES, 2)).adds.values()
        if add.deletion_vector
    )
    path = vector_file(place, vector)
    assert path is not None
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(StorageFailure, match="deletion vector"):
        export_snapshot(str(lake.root), tmp_path / "copy")
    expect_nothing(tmp_path / "copy")


def test_a_disk_without_room(made: ThreeRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StorageFailure, match=r"the copy takes .* MB, and 0\.0 MB are free"):
        export_snapshot(str(made.root), tmp_path / "copy")
    expect_nothing(tmp_path / "copy")


@pytest.mark.parametrize("how", ["above", "absolute", "link"])
def test_a_log_that_names_files_of_others(lake: ThreeRuns, tmp_path: Path, how: str) -> None:
    """A foreign lake must not make us copy what it cannot read itself."""
    secret = tmp_path / "secret"
    secret.write_text("hush")
    place = location(str(lake.root), "span_errors_v1")
    named = {"above": "../../../../secret", "absolute": str(secret), "link": "part-1.parquet"}[how]
    if how == "link":
        Path(place, named).symlink_to(secret)
    log = entry_path(place, 0)
    action = {"path": named, "partitionValues": {}, "size": 4, "modificationTime": 0, "dataChange": True}
    with log.open("a") as lines:
        lines.write(json.dumps({"add": action}) + "\n")
    with pytest.raises(StorageFailure, match="which is not in its folder"):
        export_snapshot(str(lake.root), tmp_path / "copy")
    expect_nothing(tmp_path / "copy")


def test_no_folder_is_made_for_a_file_of_others(lake: ThreeRuns, tmp_path: Path) -> None:
    table = catalog.table("span_errors_v1")
    place = location(str(lake.root), table.name)
    action = {
        "path": "../../../x/y",
        "partitionValues": {},
        "size": 4,
        "modificationTime": 0,
        "dataChange": True,
    }
    with entry_path(place, 0).open("a") as lines:
        lines.write(json.dumps({"add": action}) + "\n")
    target = tmp_path / "a" / "b" / "copy"
    with pytest.raises(StorageFailure, match="which is not in its folder"):
        copy_table(str(lake.root), str(target), table, 0, Commit("run"))
    # Neither there nor beside it: nothing was copied before it was seen.
    assert not (tmp_path / "a").exists()


def test_a_log_with_a_checkpoint_of_the_second_kind(lake: ThreeRuns, tmp_path: Path) -> None:
    """After a cleanup behind such a checkpoint, it is all there is."""
    root, name = str(lake.root), "run_manifest"
    place = location(root, name)
    newest, files = newest_version(root, name), {file.path for file in light_files(root, name)}
    assert newest > 1
    features = {"minReaderVersion": 3, "readerFeatures": [V2], "minWriterVersion": 7, "writerFeatures": [V2]}
    first = [json.loads(line) for line in entry_path(place, 0).read_text().splitlines()]
    changed = ({"protocol": features} if "protocol" in line else line for line in first)
    entry_path(place, 0).write_text("".join(json.dumps(line) + "\n" for line in changed))
    DeltaTable(place).create_checkpoint()
    log = Path(place, "_delta_log")
    (log / f"{newest:020}.checkpoint.parquet").rename(log / f"{newest:020}.checkpoint.{uuid4()}.parquet")
    (log / "_last_checkpoint").unlink()
    for version in range(newest):
        entry_path(place, version).unlink()
    assert {file.path for file in light_files(root, name)} == files
    assert [row.run_id for row in read_manifest(root)]
    copy = str(tmp_path / "copy")
    assert copied_bytes(root, name, newest) > 0
    copy_table(root, copy, catalog.table(name), newest, Commit("run"))
    assert read_manifest(copy) == read_manifest(root)
    with pytest.raises(StorageFailure, match=f"{name} at .* cannot be read"):
        have_same_content(root, name, newest, newest - 1)


# As users call it


def test_the_command(made: ThreeRuns, call: RunCommand, tmp_path: Path) -> None:
    root, target = str(made.root), str(tmp_path / "copy")
    code, out, err = call("export-snapshot", "--lake", root, "--run", made.runs[0][:-2], "--to", target)
    assert code == 0, err
    assert NODES in out
    assert f"run {made.runs[0]}, 2 repositories" in err
    assert "tables" in err
    code, out, _ = call("status", "--lake", target, "--format", "json")
    assert (code, json.loads(out)["run_id"]) == (0, made.runs[0])
    assert call("verify", "--lake", target)[0] == 0
    query = ("callers", "two.g", "--repo-id", "a", "--format", "json")
    answers = [
        json.loads(call(*query, "--lake", each, *more)[1])
        for each, more in ((target, ()), (root, ("--as-of", made.runs[0])))
    ]
    assert answers[0]["rows"] == answers[1]["rows"] != []
    code, out, _ = call(
        "export-snapshot", "--lake", root, "--to", f"{target}2", "--form", "parquet", "--format", "json"
    )
    assert code == 0
    assert json.loads(out)["form"] == "parquet"
    assert call("export-snapshot", "--lake", root, "--to", target)[0] == 2
    assert call("export-snapshot", "--lake", root, "--to", f"{target}3", "--run", "x", "--as-of", "y")[0] == 2
    assert call("export-snapshot", "--lake", root)[0] == 2
    assert not Path(f"{target}3").exists()
