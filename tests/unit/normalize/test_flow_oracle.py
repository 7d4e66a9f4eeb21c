"""The flow tables of real packages and random programs against the oracle, and the oracle against paths."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings

from codeanatomy.sources.source_file import Source, decode
from oracles.bytecode_oracle import compiled, source_of
from oracles.flow_oracle import RETURNS, Event, Unit, Variable, difference, facts_of, units_of
from oracles.flow_programs import LONG, QUICK, programs
from support import corpus
from support.marks import examples

STDLIB = Path(sysconfig.get_paths()["stdlib"])


def stdlib() -> list[Path]:
    return sorted(path for path in STDLIB.rglob("*.py") if "site-packages" not in path.parts)


def check_files(files: list[Path]) -> int:
    """How many files were compared; all that compile are."""
    count = 0
    for path in files:
        source = decode(path.name, path.read_bytes())
        if not isinstance(source, Source):
            continue
        try:
            compiled(source)
        except (SyntaxError, ValueError):
            continue
        told = difference(source, str(path))
        assert not told, told
        count += 1
    return count


@pytest.mark.parametrize("name", ["requests", pytest.param("flask", marks=pytest.mark.system)])
@pytest.mark.system
def test_a_package_is_as_the_oracle_sees_it(name: str) -> None:
    assert check_files(sorted(corpus.package(name).rglob("*.py"))) > 15


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.system
def test_some_of_the_standard_library_is_as_the_oracle_sees_it() -> None:
    chosen = ["asyncio/tasks.py", "contextlib.py", "enum.py", "typing.py", "test/test_patma.py", "tarfile.py"]
    assert check_files([STDLIB / name for name in chosen]) == len(chosen)


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["django", "stdlib"])
def test_much_more_is_as_the_oracle_sees_it(name: str) -> None:
    files = stdlib() if name == "stdlib" else sorted(corpus.package(name).rglob("*.py"))
    assert check_files(files) > 500


@QUICK
@given(programs())
def test_random_programs_are_as_the_oracle_sees_them(text: str) -> None:
    told = difference(source_of(text))
    assert not told, f"{text}\n{told}"


@pytest.mark.system
@LONG
@given(programs())
def test_many_random_programs_are_as_the_oracle_sees_them(text: str) -> None:
    told = difference(source_of(text))
    assert not told, f"{text}\n{told}"


# The oracle's fixpoint against the words of the contract: "some path leads from d to u"


def reached(unit: Unit, starts: set[int], variable: Variable) -> set[int]:
    """Offsets of the instructions some path leads to from before `starts`, without a def or del between."""
    found, todo = set(), list(starts)
    while todo:
        offset = todo.pop()
        if offset in found or offset == unit.length:
            continue
        found.add(offset)
        step = unit.steps[unit.at[offset]]
        event = unit.event(step)
        if step.may_raise and unit.handler(step) is not None:
            todo.append(unit.handlers[offset])
        if not (event and event.kind != "use" and event.variable == variable):
            todo += [to for _, to in unit.ways(step)]
    return found


def after(unit: Unit, event: Event) -> set[int]:
    if event.is_parameter:
        return {0}
    return {to for _, to in unit.ways(unit.steps[unit.at[event.offset]])}


def check_paths(unit: Unit) -> None:
    alive = reached(unit, {0}, ("", "", None))
    raising = {step.offset for step in unit.steps if step.may_raise} & alive
    for variable in {event.variable for event in unit.events}:
        mine = [event for event in unit.events if event.variable == variable]
        mine = [event for event in mine if event.offset in alive or event.is_parameter]
        uses = [event for event in mine if event.kind in {"use", "del"}]
        for d in mine:
            if d.kind == "def":
                seen = reached(unit, after(unit, d), variable)
                assert {u for e, u in unit.flow.reaches if e == d} == {
                    use for use in uses if use.kind == "use" and use.offset in seen
                }
                ends = {offset for offset in seen if unit.steps[unit.at[offset]].opname in RETURNS}
                assert (d in unit.flow.visible) == bool(seen & raising or ends)
        parameter = any(event.is_parameter for event in mine)
        entry = set() if parameter else {0}
        cleared = [event for event in mine if event.kind in {"del", "save"}]
        dels = set().union(*(after(unit, event) for event in cleared))
        unbound = reached(unit, entry | dels, variable)
        assert unit.flow.unbound & {*uses} == {use for use in uses if use.offset in unbound}
        changing = {event.offset for event in mine if event.kind != "use" and not event.is_parameter}
        others = {to for offset in raising - changing for _, to in unit.ways(unit.steps[unit.at[offset]])}
        others |= {unit.handlers[offset] for offset in raising if offset in unit.handlers}
        opened = reached(unit, entry | others, variable)
        assert unit.flow.open & {*uses} == {use for use in uses if use.offset in opened}


@settings(QUICK, max_examples=examples(60))
@given(programs())
def test_the_oracle_finds_what_paths_find_in_random_programs(text: str) -> None:
    for unit in units_of(compiled(source_of(text))):
        check_paths(unit)


@pytest.mark.system
def test_the_oracle_finds_what_paths_find_in_a_package() -> None:
    for path in sorted(corpus.package("requests").rglob("*.py")):
        for unit in units_of(compiled(source_of(path.read_bytes()))):
            if len(unit.steps) < 1000:
                check_paths(unit)


def test_the_oracle_sees_a_difference() -> None:
    """Two programs that differ by one line do not have the same rows in any table but the blocks."""
    one = facts_of(source_of("def f(a):\n    x = a\n    return x\n"))
    two = facts_of(source_of("def f(a):\n    x = a\n    return a\n"))
    assert one["blocks"] == two["blocks"]
    assert one["events"] != two["events"]
    assert one["reaches"] != two["reaches"]
