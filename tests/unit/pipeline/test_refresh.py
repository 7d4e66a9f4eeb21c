"""Refreshes: which files a change makes a build redo, and that the rows are then those of a clean build.

A case is a small repository, an edit of it and the files that are redone for it, with the reason for each. A
clean lake is built beside every refreshed one, by the same code and from nothing (`clean`).
"""

from __future__ import annotations

import importlib
import io
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from codeanatomy import catalog
from codeanatomy.delta.read.light import light_files, light_table, logged_paths
from codeanatomy.delta.read.open_table import location
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.tools.pyrefly import find_pyrefly
from codeanatomy.lake.lease import Lease, LeaseRow, acquire
from codeanatomy.lake.manifest import RunManifest, read_manifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline import drive_files
from codeanatomy.pipeline.group_build import GroupBuild
from codeanatomy.plan import steps
from codeanatomy.plan.build_request import TypesChoice
from codeanatomy.plan.run_plan import LakeState, Plan
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import TABLES, compare_lakes
from codeanatomy.query.walks.entry_points import read_entry_points
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS
from codeanatomy.run import build as building
from codeanatomy.run.build import Prepared, plan
from codeanatomy.run.report import BuildReport
from support.archives import zip_bytes
from support.ask_lake import reader_of
from support.edits import GARBAGE, Tree, write_tree
from support.light_builds import MODERN, clean_lake, order, refreshed
from support.marks import quick
from support.scip_indexes import index

APP = "app"
NEW = ("added", "changed", "removed")
EXTRACTED = tuple(
    table.name
    for table in TABLES
    if table.stage == "extract" and table.name not in ("scip_index_v1", "type_checker_files_v1")
)
# What a file says of the repository as a whole has no owner, and is replaced where it differs.
GRAPHED = tuple(table.name for table in TABLES if table.stage == "graph")

Files = Mapping[str, str | bytes | None]


class Case(NamedTuple):
    """An edit, and the files that are redone."""

    before: Files
    edit: Files
    redone: dict[str, str]


def tree_of(files: Files) -> Tree:
    """Texts as bytes; without the margin that they have here."""
    return {
        path: content if isinstance(content, bytes) else dedent(content).lstrip("\n").encode()
        for path, content in files.items()
        if content is not None
    }


class Edited:
    """A repository that is edited, its lake, and a clean one of each state.

    The lake has deletion vectors: without them, data files have copies of rows that were not redone.
    """

    def __init__(self, work: Path, files: Files, **asked: Any) -> None:
        self.work, self.asked = work, asked
        self.source, self.lake = work / "source", work / "lake"
        self.tree = tree_of(files)
        self.cleaned = 0
        write_tree(self.source, self.tree)
        if not self.lake.exists():
            clean_lake(self.lake, self.sources, MODERN, **asked)

    def copied(self, work: Path) -> Edited:
        """The same in another folder."""
        shutil.copytree(self.lake, work / "lake")
        return Edited(work, self.tree, **self.asked)

    @property
    def sources(self) -> dict[str, Path]:
        return {APP: self.source}

    def edit(self, files: Files) -> None:
        gone = {path for path, content in files.items() if content is None}
        self.tree = {
            path: content for path, content in (self.tree | tree_of(files)).items() if path not in gone
        }
        write_tree(self.source, self.tree, list(files))

    def refreshed(self, files: Files, *settings: str) -> BuildReport:
        """The report of a build after an edit."""
        self.edit(files)
        return refreshed(self.lake, self.sources, *settings, **self.asked)

    def expect_clean(self) -> Path:
        """The lake has the rows and the counts of a clean one, which is returned."""
        self.cleaned += 1
        clean = self.work / f"clean-{self.cleaned}"
        clean_lake(clean, self.sources, **self.asked)
        expect_equal(self.lake, clean)
        return clean

    @property
    def row(self) -> RunManifest:
        return Snapshot.open(str(self.lake)).repositories[APP]

    def versions(self) -> dict[str, int]:
        return {name: pin.version for name, pin in Snapshot.open(str(self.lake)).pins.items()}

    def redone(self, run_id: str) -> dict[str, str]:
        """Why each file was redone, as a run has recorded it."""
        found = light_table(str(self.lake), "refresh_impact", ["run_id", "path", "reason"]).to_pylist()
        return {row["path"]: row["reason"] for row in found if row["run_id"] == run_id}


def expect_equal(lake: Path, clean: Path) -> None:
    ours, theirs = (Snapshot.open(str(each)) for each in (lake, clean))
    found = compare_lakes(ours, theirs)
    assert not found.tables, (found.tables, found.differences[:5])
    # The failures of older runs stay in their table.
    names = theirs.pins.keys() - {FAILURES}
    assert {name: ours.pins[name].rows or 0 for name in names} == {
        name: theirs.pins[name].rows or 0 for name in names
    }
    for repo_id, row in theirs.repositories.items():
        here = ours.repositories[repo_id]
        for name in (*names, FAILURES):
            assert here.row_counts.get(name, 0) == row.row_counts.get(name, 0), name
        assert here.error_counts == row.error_counts


def rows_of(lake: Snapshot, name: str, paths: Mapping[str, str]) -> tuple[int, int]:
    """The published rows of a table that belong to files, and those that belong to none."""
    owner = catalog.table(name).owner or ""
    found = lake.rows(name, [owner]).column(owner)
    ids = {file_id(APP, path) for path in paths}
    return sum(each in ids for each in found.to_pylist()), pc.sum(pc.is_null(found)).as_py() or 0


def rewritten(lake: Snapshot, name: str, files: Mapping[str, str]) -> set[int]:
    """How many rows a table gets when files are redone: perhaps with what belongs to no file."""
    owned, unowned = rows_of(lake, name, files)
    return {owned, owned + unowned} if name in GRAPHED else {owned}


def files_written(edited: Edited, before: dict[str, int]) -> dict[str, set[str]]:
    """By table, the files that have rows in the data files that it has got since."""
    lake = str(edited.lake)
    paths = {file_id(APP, path): path for path in edited.tree}
    written = {}
    for name, version in edited.versions().items():
        owner = catalog.table(name).owner
        if owner is not None and version != before[name]:
            old = {file.path for file in light_files(lake, name, before[name])}
            new = [file.path for file in light_files(lake, name, version) if file.path not in old]
            tables = [pq.read_table(f"{location(lake, name)}/{path}", columns=[owner]) for path in new]
            owners = {each for rows in tables for each in rows.column(owner).to_pylist()}
            written[name] = {paths[each] for each in owners - {None}}
    return written


