"""Runtime truth: of the calls that a package's tests make, the share that the call graph has.

    PYTHONPATH=tests python bench/runtime.py [PACKAGE ...] [--all]

The tests run under `sys.setprofile` in a process of their own (`bench/recording.py`), on a copy. An observed
edge is a pair of caller and callee by qualified names, both in the repository; comprehensions and bodies of
classes count for the function around them. Printed apart:

    package            both ends in the package itself
    repository         with its tests
    library between    code from elsewhere called back; the caller is the nearest of the repository
    generators         seen when they begin, not when they are called: the caller is who asks for an element

What is missing is grouped by what our rows say of the calling expression. Exit code 1 if a package is below
the limit.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis import Analysis, Row, analyse, line_starts

from codeanatomy.relate.values.state import State
from support import corpus

RECORDING = Path(__file__).with_name("recording.py")
LIMIT = 0.85
# Package and what pytest is given besides the folder of the package.
PACKAGES = {
    "toolz": ["toolz", "tlz"],
    "pyflakes": ["pyflakes"],
    "commonmark": ["commonmark", "-o", "python_files=*_tests.py", "--hypothesis-seed=0"],
}
CALLS = ("CALLS", "CALLS_NAME", "INSTANTIATES")


class Edge(NamedTuple):
    """An observed call."""

    caller: str
    callee: str
    is_foreign: bool
    is_generator: bool
    in_tests: bool
    # Path and span of the calling expression.
    path: str
    bstart: int
    bend: int


def record(folder: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Run the tests on a copy of a package."""
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as name:
        work = Path(name).resolve()
        copy = shutil.copytree(folder, work / "repository")
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTHONPATH", None)
        command = [sys.executable, str(RECORDING), str(copy), str(work / "record.json"), *arguments]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        print(f"  tests: {(done.stdout.strip().splitlines() or [done.stderr[-500:]])[-1]}")
        record: dict[str, Any] = json.loads((work / "record.json").read_bytes())
        return record


class Counted(NamedTuple):
    """Observed edges, and those of them that the graph has."""

    observed: int
    had: int

    @property
    def share(self) -> float:
        return self.had / self.observed if self.observed else 1.0


class Places:
    """Lines, columns and functions of the analysed files."""

    def __init__(self, analysis: Analysis) -> None:
        self.values = analysis.values
        self.lines: dict[str, list[int]] = {}
        # Where lambdas begin, by path and the place of their body.
        self.lambdas: dict[str, dict[tuple[int, int], int]] = {}
        for path, source in analysis.sources.items():
            self.lines[path] = line_starts(source)
            self.lambdas[path] = {
                (node.body.lineno, node.body.col_offset): self.offset(path, node.lineno, node.col_offset)
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.Lambda)
            }

    def offset(self, path: str, line: int, column: int) -> int:
        starts = self.lines[path]
        return starts[min(line, len(starts)) - 1] + column

    def code(self, code: Sequence[Any], at: int) -> str:
        """The qualified name of a code, or of the function around it, by one of its places."""
        path, name, first_line, line, column, is_function, _ = code
        file = self.values.files[path]
        functions = self.values.programs[file].functions
        chosen = [number for number, function in enumerate(functions) if function.name == name]
        if not is_function:
            return self.around(path, at)
        if name == "<lambda>":
            start = self.lambdas[path].get((line, column))
            if start is None:
                return self.around(path, self.offset(path, line, column))
            chosen = [number for number, function in enumerate(functions) if function.place[0] == start]
        # After its decorators.
        begun = [(functions[number].place[2] or 0, number) for number in chosen]
        after = [each for each in begun if each[0] >= first_line]
        if not after:
            raise LookupError(f"{path}:{first_line}: {name} is no function that we know")
        return self.values.qualified_name(self.values.object("F", file, min(after)[1]))

    def around(self, path: str, at: int) -> str:
        """The innermost function at a place, or the module."""
        file = self.values.files[path]
        around = [
            (end - start, number)
            for number, function in enumerate(self.values.programs[file].functions)
            for start, end, _ in [function.place]
            if start is not None and end is not None and start <= at < end
        ]
        if not around:
            return self.values.names[file]
        return self.values.qualified_name(self.values.object("F", file, min(around)[1]))


def observed(record: dict[str, Any], places: Places) -> list[Edge]:
    """The recorded edges between functions of the analysed files, by qualified names."""
    found: dict[tuple[str, str, bool], Edge] = {}
    for caller, callee, foreign, site in record["edges"]:
        ends = [record["codes"][number] for number in (caller, callee)]
        if any(path not in places.values.files for path, *_ in ends):
            continue
        path = ends[0][0]
        line, end_line, column, end_column = site
        span = (
            (places.offset(path, line, column or 0), places.offset(path, end_line, end_column or 0))
            if line and end_line
            else (0, 0)
        )
        in_tests = any({"test", "tests"} & set(Path(end[0]).parts) for end in ends)
        names = [places.code(end, span[0]) for end in ends]
        edge = Edge(names[0], names[1], foreign, ends[1][-1], in_tests, path, *span)
        found.setdefault((edge.caller, edge.callee, foreign), edge)
    return [edge for edge in found.values() if not edge.is_foreign or not _direct(edge, found)]


def _direct(edge: Edge, found: Iterable[tuple[str, str, bool]]) -> bool:
    return (edge.caller, edge.callee, False) in found


