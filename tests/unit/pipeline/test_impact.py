"""The reasons for which files are redone, and that a plan tells those that a build records."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec import json

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.read.light import light_table
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.executors.executor import Group
from codeanatomy.pipeline.tasks.impact import BEFORE as STORED
from codeanatomy.pipeline.tasks.impact import IMPACT, edited_first, file_impact
from codeanatomy.plan.changes import Impact
from codeanatomy.progress import Progress
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.run.build import plan
from support.edits import write_tree
from support.light_builds import clean_lake, order, refreshed


class Leads:
    """A relation of `a.py`, by where it leads to."""

    def __init__(
        self,
        name: str | None = "lib.f",
        node: str | None = "function:1",
        *,
        kind: str = "REFERS_TO",
        method: str = "import",
        source: str = "name_ref:1",
        ends_at: str = "FUNCTION",
        path: str = "a.py",
    ) -> None:
        self.cells = {
            catalog.table(RELATIONS).owner: file_id("r", path),
            "path": path,
            "relation_kind": kind,
            "src_id": source,
            "dst_id": node,
            "dst_kind": None if node is None else ends_at,
            "dst_qname": name,
            "resolution_method": method,
        }


def table(*relations: Leads) -> pa.Table:
    schema = arrow_schema(catalog.table(RELATIONS))
    columns = [pa.array([each.cells.get(field.name) for each in relations], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in schema]))


def impact(
    before: tuple[Leads, ...], now: tuple[Leads, ...], explained: tuple[str, ...] = ("a.py",)
) -> tuple[Impact, ...]:
    """Why files are redone, by their relations before and now."""
    batches = {name: table(*each).to_batches() for name, each in ((STORED, before), (RELATIONS, now)) if each}
    pieces = list(file_impact(Group("r", "0000", ()), batches, {file_id("r", path) for path in explained}))
    assert {(piece.repo_id, piece.chunk, piece.name) for piece in pieces} <= {("r", "0000", IMPACT)}
    return tuple(each for piece in pieces for each in json.decode(piece.data, type=list[Impact]))


NOWHERE = Leads(None, None)
OUTSIDE = Leads("lib.f", "qname:1", ends_at="QUALIFIED_NAME")
REASONS = {
    "nothing to something": (NOWHERE, Leads(), "resolved"),
    "a name outside to something": (OUTSIDE, Leads(), "resolved"),
    "a call of a name outside to one of a function": (
        Leads("lib.f", "qname:1", kind="CALLS_NAME", ends_at="QUALIFIED_NAME"),
        Leads(kind="CALLS"),
        "resolved",
    ),
    "something to nothing": (Leads(), NOWHERE, "lost"),
    "something to a name outside": (Leads(), OUTSIDE, "lost"),
    "a module to one outside": (
        Leads("lib", "module:1", kind="IMPORTS_MODULE", ends_at="MODULE"),
        Leads("lib", "external_module:1", kind="IMPORTS_MODULE", ends_at="EXTERNAL_MODULE"),
        "lost",
    ),
    "another star import": (Leads(method="star_import"), Leads("b.f", "function:2"), "star_import"),
    "another import": (Leads(kind="IMPORTS_NAME"), Leads("b.f", "function:2", kind="IMPORTS_NAME"), "import"),
    "another re-export": (Leads(kind="RE_EXPORTS"), Leads("b.f", "function:2", kind="RE_EXPORTS"), "import"),
    "another base": (Leads("A", "class:1", kind="INHERITS"), Leads("B", "class:2", kind="INHERITS"), "class"),
    "another method is overridden": (
        Leads("A.m", kind="OVERRIDES"),
        Leads("B.m", "function:2", kind="OVERRIDES"),
        "class",
    ),
    "another value": (
        Leads("A.m", kind="CALLS", method="values"),
        Leads("B.m", "function:2", kind="CALLS", method="values"),
        "value",
    ),
    "a class in the place of a function": (
        Leads("lib.f", kind="CALLS", method="values"),
        Leads("lib.F", "class:1", kind="INSTANTIATES", method="values", ends_at="CLASS"),
        "value",
    ),
    "the same name in another file": (Leads(), Leads(node="function:2"), "reference"),
    "anything else": (Leads(), Leads("b.f", "function:2"), "reference"),
    "another name outside": (
        OUTSIDE,
        Leads("lib.g", "qname:2", ends_at="QUALIFIED_NAME"),
        "reference",
    ),
    "the same by another witness": (Leads(), Leads(), "reference"),
}


@pytest.mark.parametrize(("before", "now", "reason"), REASONS.values(), ids=REASONS)
def test_a_reason_for_each_way_to_lead_elsewhere(before: Leads, now: Leads, reason: str) -> None:
    assert [(each.path, each.reason) for each in impact((before,), (now,))] == [("a.py", reason)]


def test_the_first_reason_is_told_with_its_number() -> None:
    other = [Leads("lib.g", f"function:{side}", source="name_ref:9") for side in (2, 3)]
    found = [Leads(f"lib.f{number}", f"function:f{number}", source=f"name_ref:{number}") for number in (1, 2)]
    lost = [Leads(None, None, source=f"name_ref:{number}") for number in (1, 2)]
    assert impact((other[0], *lost), (other[1], *found)) == (Impact("a.py", "resolved", "lib.f1", 2),)
    assert impact((other[0], *found), (other[1], *lost)) == (Impact("a.py", "lost", "lib.f1", 2),)
    assert impact((other[0],), (other[1],)) == (Impact("a.py", "reference", "lib.g", 1),)


def test_one_of_several_targets_that_is_another_one() -> None:
    kept = Leads("A.m", "function:0", kind="CALLS", method="values")
    old, new = (Leads(f"{name}.m", f"function:{name}", kind="CALLS", method="values") for name in "BC")
    assert impact((kept, old), (kept, new)) == (Impact("a.py", "value", "B.m", 1),)
    # It has led somewhere all the time.
    assert impact((kept,), (kept, new))[0].reason == "value"


def test_only_files_that_are_to_be_explained_are() -> None:
    before, now = ((Leads(), Leads(path="a0.py")), (Leads(None, None), Leads("x.y", "qname:7", path="a0.py")))
    assert impact(before, now) == (Impact("a.py", "lost", "lib.f", 1),)
    assert impact(before, now, ("a0.py",)) == (Impact("a0.py", "reference", "lib.f", 1),)
    assert impact(before, now, ("b.py",)) == ()
    assert impact(before, now, ()) == ()
    both = impact(before, now, ("a.py", "a0.py"))
    assert {each.path: each.reason for each in both} == {"a.py": "lost", "a0.py": "reference"}


def test_files_that_were_edited_come_first() -> None:
    edits = Impact("b.py", "changed"), Impact("c.py", "removed")
    others = Impact("a.py", "lost", "lib.f", 1), Impact("a0.py", "reference", "lib.f", 1)
    assert edited_first((others[1], edits[1], others[0], edits[0])) == (*edits, *others)


def test_a_file_that_had_no_relations() -> None:
    assert impact((), (Leads(),)) == (Impact("a.py", "resolved", "lib.f", 1),)


def test_a_file_that_has_no_relations_any_more() -> None:
    assert impact((Leads(),), ()) == (Impact("a.py", "lost", "lib.f", 1),)


BEFORE = {
    "lib.py": b"def f():\n    return 1\n\n\ndef g():\n    return f()\n",
    "gone.py": b"def h():\n    pass\n",
    "use.py": b"from lib import g\ng()\n",
    "late.py": b"from new import k\nk()\n",
    "lost.py": b"from gone import h\nh()\n",
    "same.py": b"import sys\n",
}
AFTER = {
    **BEFORE,
    # `g` moves, which is of no interest to use.py.
    "lib.py": b"def f():\n    return 1000\n\n\ndef g():\n    return f()\n",
    "new.py": b"def k():\n    pass\n",
}
del AFTER["gone.py"]


@pytest.mark.system
def test_a_plan_tells_what_the_build_records_and_writes_nothing(tmp_path: Path) -> None:
    source, lake = tmp_path / "source", tmp_path / "lake"
    write_tree(source, BEFORE)
    clean_lake(lake, {"r": source})
    write_tree(source, AFTER)
    files = sorted(str(path) for path in lake.rglob("*"))
    asked = order(lake, {"r": source})
    assert plan(asked, Progress(io.StringIO())).impact == {}
    foreseen = plan(asked, Progress(io.StringIO()), impact=True)
    assert sorted(str(path) for path in lake.rglob("*")) == files
    assert {each.path: each.reason for each in foreseen.impact["r"]} == {
        "gone.py": "removed",
        "lib.py": "changed",
        "new.py": "added",
        "late.py": "resolved",
        "lost.py": "lost",
    }
    report = refreshed(lake, {"r": source})
    assert recorded(lake, report.run_id) == set(foreseen.impact["r"])
    assert plan(asked, Progress(io.StringIO()), impact=True).impact == {}
    # Up to a step before the relations only what was edited is known.
    write_tree(source, BEFORE)
    extract = plan(order(lake, {"r": source}, until="normalize"), Progress(io.StringIO()), impact=True)
    assert {each.path: each.reason for each in extract.impact["r"]} == {
        "gone.py": "added",
        "lib.py": "changed",
        "new.py": "removed",
    }
    report = refreshed(lake, {"r": source}, until="normalize")
    assert recorded(lake, report.run_id) == set(extract.impact["r"])


def recorded(lake: Path, run_id: str) -> set[Impact]:
    columns = ["run_id", "path", "reason", "name", "relations"]
    rows = light_table(str(lake), "refresh_impact", columns).to_pylist()
    return {
        Impact(row["path"], row["reason"], row["name"], row["relations"])
        for row in rows
        if row["run_id"] == run_id
    }