def expect_only(edited: Edited, report: BuildReport, before: dict[str, int], redone: dict[str, str]) -> None:
    """What was written: all rows of the files that are redone; nothing else got a version."""
    edits = {path: reason for path, reason in redone.items() if reason in NEW}
    others = {path: reason for path, reason in redone.items() if reason not in NEW}
    written_files, lake = files_written(edited, before), Snapshot.open(str(edited.lake))
    for name, version in edited.versions().items():
        if name == FAILURES:
            continue
        written = report.tables[name].rows if name in report.tables else 0
        assert version == before[name] + (name in report.tables), name
        is_own = catalog.table(name).stage in ("extract", "normalize")
        assert written_files.get(name, set()) <= (edits if is_own else redone).keys(), name
        if is_own:
            assert written in rewritten(lake, name, edits), name
        elif name == RELATIONS:
            # An edited file may have the relations that it had.
            least, most = (rows_of(lake, name, files)[0] for files in (others, redone))
            assert least <= written <= most, name
        elif name != DIAGNOSTICS:
            assert written in rewritten(lake, name, redone), name


CASES = {
    "the body of a function, of the same length": Case(
        {
            "lib.py": """
                def f():
                    return 1


                def g():
                    return 2
                """,
            "use.py": """
                from lib import f, g

                f()
                g()
                """,
            "other.py": """
                import use
                """,
        },
        {
            "lib.py": """
                def f():
                    return 9


                def g():
                    return 2
                """,
        },
        {"lib.py": "changed"},
    ),
    "the body of a function, with others below": Case(
        {
            "lib.py": """
                def f():
                    return 1


                def g():
                    return 2
                """,
            "use.py": """
                from lib import g

                g()
                """,
            "other.py": """
                import use
                """,
        },
        {
            "lib.py": """
                def f():
                    return 1000


                def g():
                    return 2
                """,
        },
        {"lib.py": "changed"},
    ),
    "a comment at the end": Case(
        {"lib.py": "def f():\n    return 1\n", "use.py": "from lib import f\nf()\n"},
        {"lib.py": "def f():\n    return 1\n# Done.\n\n\n"},
        {"lib.py": "changed"},
    ),
    "a new file has the name that was missing": Case(
        {"use.py": "from lib import helper\nhelper()\n", "other.py": "import use\n"},
        {"lib.py": "def helper():\n    pass\n"},
        {"lib.py": "added", "use.py": "resolved"},
    ),
    "a file gets the name that was missing": Case(
        {"use.py": "from lib import f, helper\nhelper(f)\n", "lib.py": "def f():\n    pass\n"},
        {"lib.py": "def f():\n    pass\ndef helper():\n    pass\n"},
        {"lib.py": "changed", "use.py": "resolved"},
    ),
    "a module is deleted": Case(
        {"use.py": "import lib\nlib.f()\n", "lib.py": "def f():\n    pass\n", "other.py": "import use\n"},
        {"lib.py": None},
        {"lib.py": "removed", "use.py": "lost"},
    ),
    "a module is renamed": Case(
        {
            "use.py": "import lib\nlib.f()\n",
            "lib.py": "def f():\n    pass\n",
            "late.py": "import tool\ntool.f()\n",
        },
        {"lib.py": None, "tool.py": "def f():\n    pass\n"},
        {"lib.py": "removed", "tool.py": "added", "use.py": "lost", "late.py": "resolved"},
    ),
    "a file moves to another package": Case(
        {
            "one/__init__.py": "",
            "two/__init__.py": "",
            "one/lib.py": "from . import other\ndef f():\n    pass\n",
            "one/other.py": "",
            "use.py": "from one.lib import f\nf()\n",
        },
        {"one/lib.py": None, "two/lib.py": "from . import other\ndef f():\n    pass\n"},
        {"one/lib.py": "removed", "two/lib.py": "added", "use.py": "lost"},
    ),
    "a module becomes a package": Case(
        {"lib.py": "def f():\n    pass\n", "use.py": "from lib import f\nf()\n", "other.py": "import use\n"},
        {"lib.py": None, "lib/__init__.py": "def f():\n    pass\n"},
        {"lib.py": "removed", "lib/__init__.py": "added", "use.py": "import"},
    ),
    "the source of a star import gets a name": Case(
        {"lib.py": "def f():\n    pass\n", "use.py": "from lib import *\nf()\ng()\n"},
        {"lib.py": "def f():\n    pass\ndef g():\n    pass\n"},
        {"lib.py": "changed", "use.py": "resolved"},
    ),
    "the source of a star import loses a name": Case(
        {"lib.py": "def f():\n    pass\ndef g():\n    pass\n", "use.py": "from lib import *\nf()\ng()\n"},
        {"lib.py": "def f():\n    pass\n"},
        {"lib.py": "changed", "use.py": "lost"},
    ),
    "a later star import brings the name": Case(
        {
            "one.py": "def f():\n    pass\n",
            "two.py": "def g():\n    pass\n",
            "use.py": "from one import *\nfrom two import *\nf()\n",
        },
        {"two.py": "def f():\n    pass\n"},
        {"two.py": "changed", "use.py": "star_import"},
    ),
    "__all__ lists another name": Case(
        {
            "lib.py": "__all__ = ['f']\ndef f():\n    pass\ndef g():\n    pass\n",
            "use.py": "from lib import *\ng()\n",
            "other.py": "from lib import f\nf()\n",
        },
        {"lib.py": "__all__ = ['g']\ndef f():\n    pass\ndef g():\n    pass\n"},
        {"lib.py": "changed", "use.py": "resolved"},
    ),
    "a re-export of a re-export leads elsewhere": Case(
        {
            "deep.py": "def f():\n    pass\ndef g():\n    pass\n",
            "middle/__init__.py": "from deep import f as h\n",
            "top.py": "from middle import h\n",
            "use.py": "from top import h\nh()\n",
        },
        {"middle/__init__.py": "from deep import g as h\n"},
        {"middle/__init__.py": "changed", "top.py": "import", "use.py": "import"},
    ),
    "a base class gets a method": Case(
        {
            "base.py": "class Base:\n    pass\n",
            "sub.py": "from base import Base\nclass Sub(Base):\n    pass\n",
            "use.py": "from sub import Sub\nSub().run()\n",
        },
        {"base.py": "class Base:\n    def run(self):\n        pass\n"},
        {"base.py": "changed", "use.py": "resolved"},
    ),
    "a method is overridden in the middle": Case(
        {
            "top.py": "class Top:\n    def run(self):\n        pass\n",
            "middle.py": "from top import Top\nclass Middle(Top):\n    no = 0000000000000000000\n",
            "low.py": "from middle import Middle\nclass Low(Middle):\n    pass\n",
            "use.py": "from low import Low\nLow().run()\n",
        },
        {"middle.py": "from top import Top\nclass Middle(Top):\n    def run(self):\n        0\n"},
        {"middle.py": "changed", "use.py": "value"},
    ),
    "all that changes is what there is to complain about": Case(
        {
            "tops.py": "class A:\n    pass\nclass B(A):\n    pass\n",
            "use.py": "from tops import A, B\nclass C(A, B):\n    pass\n",
        },
        {"tops.py": "class A:\n    pass\nclass B( ):\n    pass\n"},
        {"tops.py": "changed", "use.py": "reference"},
    ),
    "a fixture of conftest gives something else": Case(
        {
            "kinds.py": "class A:\n    def m(self): ...\nclass B:\n    def m(self): ...\n",
            "conftest.py": "import pytest\nimport kinds\n@pytest.fixture\ndef x():\n    return kinds.A()\n",
            "test_x.py": "def test_m(x):\n    x.m()\n",
            "other.py": "def test_m(x):\n    x.m()\n",
        },
        {"conftest.py": "import pytest\nimport kinds\n@pytest.fixture\ndef x():\n    return kinds.B()\n"},
        {"conftest.py": "changed", "test_x.py": "value"},
    ),
    "a nearer conftest is added": Case(
        {
            "conftest.py": "import pytest\n@pytest.fixture\ndef x():\n    return []\n",
            "deep/test_x.py": "def test_m(x):\n    x.append(1)\n",
        },
        {"deep/conftest.py": "import pytest\n@pytest.fixture\ndef x():\n    return {}\n"},
        {"deep/conftest.py": "added", "deep/test_x.py": "value"},
    ),
    "a function returns something else": Case(
        {
            "kinds.py": """
                class A:
                    def m(self):
                        pass


                class B:
                    def m(self):
                        pass
                """,
            "make.py": "from kinds import A, B\ndef f():\n    return A()\n",
            "use.py": "from make import f\nx = f()\nx.m()\n",
        },
        {"make.py": "from kinds import A, B\ndef f():\n    return B()\n"},
        {"make.py": "changed", "use.py": "value"},
    ),
    "another callback is stored": Case(
        {
            "box.py": "class Box:\n    def __init__(self, act):\n        self.act = act\n"
            "    def run(self):\n        self.act()\n",
            "acts.py": "def one():\n    pass\ndef two():\n    pass\n",
            "fill.py": "from acts import one, two\nfrom box import Box\nBox(one).run()\n",
        },
        {"fill.py": "from acts import one, two\nfrom box import Box\nBox(two).run()\n"},
        {"fill.py": "changed", "box.py": "value"},
    ),
    "another decorator": Case(
        {
            "deco.py": """
                def one(f):
                    return f


                def two(f):
                    def inner():
                        return f()

                    return inner
                """,
            "lib.py": "from deco import one, two\n@one\ndef g():\n    pass\n",
            "use.py": "from lib import g\ng()\n",
        },
        {"lib.py": "from deco import one, two\n@two\ndef g():\n    pass\n"},
        {"lib.py": "changed", "deco.py": "resolved", "use.py": "value"},
    ),
    "another name for an import": Case(
        {"lib.py": "def f():\n    pass\n", "use.py": "import lib as a\na.f()\n", "other.py": "import use\n"},
        {"use.py": "import lib as b\nb.f()\n"},
        {"use.py": "changed"},
    ),
    "a file of another encoding": Case(
        {
            "lib.py": "# -*- coding: utf-8 -*-\nname = 'ä'\ndef f():\n    pass\n",
            "use.py": "from lib import f\nf()\n",
        },
        {"lib.py": "# -*- coding: latin1 -*-\nname = 'ä'\ndef f():\n    pass\n".encode("latin-1")},
        {"lib.py": "changed"},
    ),
    "a stub beside a module": Case(
        {"lib.py": "def f():\n    pass\n", "use.py": "from lib import f\nf()\n"},
        {"lib.pyi": "def f() -> None: ...\n"},
        {"lib.pyi": "added"},
    ),
    "a package that had no __init__": Case(
        {"lib/part.py": "def f():\n    pass\n", "use.py": "import lib\nfrom lib.part import f\nf()\n"},
        {"lib/__init__.py": "x = 1\n"},
        {"lib/__init__.py": "added", "use.py": "import"},
    ),
}