class Causes:
    """Why an observed edge is not in the graph, by what is known of the calling expression."""

    def __init__(self, analysis: Analysis) -> None:
        self.rows: dict[tuple[str, int], list[Row]] = {}
        self.nodes: dict[tuple[str, int], list[ast.expr]] = {}
        places = Places(analysis)
        self.cut = cut_sites(analysis.values)
        for path, rows in analysis.rows.items():
            for row in rows:
                if row["relation_kind"] in CALLS and row["bend"] is not None:
                    self.rows.setdefault((path, row["bend"]), []).append(row)
        for path, source in analysis.sources.items():
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.expr):
                    end = places.offset(path, node.end_lineno or 1, node.end_col_offset or 0)
                    self.nodes.setdefault((path, end), []).append(node)
        self.places = places

    def of(self, edge: Edge) -> str:
        name = edge.callee.rpartition(".")[2]
        is_special = name.startswith("__") and name.endswith("__")
        nodes = [
            node
            for node in self.nodes.get((edge.path, edge.bend), ())
            if self.places.offset(edge.path, node.lineno, node.col_offset) <= edge.bstart
        ]
        if not any(isinstance(node, ast.Call) for node in nodes):
            kinds = sorted({type(node).__name__ for node in nodes if self._exact(edge, node)})
            run = name if is_special else "a function"
            return f"no call in the source: {'/'.join(kinds) or 'statement'} runs {run}"
        rows = self.rows.get((edge.path, edge.bend), [])
        rows = [row for row in rows if row["src_kind"] == "CALLSITE" and row["bstart"] <= edge.bstart]
        inside = [row["dst_qname"] for row in rows if row["dst_kind"] in ("FUNCTION", "CLASS")]
        outside = sorted({row["dst_qname"] for row in rows if row["dst_kind"] == "QUALIFIED_NAME"})
        reasons = sorted({row["reason"] for row in rows if row["dst_id"] is None})
        if any((edge.path, row["bstart"], row["bend"]) in self.cut for row in rows):
            return "call with more candidates than are followed"
        if edge.is_generator:
            return "generator that is made elsewhere, or not known to be made"
        if reasons:
            return f"call without a target: {', '.join(reasons)}"
        if inside:
            return "call with other targets"
        if outside:
            return f"{name if is_special else 'callback'} run by {outside[0]}"
        return "call without rows"

    def _exact(self, edge: Edge, node: ast.expr) -> bool:
        return self.places.offset(edge.path, node.lineno, node.col_offset) == edge.bstart


def cut_sites(values: State) -> set[tuple[str, int | None, int | None]]:
    """Call sites whose callees are too many to follow."""
    return {
        (program.path, *program.sites[op[3]].place[:2])
        for file, program in enumerate(values.programs)
        for op in program.ops
        if op[0] == "(" and values.node(file, op[1]) in values.truncated
    }


def line(title: str, edges: Sequence[Edge], graph: dict[str, set[str]]) -> Counted:
    """Print how many of these edges the graph has."""
    had = sum(1 for edge in edges if edge.callee in graph.get(edge.caller, ()))
    return tell(title, Counted(len(edges), had))


def tell(title: str, counted: Counted) -> Counted:
    print(f"  {title:32} observed {counted.observed:5,}, in the graph {counted.had:5,} ({counted.share:.1%})")
    return counted


def compare(package: str, show_all: bool) -> tuple[Counted, Counted]:
    """Print the figures of a package: its own edges, and those with its tests."""
    print(package)
    folder = corpus.package(package)
    record_of = record(folder, PACKAGES[package])
    analysis = analyse(folder)
    graph = {caller: set(callees) for caller, callees in analysis.graph.items()}
    edges = observed(record_of, Places(analysis))
    direct = [edge for edge in edges if not edge.is_foreign]
    called = [edge for edge in direct if not edge.is_generator]
    own = line("package", [edge for edge in called if not edge.in_tests], graph)
    share = line("repository", called, graph)
    line("repository, generators", [edge for edge in direct if edge.is_generator], graph)
    line("repository, library between", [edge for edge in edges if edge.is_foreign], graph)
    causes = Causes(analysis)
    missing: dict[str, list[Edge]] = {}
    for edge in edges:
        if edge.callee not in graph.get(edge.caller, ()):
            cause = "library between" if edge.is_foreign else causes.of(edge)
            missing.setdefault(cause, []).append(edge)
    for cause, group in sorted(missing.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"    {len(group):4} {cause}")
        for edge in group if show_all else group[:2]:
            print(f"           {edge.caller} -> {edge.callee}")
    covered = {edge.caller for edge in edges}
    functions = {edge.callee for edge in edges} | covered | set(graph)
    seen = {(edge.caller, edge.callee) for edge in edges}
    known = [(caller, callee) for caller in covered for callee in graph.get(caller, ())]
    unseen = Counter(edge in seen for edge in known if edge[1] in functions)
    print(f"  edges of callers that ran: {unseen[True]:,} observed, {unseen[False]:,} never", flush=True)
    return own, share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("packages", nargs="*", default=list(PACKAGES))
    parser.add_argument("--all", action="store_true", help="list every missing edge")
    given = parser.parse_args()
    found = [compare(package, given.all) for package in given.packages]
    print("together")
    for title, counts in zip(("package", "repository"), zip(*found, strict=True), strict=True):
        tell(title, Counted(*map(sum, zip(*counts, strict=True))))
    if any(counted.share < LIMIT for counts in found for counted in counts):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
