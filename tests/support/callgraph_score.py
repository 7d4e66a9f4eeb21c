"""Load the labelled call-graph cases, and score a call graph against them.

A case is a folder `<construct>/<case>` with sources and `expected.json`:

    {"title": "A reassigned variable calls only what it holds last",
     "calls": {"main": ["main.B.m"]},        caller -> sorted callees, the whole call graph
     "refs": {"main.py:13:2": "main.B.m"},   optional: path:line:column (from 0) -> what is meant
     "unobserved": [["main.f", "main.g"]],   optional: labelled calls that a run does not take
     "elsewhere": [["main.use", "main.f"]],  optional: calls of a run that count for another caller
     "through": {"main": ["main.f"]},        optional: callers -> callees of the wrappers that they call
     "runs": false}                          optional: imports what need not be installed

A case is a repository of its own, `assignments.reassigned`, whose roots are its folder and every `src` in it.
`refs` name definitions and modules of the case by qualified name, names from outside by import path, and
variables by the name of their scope and their own.

Labels state what Python does; `callgraph_trace.py` checks them by a run. What counts as a call:

- a class call counts as its `__init__` (and `__new__`) of the repository, found by MRO; none found, no entry;
- an implicit call of a repository's method (operator, iteration, `with`, attribute, f-string) counts for the
  function where the expression stands; operators of builtin types and of external classes do not count;
- what a builtin runs (`map(f, xs)`, `sorted(key=f)`) is called by the function that calls the builtin;
- a decorator is called by the scope where the definition stands; `property`, its `setter` and `deleter`,
  `staticmethod` and `classmethod` are declarations and do not count;
- `raise Error` counts as the class call; `super()` is `builtins.super`.

And what a variable can hold:

- a local variable holds what reaches it: both branches of a condition, but not what was overwritten;
- a variable that functions share (global, captured, attribute) holds every value it is given;
- a parameter holds what the calls of the repository pass, `self` the instances it is called on. Only where
  there is no call, the annotation decides, and for `self` its class. An unknown receiver calls nothing.

    .venv/bin/codeanatomy callgraph --lake lake --format jsonl | .venv/bin/python -m support.callgraph_score
    construct          cases  exact  precision  recall
    assignments           11     11      1.000   1.000

Tests: `tests/unit/relate/test_callgraph_labels.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TextIO

from support.folders import CASES

FOLDER = CASES / "callgraph"

Calls = dict[str, list[str]]
Edge = tuple[str, str]


@dataclass(frozen=True)
class Case:
    """One labelled snippet."""

    construct: str
    name: str
    folder: Path
    title: str
    calls: Calls
    refs: dict[str, str]
    unobserved: frozenset[Edge]
    elsewhere: frozenset[Edge]
    through: Calls
    runs: bool

    @property
    def repo_id(self) -> str:
        return f"{self.construct}.{self.name}"

    @property
    def sources(self) -> list[Path]:
        return sorted(self.folder.rglob("*.py"))


@dataclass(frozen=True)
class CaseScore:
    """The score of one case: edges that are right, missing, and not expected."""

    case: Case
    right: frozenset[Edge]
    missing: frozenset[Edge]
    extra: frozenset[Edge]

    @property
    def exact(self) -> bool:
        return not self.missing and not self.extra


@dataclass(frozen=True)
class Score:
    """The sum over cases; a share of nothing is 1, as nothing went wrong."""

    name: str
    cases: int
    exact: int
    right: int
    missing: int
    extra: int

    @property
    def precision(self) -> float:
        found = self.right + self.extra
        return self.right / found if found else 1.0

    @property
    def recall(self) -> float:
        wanted = self.right + self.missing
        return self.right / wanted if wanted else 1.0


@cache
def cases() -> tuple[Case, ...]:
    """All cases, by construct and name."""
    return tuple(_case(path) for path in sorted(FOLDER.glob("*/*/expected.json")))


def _case(path: Path) -> Case:
    label = json.loads(path.read_text(encoding="utf-8"))
    return Case(
        construct=path.parent.parent.name,
        name=path.parent.name,
        folder=path.parent,
        title=label["title"],
        calls=label["calls"],
        refs=label.get("refs", {}),
        unobserved=frozenset((caller, callee) for caller, callee in label.get("unobserved", ())),
        elsewhere=frozenset((caller, callee) for caller, callee in label.get("elsewhere", ())),
        through=label.get("through", {}),
        runs=label.get("runs", True),
    )


def edges(calls: Calls) -> frozenset[Edge]:
    return frozenset((caller, callee) for caller, callees in calls.items() for callee in callees)


def scores(actual: dict[str, Calls]) -> list[CaseScore]:
    """Each case against its call graph in `actual`, keyed by repository; an absent one found nothing."""
    found = []
    for case in cases():
        wanted, got = edges(case.calls), edges(actual.get(case.repo_id, {}))
        found.append(CaseScore(case, wanted & got, wanted - got, got - wanted))
    return found


def by_construct(results: Iterable[CaseScore]) -> list[Score]:
    """One score per construct in order of name, then their total."""
    results = list(results)
    constructs = sorted({result.case.construct for result in results})
    parts = [_sum(name, [r for r in results if r.case.construct == name]) for name in constructs]
    return [*parts, _sum("total", results)]


def _sum(name: str, results: list[CaseScore]) -> Score:
    return Score(
        name,
        cases=len(results),
        exact=sum(result.exact for result in results),
        right=sum(len(result.right) for result in results),
        missing=sum(len(result.missing) for result in results),
        extra=sum(len(result.extra) for result in results),
    )


def report(results: list[CaseScore]) -> str:
    """Format the table, then for every inexact case the missing (-) and unexpected (+) edges."""
    lines = [f"{'construct':<18}{'cases':>6}{'exact':>7}{'precision':>11}{'recall':>8}"]
    lines += [
        f"{score.name:<18}{score.cases:>6}{score.exact:>7}{score.precision:>11.3f}{score.recall:>8.3f}"
        for score in by_construct(results)
    ]
    for result in results:
        if not result.exact:
            lines += ["", f"{result.case.repo_id}: {result.case.title}"]
            lines += [f"  - {caller} -> {callee}" for caller, callee in sorted(result.missing)]
            lines += [f"  + {caller} -> {callee}" for caller, callee in sorted(result.extra)]
    return "\n".join(lines)


def read(lines: TextIO) -> dict[str, Calls]:
    """The call graphs of a jsonl as `codeanatomy callgraph --format jsonl` prints it."""
    rows = (json.loads(line) for line in lines if line.strip())
    return {row["repo_id"]: row["calls"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description="Score a call graph against the labelled cases.")
    parser.add_argument("jsonl", nargs="?", help="one {repo_id, calls} per line; standard input if not given")
    path = parser.parse_args().jsonl
    if path is None:
        actual = read(sys.stdin)
    else:
        with Path(path).open(encoding="utf-8") as lines:
            actual = read(lines)
    print(report(scores(actual)))


if __name__ == "__main__":
    main()
