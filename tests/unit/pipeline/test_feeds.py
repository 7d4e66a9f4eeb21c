"""The change feeds decide what the steps after extract redo: with another feed the rows would be others."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from codeanatomy import catalog
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import location, newest_version
from codeanatomy.errors import StorageFailure
from codeanatomy.extract.scip.schema import Document, Index, Metadata, Occurrence
from codeanatomy.lake.cursors import read_cursors
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan import feeds
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.plan.run_plan import Plan
from codeanatomy.plan.steps import steps_of
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.run.build import build, plan
from support.edits import Tree, write_tree
from support.light_builds import KEPT, MODERN, clean_lake, order, refreshed
from support.marks import quick
from support.scip_indexes import index
from support.sessions import no_session

APP = "app"
NAMES = ("a", "b", "c", "d", "e", "f")
TREE = {f"{name}.py": f"def {name}():\n    return 1\n\n\n{name}()\n".encode() for name in NAMES}
LATER = ("normalize", "relate", "graph")
# By step, a table with rows of every file.
TABLES = {"normalize": "py_bc_blocks_norm_v1", "relate": "relate_programs_v1", "graph": "cpg_nodes"}


class Behind:
    """A lake whose extract has run after each of some edits, and the other steps have not."""

    def __init__(self, work: Path) -> None:
        self.source, self.lake, self.work = work / "source", work / "lake", work
        self.built = {name: newest_version(str(self.lake), name) for name in TABLES.values()}

    def extract(self, *names: str) -> None:
        """Edit some files and extract them."""
        for name in names:
            path = self.source / f"{name}.py"
            path.write_text(f"{path.read_text()}\n\ndef more_{len(path.read_text())}():\n    {name}()\n")
        refreshed(self.lake, {APP: self.source}, until="extract")

    def plan(self) -> Plan:
        return plan(order(self.lake, {APP: self.source}), Progress(io.StringIO()), impact=True)

    def redone(self) -> dict[str, set[str]]:
        """By step: the files of which it has written rows since the first build."""
        return {step: self._written(name) for step, name in TABLES.items()}

    def _written(self, name: str) -> set[str]:
        now, then = (light_files(str(self.lake), name, version) for version in (None, self.built[name]))
        new = {file.path for file in now} - {file.path for file in then}
        folder = location(str(self.lake), name)
        return {
            path
            for file in new
            for path in pq.ParquetFile(f"{folder}/{file}").read(["path"])["path"].to_pylist()
            if path is not None
        }

    def differences(self) -> dict[str, int]:
        clean = self.work / "clean"
        clean_lake(clean, {APP: self.source})
        return compare_lakes(str(self.lake), str(clean)).tables


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source and its lake, before the edits."""
    work = tmp_path_factory.mktemp("start")
    write_tree(work / "source", TREE)
    # What is redone is read from data files, which without vectors have copies of other rows, too.
    clean_lake(work / "lake", {APP: work / "source"}, MODERN)
    return work


@pytest.fixture
def behind(start: Path, tmp_path: Path) -> Behind:
    return Behind(Path(shutil.copytree(start, tmp_path / "work")))


def test_what_was_extracted_in_several_runs_is_redone_at_once(behind: Behind) -> None:
    for names in (("a",), ("c",), ("b", "a")):
        behind.extract(*names)
    (behind.source / "d.py").unlink()
    behind.extract()
    forecast = behind.plan()
    assert [forecast.step(step).refreshes for step in LATER] == [(APP,)] * 3
    assert len(forecast.pending[APP]) == 4
    assert {each.path: each.reason for each in forecast.impact[APP]} == {
        **dict.fromkeys(("a.py", "b.py", "c.py"), "changed"),
        "d.py": "removed",
    }
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {key: {"a.py", "b.py", "c.py"} for key in LATER}
    assert behind.differences() == {}
    assert refreshed(behind.lake, {APP: behind.source}).status == "unchanged"


@pytest.mark.system
def test_an_edit_on_top_of_what_was_extracted_before(behind: Behind) -> None:
    behind.extract("a")
    path = behind.source / "b.py"
    path.write_text(f"{path.read_text()}\nb()\n")
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {key: {"a.py", "b.py"} for key in LATER}
    assert behind.differences() == {}


@pytest.mark.system
def test_steps_may_stop_at_different_places(behind: Behind) -> None:
    behind.extract("a")
    refreshed(behind.lake, {APP: behind.source}, until="relate")
    assert behind.redone() == {"normalize": {"a.py"}, "relate": {"a.py"}, "graph": set()}
    behind.extract("b")
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {key: {"a.py", "b.py"} for key in LATER}
    assert behind.differences() == {}


