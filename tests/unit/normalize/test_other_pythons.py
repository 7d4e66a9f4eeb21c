"""The flow rules on bytecode of other Pythons: the same programs have the same facts, whoever compiled."""

from __future__ import annotations

import pytest

from codeanatomy.file_view import BYTECODE, FileView
from codeanatomy.normalize.flow.opcodes import KNOWN_VERSIONS
from codeanatomy.normalize.flow.tables import FileFlow, analyze_flow
from support.flow_cases import CASES
from support.normalize_stage import file_of, source_of
from support.recorded_bytecode import recorded

OTHERS = [version for version in KNOWN_VERSIONS if version != "3.11"]
# From 3.14 on annotations are evaluated when somebody asks for them, in a function of their own.
LAZY = {"3.14": {"annotations of a class"}}


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


@pytest.fixture(scope="module", params=OTHERS)
def programs(request: pytest.FixtureRequest) -> dict[str, FileView]:
    return recorded(request.param)


def test_all_programs_are_recorded(programs: dict[str, FileView]) -> None:
    """Otherwise: run `python tests/support/recorded_bytecode.py` under that Python."""
    assert set(programs) == set(CASES)


def test_facts_do_not_depend_on_the_compiler(programs: dict[str, FileView]) -> None:
    differing = {}
    for name, file in programs.items():
        if name in LAZY.get(file.row(BYTECODE)["python_version"][:4], ()):
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