# All of them are in `make test-system`.
QUICK = frozenset({"a module is deleted"})


def test_quick_cases_are_cases() -> None:
    assert CASES.keys() >= QUICK


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=() if name in QUICK else pytest.mark.system)
        for name, case in CASES.items()
    ],
)
def test_what_a_change_reaches_is_redone(case: Case, tmp_path: Path) -> None:
    edited = Edited(tmp_path, case.before)
    before = edited.versions()
    report = edited.refreshed(case.edit)
    assert edited.redone(report.run_id) == case.redone
    expect_only(edited, report, before, case.redone)
    edited.expect_clean()


# A module that many files use, each in another way.
LIBRARY = """\
LIMIT = 3


class Base:
    def run(self, step):
        return step


def twice(value, times=2):
    return value * times


def make():
    return Base()


apply = lambda action: action(LIMIT)
names = [name for name in ("a", "b")]
"""
USERS: Files = {
    "calls.py": "from lib import twice\n\ntwice(1)\n",
    "keyword.py": "import lib\n\nlib.twice(value=1, times=3)\n",
    "imports.py": "from lib import twice\n",
    "exports.py": "from lib import twice as double\n\n__all__ = ['double']\n",
    "again.py": "from exports import double\n\ndouble(2)\n",
    "passes.py": "from lib import apply, twice\n\napply(twice)\n",
    "inherits.py": "from lib import Base\n\nclass Sub(Base):\n    def run(self, step):\n"
    "        return super().run(step)\n",
    "values.py": "from lib import make\n\nmake().run(1)\n",
    "reads.py": "import lib\n\nprint(lib.LIMIT, lib.names)\n",
    "annotated.py": "from lib import Base\n\ndef f(base: Base) -> Base:\n    return base\n",
    "apart.py": "import sys\n",
}
# Edits at the top of the module, and in the middle of it: everything below moves.
MOVES = {
    "a blank line": ("", "\n"),
    "a comment": ("", "# About this module.\n"),
    "a docstring": ("", '"""About this module."""\n'),
    "a function": ("", "def added(one, two):\n    return [one for _ in two]\n\n\n"),
    "a class": ("", "class Added:\n    def run(self):\n        return lambda: 1\n\n\n"),
    "a statement of a method": ("        return step\n", "        print(step)\n        return step\n"),
    "another layout": ("def twice(value, times=2):", "def twice(\n    value,\n    times=2,\n):"),
}
# Tables in which every file has rows.
EVERY = frozenset({"repo_files_v1", "ast_files_v1", "relate_programs_v1", *GRAPHED})


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Edited:
    """A lake that is copied, not written to."""
    return Edited(tmp_path_factory.mktemp("library"), {"lib.py": LIBRARY, **USERS})


