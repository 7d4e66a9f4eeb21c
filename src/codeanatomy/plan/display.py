"""A plan for people: a few lines for each step, and a graph in the language of Graphviz.

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

from codeanatomy.plan.changes import Impact
from codeanatomy.plan.run_plan import Plan, PlannedStep

WIDTH = 110
COLOURS = {"run": "lightblue", "refresh": "lightgreen", "resume": "lightyellow", "skip": "lightgrey"}


def plan_lines(plan: Plan) -> Iterator[str]:
    """What is done, in the order of the run."""
    if plan.undo:
        yield "undo"
        for undo in plan.undo:
            back = "no rows" if undo.to_version is None else f"v{undo.to_version}"
            yield f"  run     {undo.table_name}: from v{undo.from_version} back to {back}"
    for step in plan.steps:
        yield step.name
        for each in step.repositories:
            yield f"  {each.action:<7} {each.repo_id}: {each.why}"
        yield from _list("reads", (_pinned(name, version) for name, version in step.inputs.items()))
        yield from _list("writes", (*step.outputs, *(f"{name} (adds)" for name in step.adds_to)))
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


def _list(word: str, names: Iterable[str]) -> list[str]:
    text = ", ".join(names) or "the source"
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {word:<7} ", subsequent_indent=" " * 10)


def _pinned(name: str, version: int | None) -> str:
    return f"{name} (new)" if version is None else f"{name} v{version}"


def dot(plan: Plan) -> str:
    """The steps and the tables between them, as Graphviz draws them."""
    return "\n".join(("digraph plan {", "  rankdir=LR;", *_lines(plan), "}"))


def _lines(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        said = "\n".join((step.name, *(f"{each.repo_id}: {each.action}" for each in step.repositories)))
        look = f"shape=box, style=filled, fillcolor={_colour(step)}, label={_text(said)}"
        yield f"  {_text(step.name)} [{look}];"
        for name, version in step.inputs.items():
            label = "new" if version is None else f"v{version}"
            yield f"  {_text(f'table {name}')} -> {_text(step.name)} [label={_text(label)}];"
        for name in (*step.outputs, *step.adds_to):
            yield f"  {_text(f'table {name}')} [label={_text(name)}];"
            yield f"  {_text(step.name)} -> {_text(f'table {name}')};"


def _colour(step: PlannedStep) -> str:
    actions = {each.action for each in step.repositories}
    return next((colour for action, colour in COLOURS.items() if action in actions), "white")


def _text(value: str) -> str:
    # Graphviz reads a JSON text as its own, backslashes included.
    return json.encode(value).decode()