@pytest.mark.parametrize("lost", quick(["repo_files_v1", "relations_v1"], 0))
def test_without_what_a_feed_says_rows_are_wrong(
    behind: Behind, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed that says nothing: what it would have said is not redone."""
    real = feeds.changed_owners

    def silent(root: str, name: str, *window: Any, **options: Any) -> frozenset[str]:
        return frozenset() if name == lost else real(root, name, *window, **options)

    monkeypatch.setattr(feeds, "changed_owners", silent)
    # The calls of c now lead elsewhere, so its relations change, too.
    write_tree(behind.source, {**TREE, "c.py": b"from a import a\n\na()\n"})
    refreshed(behind.lake, {APP: behind.source})
    write_tree(
        behind.source, {**TREE, "c.py": b"from a import a\n\na()\n", "a.py": b"from b import b as a\n"}
    )
    refreshed(behind.lake, {APP: behind.source})
    assert behind.differences()


def test_a_lost_feed_is_told_and_the_steps_run_in_full(behind: Behind) -> None:
    behind.extract("a")
    behind.extract("a")
    folder = Path(location(str(behind.lake), "repo_files_v1"))
    kept = {file.path for file in light_files(str(behind.lake), "repo_files_v1")}
    vacuumed = [path for path in folder.rglob("*.parquet") if str(path.relative_to(folder)) not in kept]
    assert vacuumed
    for path in vacuumed:
        path.unlink()
    made = behind.plan()
    assert [made.step(step).runs_for for step in LATER] == [(APP,)] * 3
    for step in ("normalize", "relate"):
        assert "was vacuumed" in made.step(step).repositories[0].why
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {step: set(TREE) for step in LATER}
    assert behind.differences() == {}


def test_cursors_are_at_the_pins_of_the_run_that_is_published(behind: Behind) -> None:
    def cursors() -> dict[str, dict[str, int]]:
        lake = Snapshot.open(str(behind.lake))
        runs = {name: row.run_id for name, row in lake.repositories.items()}
        return {step: each.versions for step, each in read_cursors(str(behind.lake), runs)[APP].items()}

    def pins() -> dict[str, int]:
        return {name: pin.version for name, pin in Snapshot.open(str(behind.lake)).pins.items()}

    before, built = cursors(), pins()
    assert before.keys() == set(LATER)
    for step in steps_of(catalog.TABLES)[1:]:
        assert before[step.name] == {name: built[name] for name in feeds.feeds_of(step.inputs)}
    behind.extract("a")
    assert cursors() == before
    refreshed(behind.lake, {APP: behind.source})
    assert all(versions == {name: pins()[name] for name in versions} for versions in cursors().values())


@pytest.mark.system
def test_relate_catches_up_with_normalize(behind: Behind) -> None:
    behind.extract("a")
    refreshed(behind.lake, {APP: behind.source}, until="normalize")
    assert [behind.plan().step(step).refreshes for step in LATER] == [(), (APP,), (APP,)]
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {step: {"a.py"} for step in LATER}
    assert behind.differences() == {}


@pytest.mark.system
def test_a_file_that_was_added_in_a_run_of_extract_alone(behind: Behind) -> None:
    (behind.source / "new.py").write_text("import a\n")
    behind.extract()
    assert [(each.path, each.reason) for each in behind.plan().impact[APP]] == [("new.py", "added")]
    refreshed(behind.lake, {APP: behind.source})
    assert behind.differences() == {}


def test_a_feed_that_is_not_in_the_policy(behind: Behind) -> None:
    off = "tables.relations_v1.write.enable_features=deletion_vectors"
    path = behind.source / "a.py"
    path.write_text(f"{path.read_text()}\na()\n")
    said = io.StringIO()
    build(order(behind.lake, {APP: behind.source}, off), Progress(said), no_session, started=KEPT)
    assert "graph runs for all files of app: the policy of relations_v1 does not enable" in said.getvalue()
    assert behind.redone() == {"normalize": {"a.py"}, "relate": {"a.py"}, "graph": set(TREE)}
    assert behind.differences() == {}


@pytest.mark.system
def test_cursors_that_are_damaged_cost_a_run_in_full(behind: Behind) -> None:
    behind.extract("a")
    for path in Path(location(str(behind.lake), "cdf_cursors")).rglob("*.parquet"):
        path.unlink()
    assert behind.plan().step("graph").runs_for == (APP,)
    refreshed(behind.lake, {APP: behind.source})
    assert behind.differences() == {}


@pytest.mark.system
def test_a_table_is_not_repaired_without_a_repository_that_is_behind(tmp_path: Path) -> None:
    lake, sources = tmp_path / "lake", {name: tmp_path / name for name in ("one", "two")}
    for source in sources.values():
        write_tree(source, TREE)
    clean_lake(lake, sources)
    (sources["two"] / "a.py").write_text("y = 2\n")
    refreshed(lake, {"two": sources["two"]}, until="extract")
    damaged = light_files(str(lake), "cpg_props")[0]
    Path(location(str(lake), "cpg_props"), damaged.path).unlink()
    with pytest.raises(StorageFailure, match="cpg_props is damaged or missing, and has rows of two too"):
        refreshed(lake, {"one": sources["one"]})
    refreshed(lake, sources)
    clean_lake(tmp_path / "clean", sources)
    assert compare_lakes(str(lake), str(tmp_path / "clean")).tables == {}


class Indexed(Behind):
    """The same with a SCIP index."""

    def __init__(self, work: Path, *documents: tuple[str, int], tree: Tree = TREE) -> None:
        self.scip = index(work / "index.scip", *documents)
        self.source, self.lake, self.work = work / "source", work / "lake", work
        write_tree(self.source, tree)
        clean_lake(self.lake, {APP: self.source}, MODERN, scip=self.scip)

    def build(self, until: str | None = None) -> None:
        refreshed(self.lake, {APP: self.source}, scip=self.scip, until=until)

    def differences(self) -> dict[str, int]:
        clean = self.work / "clean"
        shutil.rmtree(clean, ignore_errors=True)
        clean_lake(clean, {APP: self.source}, scip=self.scip)
        return compare_lakes(str(self.lake), str(clean)).tables


@pytest.mark.system
def test_an_index_and_diagnostics_of_files_with_other_relations(tmp_path: Path) -> None:
    bases = {
        "lib.py": b"class A: pass\nclass B(A): pass\n",
        "use.py": b"from lib import *\nclass C(A, B): pass\n",
    }
    indexed = Indexed(tmp_path, ("a.py", 0), tree={**TREE, **bases})
    (indexed.source / "lib.py").write_text("class A: pass\nclass B: pass\n")
    indexed.build("relate")
    indexed.build()
    assert indexed.differences() == {}


@pytest.mark.system
def test_documents_of_files_that_are_gone_since_extract_ran_alone(tmp_path: Path) -> None:
    indexed = Indexed(tmp_path, ("a.py", 0), ("b.py", 4))
    (indexed.source / "a.py").unlink()
    indexed.build("extract")
    indexed.build()
    assert indexed.differences() == {}
    indexed.scip = index(tmp_path / "index.scip", ("a.py", 0), ("b.py", 4), ("nowhere.py", 0))
    indexed.build("extract")
    indexed.build()
    assert indexed.differences() == {}


@pytest.mark.system
def test_an_index_that_is_dropped_in_a_run_of_extract_alone(tmp_path: Path) -> None:
    indexed = Indexed(tmp_path, ("a.py", 0), ("c.py", 99), tree={**TREE, "c.py": b"def c(:\n    f(\n"})
    indexed.scip = ScipChoice()
    indexed.build("extract")
    indexed.build()
    assert indexed.differences() == {}


@pytest.mark.system
def test_an_index_and_a_file_that_only_graph_has_to_redo(tmp_path: Path) -> None:
    """Relate has found a disagreement in it, which is not lost with the rows that normalize writes again."""
    first = b"def f0(): return 1\ndef f1(): return f0()\n"
    second = b"from m1 import f1\ndef f0(): return 1\ndef g(): return f0()\n"
    indexed = Indexed(tmp_path, ("m2.py", 1), tree={"m1.py": first, "m2.py": second, "m3.py": b"x = 1\n"})
    # The name `f0` in the last line of m2 is that of m1, says the index.
    symbol = "scip-python python app 0 `m1`/f0()."
    defined = Occurrence(range=[0, 4, 6], symbol=symbol, symbol_roles=1)
    used = Occurrence(range=[2, 16, 18], symbol=symbol)
    documents = [
        Document(relative_path=path, language="python", position_encoding=1, occurrences=[each])
        for path, each in (("m1.py", defined), ("m2.py", used))
    ]
    metadata = Metadata(tool_info={"name": "by-hand", "version": "1"})
    indexed.scip.given[APP].write_bytes(Index(metadata=metadata, documents=documents).SerializeToString())
    indexed.build()
    told = Snapshot.open(str(indexed.lake)).rows("relate_diagnostics_v1", ["path", "diag_code"]).to_pylist()
    assert {"path": "m2.py", "diag_code": "scip_disagrees"} in told
    (indexed.source / "m2.py").write_bytes(second + b"# c\n")
    indexed.build("relate")
    (indexed.source / "m3.py").write_bytes(b"x = 1\nz = 2\n")
    indexed.build()
    assert indexed.differences() == {}


@pytest.mark.parametrize("first", quick(("normalize", "extract"), 0))
def test_an_index_and_steps_that_work_on_other_files(first: str, tmp_path: Path) -> None:
    """Pass two, which normalizes with an index, sees all files that relate works on."""
    indexed = Indexed(tmp_path, ("a.py", 0), tree={**TREE, **{f"m{n}.py": b"x = 1\n" for n in range(4)}})
    for until in (first, "relate"):
        path = indexed.source / "m0.py"
        path.write_text(f"{path.read_text()}y = x\n")
        indexed.build(until)
    indexed.build()
    assert indexed.differences() == {}
    shutil.rmtree(indexed.lake)
    for until in ("normalize", "relate"):
        path.write_text(f"{path.read_text()}z = x\n")
        indexed.build(until)
    indexed.build()
    assert indexed.differences() == {}


def test_a_forecast_has_what_only_graph_has_to_redo(behind: Behind) -> None:
    behind.extract("a")
    refreshed(behind.lake, {APP: behind.source}, until="relate")
    assert [(each.path, each.reason) for each in behind.plan().impact[APP]] == [("a.py", "changed")]
