"""A lake with damaged files: a build makes again what cannot be read, and `status` names it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codeanatomy import catalog
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.delta.log.replay import LOG
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import StorageFailure, VersionGone
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.plan.run_plan import lake_state
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.status.lake_status import status
from support.edits import write_tree
from support.light_builds import clean_lake, refreshed
from support.marks import quick

APP = "app"
TREE = {
    "shop/__init__.py": b"from shop.cart import total\n",
    "shop/cart.py": b"def total(prices):\n    return sum(prices)\n",
    "main.py": b"from shop import total\n\ntotal([1])\n",
}


class Made:
    """A lake after two runs, its source, and a lake of a clean build."""

    def __init__(self, work: Path) -> None:
        self.lake, self.source, self.clean = work / "lake", work / "source", work / "clean"

    def build(self, **options: object) -> str:
        return refreshed(self.lake, {APP: self.source}, **options).status

    def damaged(self) -> tuple[str, ...]:
        return status(str(self.lake), ExtractOptions()).damaged

    def differences(self) -> dict[str, int]:
        return compare_lakes(str(self.lake), str(self.clean)).tables

    def data(self, name: str) -> Path:
        """The largest data file of a table."""
        file = max(light_files(str(self.lake), name), key=lambda each: each.size_bytes)
        return Path(location(str(self.lake), name), file.path)

    def entry(self, name: str, number: int) -> Path:
        """A log entry of a table; -1 is the newest."""
        return sorted(Path(location(str(self.lake), name), LOG).glob("*.json"))[number]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Made(tmp_path_factory.mktemp("start"))
    write_tree(made.source, TREE)
    clean_lake(made.lake, {APP: made.source})
    (made.source / "main.py").write_text("from shop import total\n\ntotal([2, 3])\n")
    refreshed(made.lake, {APP: made.source})
    clean_lake(made.clean, {APP: made.source})
    return made.lake.parent


@pytest.fixture
def made(start: Path, tmp_path: Path) -> Made:
    shutil.copytree(start / "lake", tmp_path / "lake")
    for name in ("source", "clean"):
        (tmp_path / name).symlink_to(start / name)
    # As the path of the source was when it was built.
    made = Made(tmp_path)
    made.source = start / "source"
    return made


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def empty(path: Path) -> None:
    path.write_bytes(b"")


HARMS = (remove, cut, zero, empty)


@pytest.mark.parametrize(
    ("name", "harm"),
    quick([(name, harm) for name in ("cpg_nodes", "repo_files_v1", "relations_v1") for harm in HARMS], 1, 6),
)
def test_a_damaged_data_file_is_made_again(made: Made, name: str, harm: Callable[[Path], None]) -> None:
    assert made.damaged() == ()
    harm(made.data(name))
    assert made.damaged() == (name,)
    assert made.build() == "succeeded"
    assert made.damaged() == ()
    assert made.differences() == {}
    assert made.build() == "unchanged"


@pytest.mark.parametrize(
    ("name", "number", "harm"),
    quick(
        [
            (name, number, harm)
            for name in ("cpg_edges", "repo_files_v1")
            for number in (0, -1)
            for harm in HARMS
        ],
        4,
        10,
    ),
)
def test_a_damaged_log_begins_anew(made: Made, name: str, number: int, harm: Callable[[Path], None]) -> None:
    before = Snapshot.open(str(made.lake))
    harm(made.entry(name, number))
    assert made.damaged() == (name,)
    assert made.build() == "succeeded"
    assert made.damaged() == ()
    assert made.differences() == {}
    after = Snapshot.open(str(made.lake))
    # No number of a version is used twice: the older run never shows rows of another one.
    assert after.pin(name).version > before.pin(name).version
    with pytest.raises(VersionGone, match="cannot be read any more"):
        before.rows(name, ["repo_id"])
    # What changes later is refreshed as always.
    (made.lake.parent / "source").unlink()
    made.source = Path(shutil.copytree(made.source, made.lake.parent / "source"))
    (made.source / "shop/cart.py").unlink()
    assert made.build() == "succeeded"
    made.clean.unlink()
    clean_lake(made.clean, {APP: made.source})
    assert made.differences() == {}


def test_a_table_whose_folder_is_gone_is_made_again(made: Made) -> None:
    before = Snapshot.open(str(made.lake))
    shutil.rmtree(location(str(made.lake), "cpg_nodes"))
    assert made.build() == "succeeded"
    assert made.differences() == {}
    with pytest.raises(VersionGone):
        before.rows("cpg_nodes", ["repo_id"])


def test_an_entry_that_a_killed_run_has_left_empty(made: Made) -> None:
    name = "cpg_nodes"
    newest = made.entry(name, -1)
    newest.with_name(f"{int(newest.stem) + 1:020}.json").write_bytes(b"")
    assert made.damaged() == ()
    assert made.build() == "succeeded"
    assert made.differences() == {}


def test_a_log_that_no_run_has_published(tmp_path: Path) -> None:
    made = Made(tmp_path)
    write_tree(made.source, TREE)
    entry = Path(location(str(made.lake), "cpg_nodes"), LOG, f"{0:020}.json")
    entry.parent.mkdir(parents=True)
    entry.write_bytes(b"")
    assert made.build() == "succeeded"
    clean_lake(made.clean, {APP: made.source})
    assert made.differences() == {}


@pytest.mark.parametrize("name", ["cdf_cursors", "delta_mutations"])
@pytest.mark.parametrize("is_log", [True, False])
def test_damaged_records_begin_anew(made: Made, name: str, *, is_log: bool) -> None:
    zero(made.entry(name, 0) if is_log else made.data(name))
    assert name in lake_state(str(made.lake), catalog.TABLES).lost_records
    assert made.build() == "succeeded"
    assert lake_state(str(made.lake), catalog.TABLES).lost_records == {}
    assert made.differences() == {}
    assert made.build() == "unchanged"


def test_a_damaged_lease_begins_anew(made: Made) -> None:
    cut(made.entry("run_lease", -1))
    assert made.build() == "unchanged"
    assert made.build(full=True) == "succeeded"
    assert made.differences() == {}


@pytest.mark.parametrize("is_log", [True, False])
def test_a_damaged_manifest_needs_a_full_build(made: Made, *, is_log: bool) -> None:
    zero(made.entry("run_manifest", -1) if is_log else made.data("run_manifest"))
    with pytest.raises(StorageFailure, match=r"run_manifest .* is damaged") as refused:
        made.build()
    assert "codeanatomy build --full" in refused.value.hint
    assert made.build(full=True) == "succeeded"
    assert made.differences() == {}
    assert len(recorded_runs(str(made.lake))) == 1


@pytest.mark.parametrize("name", ["cpg_nodes", "repo_files_v1"])
def test_a_full_build_reads_no_damaged_row(made: Made, name: str) -> None:
    content = made.data(name)
    whole = bytearray(content.read_bytes())
    # Its begin and end are as they were: only a reader of its rows can tell.
    whole[8 : len(whole) // 3] = bytes(len(whole) // 3 - 8)
    content.write_bytes(whole)
    assert made.build() == "unchanged"
    with pytest.raises(StorageFailure) as refused:
        made.differences()
    assert "codeanatomy build" in refused.value.hint
    assert made.build(full=True) == "succeeded"
    assert made.differences() == {}
