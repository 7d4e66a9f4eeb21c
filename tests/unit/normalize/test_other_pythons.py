"""The flow rules on bytecode of other Pythons: the same programs have the same facts, whoever compiled."""

from __future__ import annotations

import pytest

from codeanatomy.normalize.flow.opcodes import KNOWN_VERSIONS
from codeanatomy.normalize.flow.tables import FileFlow, analyze_flow
from support.flow_cases import CASES
from support.normalize_stage import file_of, source_of
from support.recorded_bytecode import recorded

OTHERS = [version for version in KNOWN_VERSIONS if version != "3.11"]
# From 3.14 on annotations are evaluated when somebody asks for them, in a function of their own.
LAZY = {"3.14": {"annotations of a class"}}
# They were written after its bytecode was recorded.
NOT_RECORDED = {
    "3.14": {
        "a comprehension's variable and another one of its name",
        "a comprehension's cell and another variable of its name",
        "a comprehension's variable and a cell of its name",
        "a comprehension's variable and a free one of its name",
    }
}


def reaches(flow: FileFlow) -> set[tuple[str, int | None, int | None]]:
    """Name, line of the definition, line of the use; kinds depend on what is inlined."""
    found = set()
    for pair in flow.pairs:
        (def_unit, definition), (use_unit, use) = pair.definition, pair.use
        name = flow.units[use_unit].events[use].name
        lines = (
            flow.units[def_unit].event_spans[definition].line,
            flow.units[use_unit].event_spans[use].line,
        )
        # What a version makes up for itself: the iterator of a comprehension, annotations.
        if not name.startswith((".", "__")):
            found.add((name, *lines))
    return found


def unbound(flow: FileFlow) -> set[tuple[str, int | None]]:
    return {
        (unit.events[place].name, unit.event_spans[place].line)
        for unit in flow.units
        for place in unit.reaching.unbound
        if unit.event_ids[place] is not None and unit.events[place].var_kind != "name"
    }


@pytest.mark.parametrize("version", OTHERS)
def test_all_programs_are_recorded(version: str) -> None:
    """Otherwise: run `python tests/support/recorded_bytecode.py` under that Python."""
    assert set(recorded(version)) == set(CASES) - NOT_RECORDED.get(version, set())


@pytest.mark.parametrize("version", OTHERS)
def test_facts_do_not_depend_on_the_compiler(version: str) -> None:
    differing = {}
    for name, file in recorded(version).items():
        if name in LAZY.get(version, ()):
            continue
        here, there = (
            analyze_flow(file_of(source_of(CASES[name].code.removeprefix("\n")))),
            analyze_flow(file),
        )
        found = {
            "only here": reaches(here) - reaches(there),
            "only there": reaches(there) - reaches(here),
            "unbound": unbound(here) ^ unbound(there),
        }
        if any(found.values()):
            differing[name] = found
    assert differing == {}
