"""The labels of `tests/cases/callgraph` are what Python does: every case that can run is run, and compared.

`closures.counter` is labelled `main -> main.counter.step`; the run shows that call, and none without a label.
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import subprocess
import sys
import types
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from support import callgraph_score as score

CASES = score.cases()
TRACE = Path(score.__file__).with_name("callgraph_trace.py")


@pytest.fixture(scope="module")
def observed() -> dict[str, Any]:
    """What one process saw of all cases."""
    folders = [f"{case.construct}/{case.name}" for case in CASES if case.runs]
    command = [sys.executable, "-P", "-W", "ignore", str(TRACE), *folders]
    done = subprocess.run(command, cwd=score.FOLDER, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def test_labels_are_what_a_run_calls(observed: dict[str, Any]) -> None:
    runnable = [case for case in CASES if case.runs]
    assert len(runnable) > 400
    problems = {case.repo_id: label_problems(case, observed[case.repo_id]) for case in runnable}
    assert {name: each for name, each in problems.items() if each} == {}


def label_problems(case: score.Case, seen: dict[str, Any]) -> dict[str, Any]:
    """Compare the labels of a case with the calls of its run; empty if they agree."""
    calls = {tuple(edge) for edge in seen["calls"]}
    c_calls = {tuple(edge) for edge in seen["c_calls"]}
    labelled = score.edges(case.calls)
    names = {path.relative_to(case.folder).parts[0].removesuffix(".py") for path in case.sources}
    names |= {path.parent.name for path in case.sources if path.name == "__init__.py"}
    inside = {edge for edge in labelled if edge[1].split(".")[0] in names}
    in_c = {edge for edge in labelled if is_c_function(edge[1])}
    problems = {
        "error": seen["error"],
        "not called elsewhere": case.elsewhere - calls,
        "called, not labelled": (calls | c_calls) - case.elsewhere - labelled,
        "labelled, not called": (inside | in_c) - calls - c_calls - case.unobserved,
        "called although labelled as not observable": case.unobserved & (calls | c_calls),
        "through a wrapper, not run below": score.edges(case.through)
        - {tuple(edge) for edge in seen["below"]},
        "not observable and not labelled": case.unobserved - labelled,
    }
    return {name: value for name, value in problems.items() if value}


def is_c_function(name: str) -> bool:
    """`builtins.len` and `builtins.list.append` are seen as calls, `builtins.list` is not."""
    first, *rest = name.split(".")
    if first != "builtins":
        return False
    found = reduce(getattr, rest, builtins)
    return isinstance(found, types.BuiltinFunctionType | types.MethodDescriptorType)


def test_labels_are_in_order() -> None:
    for case in CASES:
        assert case.title, case.repo_id
        assert list(case.calls) == sorted(case.calls), case.repo_id
        for callees in case.calls.values():
            assert callees, case.repo_id
            assert callees == sorted(set(callees)), case.repo_id


def test_labelled_references_are_identifiers_of_the_source() -> None:
    for case in CASES:
        for place in case.refs:
            path, line, column = place.rsplit(":", 2)
            tree = ast.parse((case.folder / path).read_bytes())
            assert (int(line), int(column)) in set(identifiers(tree)), (case.repo_id, place)


def identifiers(tree: ast.Module) -> list[tuple[int, int]]:
    """Where a name is used: names, the names after a dot, what an import takes."""
    places = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.alias):
            places.append((node.lineno, node.col_offset))
        elif isinstance(node, ast.Attribute):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            places.append((node.end_lineno, node.end_col_offset - len(node.attr)))
    return places


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 130
    assert len({case.construct for case in CASES}) >= 25
    assert sum(len(case.sources) > 1 for case in CASES) >= 35


def test_no_two_cases_are_alike() -> None:
    texts = [tuple(path.read_bytes() for path in case.sources) for case in CASES]
    assert len(set(texts)) == len(texts)
    assert len({case.title for case in CASES}) == len(CASES)


def test_a_perfect_call_graph_scores_one() -> None:
    results = score.scores({case.repo_id: case.calls for case in CASES})
    assert all(result.exact for result in results)
    total = score.by_construct(results)[-1]
    assert (total.name, total.cases, total.exact) == ("total", len(CASES), len(CASES))
    assert (total.precision, total.recall) == (1.0, 1.0)


def test_missing_and_invented_edges_lower_the_score() -> None:
    first, second = CASES[:2]
    lost = {caller: callees for caller, callees in first.calls.items() if caller != "main"}
    actual = {first.repo_id: lost, second.repo_id: {**second.calls, "main.nobody": ["main.nothing"]}}
    one, two, *others = score.scores(actual)
    assert one.missing == {("main", callee) for callee in first.calls["main"]}
    assert one.extra == set()
    assert two.extra == {("main.nobody", "main.nothing")}
    assert two.missing == set()
    assert all(result.missing == score.edges(result.case.calls) for result in others)
    text = score.report([one, two])
    assert f"{first.repo_id}: {first.title}" in text
    assert "  + main.nobody -> main.nothing" in text


def test_a_call_graph_is_read_line_by_line() -> None:
    lines = io.StringIO(
        '{"repo_id": "a.b", "calls": {"main": ["main.f"]}}\n\n{"repo_id": "a.c", "calls": {}}\n'
    )
    assert score.read(lines) == {"a.b": {"main": ["main.f"]}, "a.c": {}}
