"""What `codeanatomy status` says: what is published, whether sources have changed, who writes."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import TableMissing
from codeanatomy.lake.engine_facts import EngineFacts
from codeanatomy.lake.lease import LeaseRow, acquire
from codeanatomy.query.status import lake_status as module
from codeanatomy.query.status.lake_status import LakeStatus, Writer, status
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.digest import source_digest
from support.commands import RunCommand, command_runner
from support.small_lakes import HASH, MINUTE, NOON, SmallLake

OPTIONS = ExtractOptions()
GRAPH = {"extract": HASH, "relate": HASH, "graph": HASH}
COUNTS = {"repo_files_v1": 9, "repo_file_blobs_v1": 7, "cpg_nodes": 1200, "cpg_edges": 3400}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    return folder


@pytest.fixture
def lake(tmp_path: Path, source: Path) -> SmallLake:
    """A lake of one repository."""
    made = SmallLake(tmp_path / "lake")
    made.publish("one", {"a": built_from(source)})
    return made


def built_from(source: Path) -> dict[str, object]:
    digest = source_digest(list_source(source, OPTIONS), OPTIONS)
    return {
        "repo_root": str(source),
        "source_digest": digest,
        "git_commit": "c" * 40,
        "plan_fingerprints": GRAPH,
        "row_counts": COUNTS,
    }


def state(lake: SmallLake) -> str:
    [row] = status(str(lake.root), OPTIONS).repositories
    return row.source_state


def test_what_is_published(lake: SmallLake, source: Path) -> None:
    lake.publish("two", {"b": {"row_counts": {"repo_file_blobs_v1": 1, "cpg_nodes": 5}}})
    found = status(str(lake.root), OPTIONS)
    assert (found.run_id, found.published_at) == ("two", NOON + MINUTE)
    first, second = found.repositories
    assert (first.repo_id, first.run_id, first.built_at) == ("a", "one", NOON)
    assert (first.source, first.git_commit) == (str(source), "c" * 40)
    assert (first.files, first.nodes, first.edges) == (7, 1200, 3400)
    # It has no graph: what was counted before is of no account.
    assert (second.repo_id, second.files, second.nodes, second.edges) == ("b", 1, None, None)
    assert second.source_state == "unknown"
    assert (found.writer, found.failed) == (None, None)
    before = status(str(lake.root), OPTIONS, as_of="one")
    assert (before.run_id, [row.repo_id for row in before.repositories]) == ("one", ["a"])
    cut = status(str(lake.root), OPTIONS, limit=1)
    assert (len(cut.repositories), cut.total) == (1, 2)


def test_a_source_is_compared_by_its_bytes(lake: SmallLake, source: Path) -> None:
    assert state(lake) == "unchanged"
    os.utime(source / "a.py", (1, 1))
    (source / "notes.txt").write_text("not Python")
    assert state(lake) == "unchanged"
    (source / "a.py").write_text("x = 2\n")
    assert state(lake) == "changed"
    (source / "a.py").write_text("x = 1\n")
    assert state(lake) == "unchanged"
    (source / "b.py").write_text("")
    assert state(lake) == "changed"
    shutil.rmtree(source)
    assert state(lake) == "gone"
    source.write_text("a file in its place")
    assert state(lake) == "unknown"


def test_other_options_read_another_source(lake: SmallLake) -> None:
    [row] = status(str(lake.root), ExtractOptions(exclude=("a.py",))).repositories
    assert row.source_state == "changed"


@pytest.mark.parametrize("root", [None, "", "relative/nowhere", "/nul\0", "/" + "x" * 5000])
def test_a_source_that_cannot_be_looked_at_is_unknown(tmp_path: Path, root: str | None) -> None:
    made = SmallLake(tmp_path)
    made.publish("one", {"a": {"repo_root": root, "source_digest": HASH}})
    assert state(made) == "unknown"


def test_a_relative_source_is_looked_for_here(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SmallLake(tmp_path / "lake")
    made.publish("one", {"a": {**built_from(source), "repo_root": source.name}})
    monkeypatch.chdir(tmp_path)
    assert state(made) == "unchanged"


def test_the_engine_is_that_of_the_newest_build(lake: SmallLake) -> None:
    assert status(str(lake.root), ExtractOptions()).engine_facts is None
    facts = EngineFacts("spark", "local[2]", "own", "4.2.0", "4.4.0")
    lake.publish("spark", {"a": msgspec.structs.asdict(facts)})
    # Maintenance has none.
    lake.publish("upkeep", {"a": {"mode": "maintenance"}})
    assert status(str(lake.root), ExtractOptions()).engine_facts == facts
    assert status(str(lake.root), ExtractOptions(), "upkeep").run_id == "upkeep"


def test_the_newest_run_that_failed_is_told(lake: SmallLake) -> None:
    lake.fail("two", {"a": "disk full"})
    found = status(str(lake.root), OPTIONS)
    assert found.run_id == "one"
    assert found.failed is not None
    assert (found.failed.run_id, found.failed.errors) == ("two", {"a": "disk full"})
    assert status(str(lake.root), OPTIONS, as_of="one").failed is None
    lake.publish("three", {"a": {}})
    assert status(str(lake.root), OPTIONS).failed is None


# Who writes


def lease(monkeypatch: pytest.MonkeyPatch, *, held: bool = True, dead: bool = False) -> None:
    """A lease as storage reads it."""
    row = LeaseRow(
        run_id="two",
        state="held" if held else "released",
        host="box",
        process="1",
        repo_ids=("a", "b"),
        acquired_at=NOON,
        heartbeat_at=NOON,
        ttl_seconds=120,
    )
    monkeypatch.setattr(module, "read_lease", lambda root: row)
    monkeypatch.setattr(module, "is_stale", lambda row, now: dead or row.state == "released")


def test_who_writes_is_told(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lease(monkeypatch)
    assert status(str(lake.root), OPTIONS).writer == Writer("two", "writing", "box", NOON, ("a", "b"))
    lease(monkeypatch, dead=True)
    assert status(str(lake.root), OPTIONS).writer == Writer("two", "dead", "box", NOON, ("a", "b"))
    lease(monkeypatch, held=False)
    assert status(str(lake.root), OPTIONS).writer is None


def test_the_lease_of_storage_is_read(lake: SmallLake) -> None:
    with acquire(str(lake.root), "two", ["a"], wait=False, report=str, base_run_id="one"):
        held = status(str(lake.root), OPTIONS).writer
    assert held is not None
    assert (held.run_id, held.state, held.repositories) == ("two", "writing", ("a",))
    assert status(str(lake.root), OPTIONS).writer is None


def test_a_lake_of_which_nothing_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SmallLake(tmp_path / "lake")
    with pytest.raises(TableMissing, match="never written"):
        status(str(made.root), OPTIONS)
    with monkeypatch.context() as patch:
        lease(patch)
        first = status(str(made.root), OPTIONS)
    assert (first.run_id, first.repositories, first.failed) == (None, (), None)
    assert first.writer is not None
    made.fail("one", {"a": "no"})
    found = status(str(made.root), OPTIONS)
    assert (found.run_id, found.published_at, found.repositories) == (None, None, ())
    assert found.failed is not None
    assert found.failed.errors == {"a": "no"}


# The command


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def test_the_command_shows_a_line_for_each_repository(lake: SmallLake, source: Path, run: RunCommand) -> None:
    code, out, err = run("status", "--lake", str(lake.root))
    header, line = out.splitlines()
    assert code == 0
    assert header.split()[:2] == ["repository", "source"]
    cells = ["a", "unchanged", "c" * 12, "7", "1,200", "3,400", "2026-05-01T12:00:00Z", "one", str(source)]
    assert line.split() == cells
    published = "published by run one at 2026-05-01T12:00:00Z: 1 repositories"
    assert err == f"{published}\nreaders of its tables: all\n"


def test_the_command_says_who_writes_and_what_failed(
    lake: SmallLake, run: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.fail("two", {"a": "disk\nfull"})
    lease(monkeypatch)
    _, _, err = run("status", "--lake", str(lake.root))
    assert "run two failed at 2026-05-01T12:01:00Z:\n  a: disk\\nfull\n" in err
    assert f"codeanatomy errors --lake {lake.root}\n" in err
    assert err.endswith("being written by run two on box since 2026-05-01T12:00:00Z: a, b\n")
    lease(monkeypatch, dead=True)
    assert "run two on box died before it finished" in run("status", "--lake", str(lake.root))[2]


def test_the_command_as_json(lake: SmallLake, run: RunCommand) -> None:
    code, out, err = run("status", "--lake", str(lake.root), "--as-of", "one", "--format", "json")
    assert (code, err) == (0, "")
    found = msgspec.json.decode(out, type=LakeStatus)
    assert found == status(str(lake.root), OPTIONS)
    assert found.published_at == datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_the_command_uses_the_settings(lake: SmallLake, run: RunCommand) -> None:
    flag = "--set=extract.exclude=a.py"
    assert "changed" in run(flag, "status", "--lake", str(lake.root))[1].splitlines()[1].split()


def test_the_command_where_nothing_is_published(tmp_path: Path, run: RunCommand) -> None:
    code, out, err = run("status", "--lake", "nowhere")
    assert (code, out) == (6, "")
    assert "never written" in err
    SmallLake(tmp_path / "lake").fail("one", {"a": "no"})
    code, out, err = run("status", "--lake", "lake")
    assert (code, out) == (0, "")
    assert err.startswith("nothing is published\nrun one failed")