@pytest.mark.parametrize("name", quick(MOVES, 3))
def test_what_moves_definitions_redoes_one_file_in_every_table(
    name: str, library: Edited, tmp_path: Path
) -> None:
    edited = library.copied(tmp_path)
    before = edited.versions()
    old, new = MOVES[name]
    text = LIBRARY.replace(old, new, 1) if old else new + LIBRARY
    # As bytes, which keep a blank line at the top.
    report = edited.refreshed({"lib.py": text.encode()})
    assert edited.redone(report.run_id) == {"lib.py": "changed"}
    written = files_written(edited, before)
    assert written.keys() >= EVERY
    # In other tables lib.py may have no rows.
    assert all(files <= {"lib.py"} for files in written.values()), written
    assert all(written[table] == {"lib.py"} for table in EVERY)
    edited.expect_clean()


@pytest.mark.system
def test_another_signature_redoes_the_files_whose_relations_differ(library: Edited, tmp_path: Path) -> None:
    edited = library.copied(tmp_path)
    before = edited.versions()
    report = edited.refreshed({"lib.py": LIBRARY.replace("(value, times=2)", "(first, times=2)")})
    callers = {"calls.py", "keyword.py", "again.py"}
    assert edited.redone(report.run_id).keys() == {"lib.py", *callers}
    written = files_written(edited, before)
    for table, files in written.items():
        stage = catalog.table(table).stage
        is_own = stage in ("extract", "normalize")
        assert files <= ({"lib.py"} if is_own else {"lib.py", *callers}), table
        assert files == {"lib.py", *callers} or table not in (RELATIONS, *GRAPHED), table
    edited.expect_clean()


# Something of everything, for what is not about one kind of change.
MIXED: Files = {
    "lib.py": "def f():\n    return 1\n\n\ndef g():\n    return f()\n",
    "use.py": "from lib import f, g\nfrom missing import h\n\nx = f()\ng(h)\nx()\n",
    "other.py": "import use\n\n\nclass Thing:\n    def run(self):\n        return use.x\n",
    "broken.py": "def broken(:\n",
    "garbage.py": GARBAGE,
    "README.md": "# Read me\n",
}
# The call of `x` has a target now.
LONGER: Files = {"lib.py": "def f():\n    made = g\n    return made\n\n\ndef g():\n    return f()\n"}
REACHED = {"lib.py": "changed", "use.py": "resolved"}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Edited:
    """A lake that is copied, not written to."""
    return Edited(tmp_path_factory.mktemp("mixed"), MIXED)


