"""Relations that lead elsewhere: which files need nothing but other edges, and which edges these are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from codeanatomy.catalog.kinds import Profile
from codeanatomy.extract.file_rows import file_id
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP, file_rows
from codeanatomy.pipeline.refresh.relink import EDGE_IDS, NOTHING, Relinked, relinked, relinked_edges
from codeanatomy.relate.relation_rows import RELATIONS
from support.graph_stage import graph_files
from support.marks import quick
from support.relate_stage import programs_of, repository_rows

Sources = Mapping[str, str]
LIB = """\
class A:
    def m(self):
        return 1

def f():
    return A()

def g(x):
    return x.m()
"""
KINDS = "".join(f"class C{number}:\n    def m(self): ...\n" for number in range(80))
MANY = "".join(f"    if k == {number}: x = kinds.C{number}()\n" for number in range(80))
BEFORE: Sources = {
    "kinds.py": KINDS,
    "many.py": f"import kinds\n\ndef f(k):\n{MANY}    x.m()\n",
    "lib.py": LIB,
    "use.py": "from lib import f, g\n\ndef run():\n    made = f()\n    g(made)\n    return made.m()\n",
    "star.py": "from lib import *\nf()\n",
    "sub.py": "import lib\n\nclass B(lib.A):\n    def m(self):\n        return super().m()\n\nlib.g(B())\n",
    "apart.py": "import os\nos.getcwd()\n",
}
MOVED = "# Moved.\n\n" + LIB
# An edit, the files that need only edges, and those of which more differs.
CASES: Mapping[str, tuple[Sources, set[str], set[str]]] = {
    "moved": ({"lib.py": MOVED}, {"use.py", "star.py", "sub.py"}, set()),
    "a longer function": (
        {"lib.py": LIB.replace("return A()", "made = A()\n    return made")},
        {"use.py", "star.py", "sub.py"},
        set(),
    ),
    "another value": (
        {"lib.py": LIB.replace("return A()", "return 7")},
        {"star.py", "sub.py"},
        {"use.py"},
    ),
    "a name is gone": ({"lib.py": LIB.replace("def f()", "def h()")}, set(), {"use.py", "star.py"}),
    "a method is gone": ({"lib.py": LIB.replace("def m", "def n")}, set(), {"use.py", "sub.py"}),
    "nothing": ({}, set(), set()),
    # So many candidates that some are cut, which is a property of the edges to the others.
    "many candidates moved": ({"kinds.py": f"# Moved.\n{KINDS}"}, {"many.py"}, set()),
}


def relations_of(sources: Sources) -> dict[str, pa.Table]:
    """By path."""
    return {
        program.path: pa.Table.from_batches([tables[RELATIONS]])
        for program, tables in repository_rows(programs_of(sources))
    }


def difference(before: Sources, now: Sources) -> Relinked:
    """What differs of the files that were not edited."""
    was, becomes = relations_of(before), relations_of(now)
    paths = [
        path for path in sorted(was) if before[path] == now[path] and not was[path].equals(becomes[path])
    ]
    if not paths:
        return NOTHING
    old, new = (pa.concat_tables([side[path] for path in paths]) for side in (was, becomes))
    return relinked(old, new, frozenset(file_id("test", path) for path in paths))


def rows_by_file(sources: Sources, profile: Profile) -> dict[str, dict[str, list[dict[str, Any]]]]:
    return {
        file.file_id: {name: rows.to_pylist() for name, rows in file_rows(file, profile).tables.items()}
        for file in graph_files(sources, {}, "test")
    }


@pytest.mark.parametrize("profile", quick(["default", "full"], 1))
@pytest.mark.parametrize(("edit", "linked", "whole"), CASES.values(), ids=CASES)
def test_edges_that_are_swapped_make_the_graph_of_a_clean_build(
    edit: Sources, linked: set[str], whole: set[str], profile: Profile
) -> None:
    now = {**BEFORE, **edit}
    found = difference(BEFORE, now)
    edges = relinked_edges(found, found.owners, profile)
    assert linked == {path for path in BEFORE if file_id("test", path) in edges.owners}
    assert whole == {path for path in BEFORE if file_id("test", path) in found.owners - edges.owners}
    old, new = (rows_by_file(sources, profile) for sources in (BEFORE, now))
    gone = set(edges.removed.to_pylist())
    for owner in edges.owners:
        assert old[owner][NODES] == new[owner][NODES]
        for name, column in EDGE_IDS.items():
            kept = [row for row in old[owner][name] if row[column] not in gone]
            come = [row for row in edges.added[name].to_pylist() if row["owner_file_id"] == owner]
            # A row that is there already would be there twice.
            assert sorted(map(str, kept + come)) == sorted(map(str, new[owner][name])), name
    # What differs, and nothing beside it.
    assert not {str(row) for owner in edges.owners for row in old[owner][EDGES]} & {
        str(row) for row in edges.added[EDGES].to_pylist()
    }
    if "kinds.py" in edit:
        assert edges.added[PROPS].num_rows > 10
    for name in (PROPS, PROPS_MAP):
        assert set(edges.added[name].column("entity_id").to_pylist()) <= set(
            edges.added[EDGES].column("edge_id").to_pylist()
        )


def test_relations_that_differ_and_those_beside_them() -> None:
    found = difference(BEFORE, {**BEFORE, "lib.py": MOVED})
    sides = [
        {str(row) for row in rows.to_pylist()}
        for rows in (found.removed, found.added, found.before, found.now)
    ]
    gone, come, before, now = sides
    assert gone
    assert come
    assert not gone & come
    assert before - gone == now - come
    sources = {row["src_id"] for rows in (found.removed, found.added) for row in rows.to_pylist()}
    assert sources == {row["src_id"] for row in found.before.to_pylist()}


def test_a_file_that_was_not_compared_is_redone_as_a_whole() -> None:
    found = difference(BEFORE, {**BEFORE, "lib.py": MOVED})
    other = file_id("test", "apart.py")
    assert relinked_edges(found, frozenset({other}), "default").owners == frozenset()
    assert relinked_edges(NOTHING, found.owners, "default").owners == frozenset()
