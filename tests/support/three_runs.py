"""Build a lake with three runs that differ, without Spark, once for all test modules, and copy it.

    lake = copied(tmp_path, three_runs(tmp_path_factory))
    rows(lake.root, lake.runs[0])["cpg_nodes"]      # all rows of a run, as text that can be compared

The first run builds `a` and `b`; the second refreshes `a`, which leaves deletion vectors; the third refreshes
`b` and adds `c`. Both have files that fail.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.config import load_settings
from codeanatomy.lake.cursors import StepCursor
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.maintain.maintenance_run import WriteRequest
from codeanatomy.maintain.restore import RestoreReport, restore_run, restore_table_version
from codeanatomy.plan.changes import source_changes
from codeanatomy.plan.run_plan import LakeState, Plan
from codeanatomy.plan.steps import STAGES
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from codeanatomy.run import build as building
from codeanatomy.run.build import Prepared
from codeanatomy.run.report import BuildReport
from support.light_builds import MODERN, clean_lake, refreshed
from support.published_rows import counted
from support.sessions import no_session

# By repository, by file, the text in each of three states.
FILES: dict[str, dict[str, tuple[str | None, str | None, str | None]]] = {
    "a": {
        "one.py": ("import two\n\n\ndef f():\n    return two.g()\n",) * 3,
        "two.py": (
            "def g():\n    return 1\n",
            *("def g(x=2):\n    return k(x)\n\n\ndef k(x):\n    return x\n",) * 2,
        ),
        "bad.py": ("x = = 1\n", None, None),
        "new.py": (None, *("from two import k\n\nk(1)\n",) * 2),
    },
    "b": {
        "m.py": (
            *("def h():\n    return h()\n",) * 2,
            "class H:\n    def h(self):\n        return self.h()\n",
        ),
        "n.py": ("z = (1 2)\n",) * 3,
    },
    "c": {"p.py": ("def q():\n    pass\n\n\nq()\n",) * 3},
}


@dataclass(frozen=True)
class ThreeRuns:
    """A lake, its sources as they are now, and its runs."""

    folder: Path
    runs: tuple[str, ...]

    @property
    def root(self) -> Path:
        return self.folder / "lake"

    @property
    def sources(self) -> dict[str, Path]:
        return {name: self.folder / name for name in FILES}

    def put(self, state: int) -> dict[str, Path]:
        """Give the sources one of their states; only the last has `c`."""
        for name, files in FILES.items():
            for path, texts in files.items():
                place, text = self.folder / name / path, texts[state]
                place.parent.mkdir(parents=True, exist_ok=True)
                place.unlink(missing_ok=True)
                if text is not None:
                    place.write_text(text)
        return {name: path for name, path in self.sources.items() if name != "c" or state == 2}

    def build(self, state: int) -> BuildReport:
        """Build a state, a repository that the lake does not have as if all its files had been added."""
        sources = self.put(state)
        has_c = "c" in Snapshot.open(str(self.root)).repositories
        if state != 2 or has_c:
            return refreshed(self.root, sources)
        with patch.object(building, "_make_plan", with_new):
            return refreshed(self.root, sources)

    def restore(self, run_id: str, *, wait: bool = True) -> RestoreReport:
        return restored(self.root, run_id, wait=wait)

    def restore_table(self, name: str, to: str | int) -> RestoreReport:
        ask = WriteRequest(str(self.root), SETTINGS)
        return restore_table_version(ask, name, str(to), Progress(io.StringIO()), no_session)

    def version(self, name: str, run: int) -> int:
        """The version of a table that a run pins."""
        return Snapshot.open(str(self.root), self.runs[run]).pins[name].version


def restored(root: Path, run_id: str, *, wait: bool = True) -> RestoreReport:
    """Restore a lake without Spark."""
    return restore_run(WriteRequest(str(root), SETTINGS, wait), run_id, Progress(io.StringIO()), no_session)


SETTINGS = load_settings((), env={}, start=None)
PLANNED = building._make_plan
MADE: list[ThreeRuns] = []


def with_new(prepared: Prepared, row: Any) -> tuple[Plan, LakeState]:
    """The plan in which repositories that were never built are refreshed from nothing."""
    found, state = PLANNED(prepared, row)
    lines = prepared.plan_request.file_states
    new = [name for name in lines if name not in state.repositories]
    steps = tuple(
        structs.replace(
            step,
            repositories=tuple(
                structs.replace(each, action="refresh") if each.repo_id in new else each
                for each in step.repositories
            ),
        )
        for step in found.steps
    )
    now = datetime.now(UTC)
    blank = {
        name: RunManifest(
            run_id="", repo_id=name, status="succeeded", started_at=now, finished_at=now, profile_hash=""
        )
        for name in new
    }
    changes = {name: source_changes(name, {}, lines[name]) for name in new}
    return (
        structs.replace(found, steps=steps, changes={**found.changes, **changes}),
        structs.replace(
            state,
            repositories={**state.repositories, **blank},
            cursors={**state.cursors, **{name: dict.fromkeys(STAGES, at_its_end(state)) for name in new}},
        ),
    )


def at_its_end(state: LakeState) -> StepCursor:
    """The cursor of a step that has processed all that is there."""
    return StepCursor("", state.pins)


def three_runs(factory: pytest.TempPathFactory) -> ThreeRuns:
    """The lake, which is not to be written to."""
    if not MADE:
        made = ThreeRuns(factory.mktemp("three"), ())
        clean_lake(made.root, made.put(0), MODERN)
        made.build(1)
        made.build(2)
        MADE.append(ThreeRuns(made.folder, tuple(run.run_id for run in recorded_runs(str(made.root)))))
    return MADE[0]


def clean(state: int) -> Path:
    """A lake of a state of the sources that was built at once, and is not to be written to."""
    place = MADE[0].folder.with_name(f"clean-{state}")
    if not place.exists():
        clean_lake(place, MADE[0].put(state))
    return place


def copied(folder: Path, made: ThreeRuns) -> ThreeRuns:
    """Copy the lake and its sources to another folder."""
    shutil.copytree(made.folder, folder / "three")
    return ThreeRuns(folder / "three", made.runs)


def rows(lake: Path, as_of: str | None = None) -> Mapping[str, list[str]]:
    """Every row of every table of a published state, in an order of their own."""
    found = Snapshot.open(str(lake), as_of)
    return {name: table_rows(found, name) for name in sorted(found.pins)}


def table_rows(lake: Snapshot, name: str) -> list[str]:
    return sorted(map(repr, lake.rows(name, catalog.table(name).column_names).to_pylist()))


def expect_sound(lake: ThreeRuns) -> None:
    """Check that the graph follows the catalogue, and that the manifest has the right counts."""
    assert not verify(str(lake.root)).findings
    assert not counted(lake.root)


def expect_clean(lake: ThreeRuns, state: int) -> None:
    """Check that the rows are those of a lake that was built at once."""
    comparison = compare_lakes(str(lake.root), str(clean(state)))
    assert not comparison.tables, comparison.differences[:5]
    assert sum(comparison.rows.values())
