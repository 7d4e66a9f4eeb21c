"""Print a plan as text, a few lines per step, or as a Graphviz graph.

    engine spark on local[*], Spark 4.2.0, Delta 4.4.0
    graph
      run     requests: settings changed
      reads   relations_v1 v3, ast_files_v1 v2, ...
      writes  cpg_nodes, cpg_edges, ...
    redone of flask: 2 files
      changed     flask/views.py
      lost        flask/app.py: 3 relations, such as flask.views.View

Tests: `tests/unit/plan/test_run_plan.py`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from msgspec import json

from codeanatomy.lake.engine_facts import engine_text
from codeanatomy.plan.changes import Impact
from codeanatomy.plan.run_plan import Plan, PlannedStep

WIDTH = 110
COLOURS = {"run": "lightblue", "refresh": "lightgreen", "resume": "lightyellow", "skip": "lightgrey"}


def plan_lines(plan: Plan) -> Iterator[str]:
    """Format the plan as lines, in the order of execution."""
    if plan.undo:
        yield "undo"
        for undo in plan.undo:
            back = "no rows" if undo.to_version is None else f"v{undo.to_version}"
            yield f"  run     {undo.table_name}: from v{undo.from_version} back to {back}"
    if any(step.busy for step in plan.steps):
        yield f"engine {engine_text(plan.engine_facts)}"
    for step in plan.steps:
        yield step.name
        for each in step.repositories:
            yield f"  {each.action:<7} {each.repo_id}: {each.why}"
        yield from _list("reads", (_pinned(name, version) for name, version in step.inputs.items()))
        yield from _list("writes", step.outputs)
    for repo_id, error in plan.failed.items():
        yield f"  fail    {repo_id}: {error}"
    for repo_id, impact in plan.impact.items():
        yield f"redone of {repo_id}: {len(impact):,} files"
        yield from (f"  {_reason(each)}" for each in impact)


def _reason(each: Impact) -> str:
    if not each.relations:
        return f"{each.reason:<11} {each.path}"
    through = f", such as {each.name}" if each.name else ""
    return f"{each.reason:<11} {each.path}: {each.relations:,} relations{through}"


def _list(label: str, names: Iterable[str]) -> list[str]:
    text = ", ".join(names) or "the source"
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {label:<7} ", subsequent_indent=" " * 10)


def _pinned(name: str, version: int | None) -> str:
    return f"{name} (new)" if version is None else f"{name} v{version}"


def dot(plan: Plan) -> str:
    """Format the steps and tables of a plan as a Graphviz digraph."""
    return "\n".join(("digraph plan {", "  rankdir=LR;", *_lines(plan), "}"))


def _lines(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        label = "\n".join((step.name, *(f"{each.repo_id}: {each.action}" for each in step.repositories)))
        attributes = f"shape=box, style=filled, fillcolor={_colour(step)}, label={_text(label)}"
        yield f"  {_text(step.name)} [{attributes}];"
        for name, version in step.inputs.items():
            read = "new" if version is None else f"v{version}"
            yield f"  {_text(f'table {name}')} -> {_text(step.name)} [label={_text(read)}];"
        for name in step.outputs:
            yield f"  {_text(f'table {name}')} [label={_text(name)}];"
            yield f"  {_text(step.name)} -> {_text(f'table {name}')};"


def _colour(step: PlannedStep) -> str:
    actions = {each.action for each in step.repositories}
    return next((colour for action, colour in COLOURS.items() if action in actions), "white")


def _text(value: str) -> str:
    # A JSON string is a valid Graphviz string, including escapes.
    return json.encode(value).decode()