@pytest.fixture(scope="module")
def longer(mixed: Edited, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean lake of the same after an edit."""
    edited = mixed.copied(tmp_path_factory.mktemp("longer"))
    edited.edit(LONGER)
    clean_lake(edited.work / "clean", edited.sources)
    return edited.work / "clean"


@pytest.fixture
def edited(mixed: Edited, tmp_path: Path) -> Edited:
    return mixed.copied(tmp_path)


def log_of(lake: Path) -> dict[str, int]:
    """Every entry of every log of a lake, but of the lease."""
    found = sorted(lake.glob("**/_delta_log/*.json"))
    return {
        str(path.relative_to(lake)): path.stat().st_mtime_ns for path in found if "run_lease" not in str(path)
    }


@pytest.mark.parametrize("how", ["nothing", "touched", "other file"])
def test_nothing_is_written_where_nothing_changed(how: str, edited: Edited) -> None:
    if how == "touched":
        for path in edited.source.iterdir():
            os.utime(path, (1, 1))
    if how == "other file":
        edited.edit({"README.md": "# Read more\n", "notes.txt": "new\n"})
    before = log_of(edited.lake)
    for _ in range(2):
        report = refreshed(edited.lake, edited.sources)
        assert (report.status, report.tables) == ("unchanged", {})
        assert log_of(edited.lake) == before
    assert plan(order(edited.lake, edited.sources), Progress(io.StringIO()), impact=True).nothing_to_do


@pytest.mark.system
def test_after_a_refresh_there_is_nothing_to_do(edited: Edited, longer: Path) -> None:
    before = edited.versions()
    report = edited.refreshed(LONGER)
    assert edited.redone(report.run_id) == REACHED
    expect_only(edited, report, before, REACHED)
    expect_equal(edited.lake, longer)
    assert (edited.row.mode, edited.row.run_id) == ("incremental", report.run_id)
    logged = log_of(edited.lake)
    assert refreshed(edited.lake, edited.sources).status == "unchanged"
    assert log_of(edited.lake) == logged


@pytest.mark.system
def test_an_edit_its_undoing_and_the_edit_again(mixed: Edited, edited: Edited, longer: Path) -> None:
    edited.refreshed(LONGER)
    expect_equal(edited.lake, longer)
    report = edited.refreshed({"lib.py": MIXED["lib.py"]})
    assert edited.redone(report.run_id) == {"lib.py": "changed", "use.py": "lost"}
    expect_equal(edited.lake, mixed.lake)
    edited.refreshed(LONGER)
    expect_equal(edited.lake, longer)


@pytest.mark.system
def test_syntax_that_is_broken_and_mended(mixed: Edited, edited: Edited) -> None:
    report = edited.refreshed({"lib.py": "def f(:\n    return 1\n"})
    assert edited.redone(report.run_id) == {"lib.py": "changed", "use.py": "lost"}
    assert complaints(edited) == {"broken.py", "garbage.py", "lib.py"}
    expect_failures(edited)
    report = edited.refreshed({"lib.py": MIXED["lib.py"]})
    assert edited.redone(report.run_id) == {"lib.py": "changed", "use.py": "resolved"}
    assert complaints(edited) == {"broken.py", "garbage.py"}
    expect_equal(edited.lake, mixed.lake)
    expect_same_failures(edited, mixed.lake)


@pytest.mark.system
def test_failures_of_files_that_nobody_edited_are_told_by_the_new_run(edited: Edited) -> None:
    first = edited.row
    report = edited.refreshed(LONGER)
    assert failures(edited.lake, report.run_id) == failures(edited.lake, first.extract_run_id) != []
    assert report.errors == edited.row.error_counts == first.error_counts
    edited.refreshed({"use.py": GARBAGE, "broken.py": "fine = 1\n", "garbage.py": None})
    assert {path for path, *_ in failures(edited.lake, edited.row.extract_run_id)} == {"use.py"}
    expect_failures(edited)


def complaints(edited: Edited) -> set[str]:
    rows = Snapshot.open(str(edited.lake)).rows("diagnostics_norm_v1", ["path", "diag_severity"]).to_pylist()
    return {row["path"] for row in rows if row["diag_severity"] == "error"}


def failures(lake: Path, run_id: str) -> list[tuple[str, ...]]:
    columns = ["path", "extractor_name", "error_type", "run_id"]
    rows = Snapshot.open(str(lake)).rows(FAILURES, columns).to_pylist()
    return sorted(tuple(map(str, row.values()))[:-1] for row in rows if row["run_id"] == run_id)


def expect_failures(edited: Edited) -> None:
    """As `expect_clean`, and the newest run has the failures of a clean one."""
    expect_same_failures(edited, edited.expect_clean())


def expect_same_failures(edited: Edited, clean: Path) -> None:
    theirs = Snapshot.open(str(clean)).repositories[APP].extract_run_id
    assert failures(edited.lake, edited.row.extract_run_id) == failures(clean, theirs)


@pytest.mark.system
def test_a_file_that_cannot_be_opened_any_more(edited: Edited, tmp_path: Path) -> None:
    (edited.source / "lib.py").unlink()
    (edited.source / "lib.py").symlink_to(tmp_path / "nowhere")
    report = refreshed(edited.lake, edited.sources)
    assert edited.redone(report.run_id)["use.py"] == "lost"
    expect_failures(edited)


@pytest.mark.system
def test_the_first_file_of_an_empty_repository(tmp_path: Path) -> None:
    edited = Edited(tmp_path, {"README.md": "# Empty\n"})
    report = edited.refreshed({"a.py": "import b\n"})
    assert edited.redone(report.run_id) == {"a.py": "added"}
    edited.expect_clean()


@pytest.mark.parametrize("types", quick(["off", "auto"], 0))
def test_an_init_at_the_root_names_all_modules(types: TypesChoice, tmp_path: Path) -> None:
    files = {
        "cart.py": "from source.sub.price import tax\ndef total(): return tax()\n",
        "sub/__init__.py": "",
        "sub/price.py": "def tax(): return 1\n",
        "plain/tool.py": "from ..cart import total\n",
    }
    lake = Edited(tmp_path, files, types=types)

    def names() -> tuple[set[str], set[str]]:
        """The modules, and the files of callers of a function that is imported by its absolute name."""
        columns = ["relation_kind", "path", "dst_kind", "dst_qname"]
        relations = light_table(str(lake.lake), RELATIONS, columns).to_pylist()
        edges = (row for row in relations if row["relation_kind"] == "CALL_GRAPH")
        calls = (row for row in edges if row["dst_kind"] == "FUNCTION")
        modules = {row["dst_qname"] for row in relations if row["relation_kind"] == "DECLARES_MODULE"}
        return modules, {row["path"] for row in calls if row["dst_qname"].endswith("price.tax")}

    plain = {"cart", "sub", "sub.price", "plain.tool"}
    assert names() == (plain, set())
    report = lake.refreshed({"__init__.py": ""})
    assert {name: actions[APP] for name, actions in report.steps.items()} == dict.fromkeys(
        steps.STAGES, "refresh"
    )
    lake.expect_clean()
    assert names() == ({"source", *(f"source.{name}" for name in plain)}, {"cart.py"})
    assert report.repositories[APP].warnings == ()
    assert plan(order(lake.lake, lake.sources, types=types), Progress(io.StringIO())).nothing_to_do
    # The same files in a folder of another name are another package.
    lake.source = Path(shutil.move(lake.source, tmp_path / "other"))
    lake.refreshed({})
    lake.expect_clean()
    assert names() == ({"other", *(f"other.{name}" for name in plain)}, set())
    lake.refreshed({"__init__.py": None})
    lake.expect_clean()
    assert names()[0] == plain


@pytest.mark.system
def test_the_last_file_is_deleted(tmp_path: Path) -> None:
    edited = Edited(tmp_path, {"a.py": "import b\n", "README.md": "# Empty\n"})
    report = edited.refreshed({"a.py": None})
    assert edited.redone(report.run_id) == {"a.py": "removed"}
    edited.expect_clean()


@pytest.mark.system
def test_one_of_two_repositories_changes_then_both(tmp_path: Path) -> None:
    sources = {name: tmp_path / name for name in ("one", "two")}
    lake, clean = tmp_path / "lake", tmp_path / "clean"
    for source in sources.values():
        write_tree(source, tree_of(MIXED))
    clean_lake(lake, sources)
    before = Snapshot.open(str(lake))
    write_tree(sources["two"], tree_of({**MIXED, **LONGER}))
    report = refreshed(lake, sources)
    assert report.steps["graph"] == {"one": "skip", "two": "refresh"}
    assert report.repositories["one"].status == "unchanged"
    after = Snapshot.open(str(lake))
    assert after.repositories["one"] == before.repositories["one"]
    found = compare_lakes(after, before, ["one"])
    assert not found.tables
    impact = light_table(str(lake), "refresh_impact", ["run_id", "repo_id", "path"]).to_pylist()
    assert {(row["repo_id"], row["path"]) for row in impact if row["run_id"] == report.run_id} == {
        ("two", path) for path in REACHED
    }
    for source in sources.values():
        write_tree(source, tree_of({**MIXED, "lib.py": None, "new.py": "import lib\n"}))
    report = refreshed(lake, sources)
    assert report.steps["graph"] == {"one": "refresh", "two": "refresh"}
    clean_lake(clean, sources)
    expect_equal(lake, clean)
    assert refreshed(lake, sources).status == "unchanged"


ROUTES = {
    "base.py": "import unittest\n\n\nclass Base(unittest.TestCase): ...\n",
    "middle.py": "from base import Base\n\n\nclass Middle(Base): ...\n",
    "cases.py": "from middle import Middle\n\n\nclass Cases(Middle):\n    def test_it(self): ...\n",
    "jobs.py": "import ours\n\n\n@ours.job\ndef clean(): ...\n",
    "names.py": "JOB = 'jobs.clean'\n",
}
OUR_RULE = 'entry_points=[{"framework": "ours", "kind": "task", "call": ["ours.job"]}]'


def entries_of(lake: Path) -> set[tuple[str, str]]:
    return {(each.kind, each.symbol) for each in read_entry_points(reader_of(lake))}


def test_entry_points_follow_bases_and_definitions_of_other_files(tmp_path: Path) -> None:
    edited = Edited(tmp_path, ROUTES)
    assert entries_of(edited.lake) == {("test", "cases.Cases.test_it"), ("text", "jobs.clean")}
    edited.refreshed({"base.py": "class Base: ...\n"})
    assert entries_of(edited.lake) == {("text", "jobs.clean")}
    edited.refreshed({"jobs.py": "def tidy(): ...\n"})
    assert entries_of(edited.lake) == set()
    edited.expect_clean()


def test_entry_points_follow_packaging_files_and_what_these_name(tmp_path: Path) -> None:
    scripts = "[project.scripts]\nweb = '{}'\n"
    web = {"shop/__init__.py": "", "shop/web.py": "def run(): ...\ndef stop(): ...\n"}
    edited = Edited(tmp_path, {**web, "pyproject.toml": scripts.format("shop.web:run")})
    assert entries_of(edited.lake) == {("command", "shop.web.run")}
    edited.refreshed({"pyproject.toml": scripts.format("shop.web:stop")})
    assert entries_of(edited.lake) == {("command", "shop.web.stop")}
    edited.refreshed({"pyproject.toml": scripts.format("shop:start")})
    assert entries_of(edited.lake) == set()
    edited.refreshed({"shop/__init__.py": "from .web import run as start\n"})
    assert entries_of(edited.lake) == {("command", "shop.web.run")}
    edited.refreshed({"pyproject.toml": "[project\n"})
    assert entries_of(edited.lake) == set()
    edited.expect_clean()


def test_a_rule_of_the_user_is_a_setting(tmp_path: Path) -> None:
    edited = Edited(tmp_path, ROUTES)
    assert actions(edited, OUR_RULE)["graph"][1] == "settings changed"
    report = edited.refreshed({}, OUR_RULE)
    assert report.steps["graph"][APP] != "skip"
    assert report.steps["relate"] == {APP: "skip"}
    assert ("task", "jobs.clean") in entries_of(edited.lake)
    clean = tmp_path / "clean"
    clean_lake(clean, edited.sources, MODERN, OUR_RULE)
    expect_equal(edited.lake, clean)


@pytest.mark.system
def test_the_full_profile(tmp_path: Path) -> None:
    edited = Edited(tmp_path, MIXED, profile="full")
    before = edited.versions()
    report = edited.refreshed(LONGER)
    assert edited.redone(report.run_id) == REACHED
    expect_only(edited, report, before, REACHED)
    edited.expect_clean()


@pytest.mark.system
def test_several_processes_make_the_same_rows(edited: Edited, longer: Path) -> None:
    edited.refreshed(LONGER, "refresh.processes=3")
    expect_equal(edited.lake, longer)


@pytest.mark.system
def test_up_to_a_step(edited: Edited) -> None:
    edited.asked = {"until": "relate"}
    report = edited.refreshed(LONGER)
    assert report.steps == {name: {APP: "refresh"} for name in ("extract", "normalize", "relate")}
    assert "graph" not in edited.row.plan_fingerprints
    edited.expect_clean()
    edited.asked = {}
    assert actions(edited)["graph"] == ("refresh", f"{len(REACHED)} files in its change feeds since it ran")
    assert actions(edited)["relate"][0] == "skip"
    assert edited.refreshed({}).steps["graph"] == {APP: "refresh"}
    edited.expect_clean()


def actions(edited: Edited, *settings: str, **asked: Any) -> dict[str, tuple[str, str]]:
    """What a build would do, and why."""
    found = plan(order(edited.lake, edited.sources, *settings, **asked), Progress(io.StringIO()))
    return {step.name: (each.action, each.why) for step in found.steps for each in step.repositories}


def test_what_cannot_be_refreshed_is_built_anew(edited: Edited) -> None:
    edited.edit(LONGER)
    assert {action for action, _ in actions(edited).values()} == {"refresh"}
    assert actions(edited)["extract"][1] == "paths: 1 changed"
    for asked in (
        actions(edited, full=True),
        actions(edited, "refresh.max_share=0"),
        actions(edited, "refresh.max_share=0.1"),
        actions(edited, "extract.max_value_chars=77"),
    ):
        assert {action for action, _ in asked.values()} == {"run"}
    assert actions(edited, full=True)["extract"][1] == "the source changed, and --full was given"
    told = "1 of 5 paths changed: more than refresh.max_share"
    assert actions(edited, "refresh.max_share=0.19")["extract"] == ("run", told)
    assert actions(edited, "refresh.max_share=0.2")["extract"][0] == "refresh"


def test_a_changed_setting_is_told(edited: Edited) -> None:
    assert actions(edited, "extract.max_value_chars=77")["extract"] == ("run", "settings changed")
    found = actions(edited, profile="full")
    assert {name: action for name, (action, _) in found.items()} == {
        "extract": "skip",
        "normalize": "skip",
        "relate": "skip",
        "graph": "run",
    }


def test_only_a_step_with_other_rules_runs(edited: Edited, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = steps.code_digest
    edited.edit(LONGER)
    for changed, runs in {
        "graph": {"graph"},
        "normalize": {"normalize", "graph"},
        "relate": {"relate", "graph"},
        "extract": {"extract", "normalize", "relate", "graph"},
    }.items():
        monkeypatch.setattr(
            steps, "code_digest", lambda step, other=changed: "new" if step == other else digest(step)
        )
        assert {name for name, (action, _) in actions(edited).items() if action == "run"} == runs
        monkeypatch.undo()


@pytest.mark.system
def test_a_folder_in_the_place_of_a_file(edited: Edited) -> None:
    report = edited.refreshed({"lib.py": None, "lib.py/part.py": "import use\n"})
    redone = {"lib.py": "removed", "lib.py/part.py": "added", "use.py": "lost"}
    assert edited.redone(report.run_id) == redone
    edited.expect_clean()


@pytest.mark.system
def test_names_that_need_care(tmp_path: Path) -> None:
    work = tmp_path / "it's a lake"
    work.mkdir()
    before = {
        "näme's.py": "def f():\n    return 1\n",
        "sp ace/__init__.py": "",
        "sp ace/ü.py": "x = 1\n",
        "a%20b.py": "x = 1\n",
        "a b.py": "import sys\n",
    }
    edited = Edited(work, before)
    edit = {"näme's.py": "x = 2\n", "sp ace/ü.py": None, "a%20b.py": "x = 2\n"}
    report = edited.refreshed(edit)
    assert edited.redone(report.run_id).keys() == edit.keys()
    edited.expect_clean()


@pytest.mark.system
def test_an_archive_that_changes(tmp_path: Path) -> None:
    sources = {APP: tmp_path / "source.zip"}
    sources[APP].write_bytes(zip_bytes(tree_of(MIXED).items()))
    clean_lake(tmp_path / "lake", sources)
    sources[APP].write_bytes(zip_bytes(tree_of({**MIXED, **LONGER}).items()))
    report = refreshed(tmp_path / "lake", sources)
    assert report.steps["extract"] == {APP: "refresh"}
    assert report.tables["ast_files_v1"].rows == 1
    clean_lake(tmp_path / "clean", sources)
    expect_equal(tmp_path / "lake", tmp_path / "clean")


@pytest.mark.parametrize("meanwhile", quick(["nothing", "a run that wrote nothing", "a build"], 2))
def test_a_plan_is_made_again_if_anybody_has_had_the_lease(
    meanwhile: str, edited: Edited, longer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = building._make_plan
    # Whether each plan was made with the lease in hand.
    made: list[bool] = []
    leased: list[str] = []

    def noted(prepared: Prepared, left: LeaseRow | None) -> tuple[Plan, LakeState]:
        made.append(bool(leased))
        return planned(prepared, left)

    def late(root: str, run_id: str, repo_ids: Sequence[str], **asked: Any) -> Lease:
        with monkeypatch.context() as plain:
            plain.setattr(building, "_make_plan", planned)
            plain.setattr(building, "acquire", acquire)
            if meanwhile == "a build":
                refreshed(edited.lake, edited.sources)
        if meanwhile == "a run that wrote nothing":
            acquire(root, "other", repo_ids, **asked).release(keep_journal=False)
        leased.append(run_id)
        return acquire(root, run_id, repo_ids, **asked)

    monkeypatch.setattr(building, "_make_plan", noted)
    monkeypatch.setattr(building, "acquire", late)
    report = edited.refreshed(LONGER)
    assert made == [False] + ([] if meanwhile == "nothing" else [True])
    assert report.status == ("unchanged" if meanwhile == "a build" else "succeeded")
    monkeypatch.undo()
    expect_equal(edited.lake, longer)


@pytest.mark.system
def test_beside_a_repository_that_cannot_be_built(edited: Edited, longer: Path, tmp_path: Path) -> None:
    edited.edit(LONGER)
    report = refreshed(edited.lake, {**edited.sources, "none": tmp_path / "nowhere"})
    assert (report.status, report.repositories[APP].status) == ("failed", "succeeded")
    expect_equal(edited.lake, longer)
    assert refreshed(edited.lake, edited.sources).status == "unchanged"


def rewrite(source: Path) -> None:
    (source / "lib.py").write_text("def g():\n    return 55\n")


def remove(source: Path) -> None:
    (source / "lib.py").unlink()


def rewrite_another(source: Path) -> None:
    (source / "use.py").write_text("import lib\n")


@pytest.mark.parametrize(
    ("meanwhile", "again"),
    quick([(rewrite, set()), (remove, {"lib.py"}), (rewrite_another, {"use.py", "other.py"})], 0),
)
@pytest.mark.system
def test_a_source_that_changes_while_it_is_read(
    meanwhile: Callable[[Path], None], again: set[str], edited: Edited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made of a file is recorded as made of what was read; the rest is for the next build."""
    real = drive_files._extract

    def late(build: GroupBuild, *more: Any) -> Any:
        meanwhile(edited.source)
        return real(build, *more)

    with monkeypatch.context() as patched:
        patched.setattr(drive_files, "_extract", late)
        first = edited.refreshed(LONGER)
    report = refreshed(edited.lake, edited.sources)
    assert (edited.redone(report.run_id).keys() if report.run_id != first.run_id else set()) == again
    edited.expect_clean()
    assert refreshed(edited.lake, edited.sources).status == "unchanged"


class Died(Exception):
    """A run that ends here."""


def dying(
    monkeypatch: pytest.MonkeyPatch, place: str, call: int, problem: type[BaseException] = Died
) -> None:
    """Let a function that a refresh calls raise at one of its calls."""
    module, _, name = place.partition(":")
    owner = importlib.import_module(f"codeanatomy.{module}")
    *scopes, name = name.split(".")
    for scope in scopes:
        owner = getattr(owner, scope)
    real, calls = getattr(owner, name), itertools.count(1)

    def raising(*args: Any, **options: Any) -> Any:
        if next(calls) == call:
            raise problem
        return real(*args, **options)

    monkeypatch.setattr(owner, name, raising)


# A refresh commits 11 tables of extract, 8 of normalize, 3 of relate, 7 of graph.
PLACES = {
    "where files are read": ("pipeline.drive_files:_extract", 1),
    "at the sixth table": ("pipeline.commits:commit_files", 6),
    "before the tables of normalize": ("pipeline.drive_files:_commit_normalized", 1),
    "among the tables of normalize": ("pipeline.commits:commit_files", 15),
    "in the solve": ("pipeline.drive_solve:_solve", 1),
    "among the tables of relate": ("pipeline.commits:commit_files", 21),
    "in the stage of the graph": ("pipeline.drive_graph:_files_of_graph", 1),
    "before the tables of graph": ("pipeline.drive_graph:_refuse_collisions", 1),
    "among the tables of graph": ("pipeline.commits:commit_files", 26),
    "at what is recorded": ("run.build:record_artifacts", 1),
    "at publication": ("run.build:publish", 1),
}


@pytest.mark.parametrize("place", quick(PLACES, 1))
def test_a_build_over_what_a_dead_one_left(
    place: str, edited: Edited, longer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = edited.row
    with monkeypatch.context() as dead:
        dying(dead, *PLACES[place])
        with pytest.raises(Died):
            edited.refreshed(LONGER)
    assert edited.row == published
    report = refreshed(edited.lake, edited.sources)
    assert edited.redone(report.run_id) == REACHED
    expect_equal(edited.lake, longer)
    assert refreshed(edited.lake, edited.sources).status == "unchanged"


@pytest.mark.system
def test_dead_runs_over_dead_runs_and_another_edit(edited: Edited, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that succeeds is about another source than those that died."""
    edited.refreshed({"other.py": "import use\n"})
    with monkeypatch.context() as dead:
        dying(dead, "pipeline.commits:commit_files", 24)
        with pytest.raises(Died):
            edited.refreshed(LONGER)
    with monkeypatch.context() as dead:
        dying(dead, "run.build:publish", 1, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            edited.refreshed({"new.py": "import lib\n\nlib.f()\n"})
    assert edited.refreshed({"lib.py": MIXED["lib.py"], "broken.py": None}).status == "succeeded"
    edited.expect_clean()


@pytest.mark.system
def test_a_file_of_a_dead_run_keeps_its_diagnostics(edited: Edited, monkeypatch: pytest.MonkeyPatch) -> None:
    """The feed lists it: the dead run has changed its rows, and its roll back, too."""
    before = MIXED["broken.py"]
    with monkeypatch.context() as dead:
        dying(dead, "pipeline.drive_solve:_solve", 1)
        with pytest.raises(Died):
            edited.refreshed({"broken.py": f"{before}\n# more\n"})
    edited.refreshed({"broken.py": before, "other.py": "import lib\n\nlib.f()\n"})
    edited.expect_clean()


@pytest.mark.system
def test_a_dead_run_whose_edit_is_undone(
    mixed: Edited, edited: Edited, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dead:
        dying(dead, "pipeline.drive_graph:_files_of_graph", 1, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            edited.refreshed(LONGER)
    edited.refreshed({"lib.py": MIXED["lib.py"]})
    expect_equal(edited.lake, mixed.lake)
    assert refreshed(edited.lake, edited.sources).status == "unchanged"


@pytest.mark.parametrize(
    ("stop", "step", "place"),
    quick(
        [
            (signal.SIGINT, "extract", "drive_files._extract"),
            (signal.SIGTERM, "normalize", "drive_files._commit_normalized"),
            (signal.SIGTERM, "relate", "drive_solve._solve"),
            (signal.SIGINT, "graph", "drive_graph._files_of_graph"),
        ],
        2,
    ),
)
def test_a_refresh_that_is_told_to_stop_ends_in_its_step(
    stop: signal.Signals,
    step: str,
    place: str,
    edited: Edited,
    longer: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, _, name = place.partition(".")
    real = getattr(importlib.import_module(f"codeanatomy.pipeline.{module}"), name)

    def stopped(build: GroupBuild, *more: Any) -> Any:
        os.kill(os.getpid(), stop)
        assert build.run.stopping.wait(60)
        return real(build, *more)

    with monkeypatch.context() as patched:
        patched.setattr(f"codeanatomy.pipeline.{place}", stopped)
        with pytest.raises(KeyboardInterrupt):
            edited.refreshed(LONGER)
    last = max(read_manifest(str(edited.lake)), key=lambda row: row.finished_at)
    assert (last.status, last.error) == ("cancelled", f"stopped by the user in step {step}")
    assert refreshed(edited.lake, edited.sources).status == "succeeded"
    expect_equal(edited.lake, longer)


def test_a_refresh_records_what_it_has_read_of_the_feeds(edited: Edited) -> None:
    edited.refreshed(LONGER)
    windows = {each.table_name: (each.from_version, each.to_version) for each in edited.row.change_windows}
    pins = edited.versions()
    assert windows.keys() == {"repo_files_v1", "relations_v1"}
    assert all(last == pins[name] for name, (_, last) in windows.items())
    edited.refreshed({"lib.py": MIXED["lib.py"]})
    again = {each.table_name: (each.from_version, each.to_version) for each in edited.row.change_windows}
    assert {name: first for name, (first, _) in again.items()} == {
        name: last + 1 for name, (_, last) in windows.items()
    }


@pytest.mark.system
def test_a_feed_whose_files_were_vacuumed(tmp_path: Path) -> None:
    """The window of a repository has the commits of others, and their files may be gone.

    Change files, which a lake without deletion vectors has, are without statistics: steps run in full then.
    """
    edited = Edited(tmp_path, MIXED)
    other = tmp_path / "other"
    write_tree(other, tree_of(MIXED))
    sources = {**edited.sources, "other": other}
    shutil.rmtree(edited.lake)
    clean_lake(edited.lake, sources, MODERN)
    for text in ("x = 1\n", "x = 2\n"):
        write_tree(other, tree_of({**MIXED, "lib.py": text}))
        refreshed(edited.lake, {"other": other})
    folder = Path(location(str(edited.lake), "repo_files_v1"))
    kept = set(logged_paths(str(edited.lake), "repo_files_v1", edited.versions()["repo_files_v1"]))
    vacuumed = [path for path in folder.rglob("*.parquet") if str(path.relative_to(folder)) not in kept]
    assert vacuumed
    for path in vacuumed:
        path.unlink()
    edited.edit(LONGER)
    # Statistics say that they have no rows of this repository.
    report = refreshed(edited.lake, edited.sources)
    assert edited.redone(report.run_id) == REACHED
    clean_lake(tmp_path / "clean", sources)
    expect_equal(edited.lake, tmp_path / "clean")


@pytest.mark.system
def test_of_another_index_only_what_it_says_otherwise_counts(tmp_path: Path) -> None:
    given = tmp_path / "index.scip"
    edited = Edited(tmp_path, MIXED, scip=index(given, ("lib.py", 0), ("other.py", 4)))
    before = edited.versions()
    index(given, ("lib.py", 0), ("other.py", 4))
    assert edited.refreshed({}).status == "unchanged"
    index(given, ("lib.py", 4), ("other.py", 4))
    report = edited.refreshed({})
    # With the row of the index itself.
    assert report.tables["scip_index_v1"].rows == 2
    lake = Snapshot.open(str(edited.lake))
    assert report.tables["cpg_nodes"].rows in rewritten(lake, "cpg_nodes", {"lib.py": "changed"})
    after = edited.versions()
    assert {name for name in EXTRACTED if after[name] != before[name]} == set()
    edited.expect_clean()
    # Documents of files that are not there, and one less.
    index(given, ("lib.py", 4), ("nowhere.py", 0), ("late.py", 0))
    edited.refreshed({})
    edited.expect_clean()
    # One of them is there now.
    edited.refreshed({"late.py": "def late():\n    pass\n"})
    edited.expect_clean()
    edited.asked = {}
    report = edited.refreshed({})
    assert "scip_index_v1" in report.tables
    edited.expect_clean()


@pytest.mark.skipif(find_pyrefly() is None, reason="pyrefly is not installed")
@pytest.mark.system
def test_what_a_type_checker_says_of_other_files(tmp_path: Path) -> None:
    before = {
        "lib.py": "def f() -> int:\n    return 1\n",
        "use.py": "from lib import f\nx = f()\nprint(x)\n",
        "other.py": "y = 1\nprint(y)\n",
    }
    edited = Edited(tmp_path, before, types="auto")
    report = edited.refreshed({"lib.py": "def f() -> str:\n    return ''\n"})
    assert report.tables["type_checker_files_v1"].rows == 2
    edited.expect_clean()
    edited.refreshed({"lib.py": None})
    edited.expect_clean()
