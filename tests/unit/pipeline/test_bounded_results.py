"""No path of a build collects rows that grow with the input: every call that brings some is listed.

A new one fails this test. If what it brings is bounded, or a few bytes per file, it is added with the reason;
if it is rows, they stay with the executors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import codeanatomy

PACKAGE = Path(codeanatomy.__file__).parent
# Packages and modules on the path of a build.
SCANNED = ("pipeline", "run", "plan", "lake", "delta/write", "spark/executors.py")
COLLECTING = frozenset({"collect", "tail", "toJSON", "toPandas", "toArrow", "toLocalIterator"})

# By module and function: why the result is small.
ALLOWED = {
    "pipeline/executors/spark_executor.py:_run_job": "pieces named in SMALL, descriptions of data files",
    "pipeline/executors/spark_executor.py:read": "names of definitions, for an error message",
    "delta/write/checks.py:find_violation": "a sample of rows that break rules",
    "spark/executors.py:collect_reports": "a report per task of the check",
    "run/given_session.py:read_tested_versions": "two versions",
}
# Modules that pass a frame to Spark, or may: they run in any kind of session.
ANY_SESSION = ("pipeline", "run", "plan", "lake", "spark/executors.py")
# What a session of Spark Connect has not.
INTERNAL = frozenset(
    {"sparkContext", "rdd", "broadcast", "accumulator", "_jvm", "_jsc", "_jdf", "_jsparkSession", "_sc"}
)
# By module and function: why there is a JVM.
OWN_SESSION = {"run/build.py:_execute": "a session of the build's own"}


def calls(path: Path, names: frozenset[str]) -> Iterator[str]:
    """The functions of a module that name one of some attributes."""

    def visit(node: ast.AST, function: str) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # A function within another belongs to it.
            function = function or node.name
        # Also where the method is passed on and not called.
        if isinstance(node, ast.Attribute) and node.attr in names:
            yield function or "the module"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), "")


def functions(places: tuple[str, ...], names: frozenset[str]) -> set[str]:
    """The functions of packages and modules that name one of some attributes, with their modules."""
    modules = [
        path
        for place in (PACKAGE / each for each in places)
        for path in (sorted(place.rglob("*.py")) or [place])
    ]
    return {
        f"{path.relative_to(PACKAGE).as_posix()}:{function}"
        for path in modules
        for function in calls(path, names)
    }


def test_results_on_the_driver_are_bounded() -> None:
    found = functions(SCANNED, COLLECTING)
    assert found - ALLOWED.keys() == set(), "rows stay with the executors; or list why these are few"
    assert ALLOWED.keys() - found == set(), "no longer needed"


def test_a_build_runs_in_any_kind_of_session() -> None:
    """What needs the JVM of a session is in `spark`: to start ours, and to record plans and figures."""
    assert functions(ANY_SESSION, INTERNAL) == OWN_SESSION.keys()
