"""The labelled cases of `tests/cases/callgraph`, each on its own: the exact call graph, and targets of names.

`closures.counter` is labelled `main -> main.counter.step`; that is found, and nothing else.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from codeanatomy.arrow import unpack_rows
from codeanatomy.node_ids import binding_id, definition_key, scope_id
from codeanatomy.relate.program import Program
from codeanatomy.relate.values.state import State
from support import callgraph_score as score
from support.relate_stage import call_edges, relations, solved, sources_below

CASES = score.cases()
# What is known to be missing or too much, by case: a list to make shorter.
MISSES = json.loads((score.FOLDER / "misses.json").read_text(encoding="utf-8"))
# A reference in the text of an import is a row of the import.
NAMED = ("REFERS_TO", "IMPORTS_NAME")
NEWLINE = b"\n"


@cache
def _values(folder: Path) -> State:
    return solved(sources_below(folder))


def values_of(case: score.Case) -> State:
    return _values(case.folder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.repo_id)
def test_the_call_graph_is_exact(case: score.Case) -> None:
    """Or differs by just what is known to be missed."""
    found, wanted = score.edges(call_edges(values_of(case))), score.edges(case.calls)
    known = MISSES.get(case.repo_id, {"missing": [], "extra": []})
    assert sorted(map(list, wanted - found)) == known["missing"]
    assert sorted(map(list, found - wanted)) == known["extra"]


@pytest.mark.parametrize("case", [case for case in CASES if case.through], ids=lambda case: case.repo_id)
def test_wrappers_are_transparent(case: score.Case) -> None:
    rows = [row for made in relations(values_of(case)) for row in made.rows()]
    edges = {
        (row["src_qname"], row["dst_qname"])
        for row in rows
        if row["relation_kind"] == "CALL_GRAPH" and row["resolution_method"] == "forwarded"
    }
    assert edges == score.edges(case.through)


@pytest.mark.parametrize("case", [case for case in CASES if case.refs], ids=lambda case: case.repo_id)
def test_references_mean_what_the_labels_say(case: score.Case) -> None:
    values = values_of(case)
    meant: dict[str, set[str | None]] = {}
    for program, rows in zip(values.programs, relations(values), strict=True):
        raw = (case.folder / program.path).read_bytes()
        bindings = named_bindings(program, values.names[values.files[program.path]])
        found = [row for batch in unpack_rows(program.scope_rows) for row in batch.to_pylist()]
        told = [
            (row["bstart"], bindings.get(row["dst_id"]))
            for row in found
            if row["relation_kind"] in ("READS", "WRITES")
        ]
        places = {row["bstart"] for row in rows.rows() if row["relation_kind"] in NAMED}
        # A variable is its binding; what is more than that has a row of its own.
        told = [(start, name) for start, name in told if start not in places]
        told += [(row["bstart"], row["dst_qname"]) for row in rows.rows() if row["relation_kind"] in NAMED]
        for start, name in told:
            line = raw.count(b"\n", 0, start) + 1
            meant.setdefault(f"{program.path}:{line}:{start - raw.rfind(NEWLINE, 0, start) - 1}", set()).add(
                name
            )
    assert {place: meant.get(place) for place in case.refs} == {
        place: {name} for place, name in case.refs.items()
    }


def named_bindings(program: Program, module: str) -> dict[str, str]:
    """Bindings of the module and its functions by the names that labels have for them."""
    scopes = {
        scope_id(definition_key(program.repo_id, program.path)): module,
        **{each.scope_id: f"{module}.{each.qualname}" for each in program.functions},
    }
    words = {each.name for each in program.definitions}
    return {binding_id(scope, word): f"{owner}.{word}" for scope, owner in scopes.items() for word in words}


def test_every_construct_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    results = score.scores({case.repo_id: call_edges(values_of(case)) for case in CASES})
    table = score.report(results)
    with capsys.disabled():
        print(f"\n{table}")
    *parts, total = score.by_construct(results)
    assert len(parts) >= 25
    assert total.cases == len(CASES)
    assert total.exact == len(CASES) - len(MISSES)
    assert total.precision > 0.98
    assert total.recall > 0.9
