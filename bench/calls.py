"""How many call sites the relate stage explains, package by package, and what that costs.

    PYTHONPATH=tests python bench/calls.py [PACKAGE ...]

A call site is a call that stands in the source; calls that operators, loops and the like make are left out.
Its targets are what may be called: functions, classes, and names outside of the repository. Relations per
call site count all rows that start from it or from its arguments. Everything is measured without the
optional witnesses, with each of them (`scip`: scip-python, `typed`: pyrefly) and with both, in processes of
their own; their own time is not counted.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from statistics import median

from analysis import Row, analyse
from witnesses import Cells, pyrefly_cells, scip_cells

from support import corpus

PACKAGES = ("requests", "flask", "toolz", "pyflakes", "commonmark", "django")
# The optional witnesses, one at a time and all together.
VARIANTS = ("", "scip", "typed", "scip,typed")
CALLS = ("CALLS", "CALLS_NAME", "INSTANTIATES")
CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
MB = 1024 * 1024


def sites(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows that say what a call site calls, by site."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["src_kind"] == "CALLSITE" and row["relation_kind"] in CALLS:
            found.setdefault(row["src_id"], []).append(row)
    return found


def targets(rows: list[Row]) -> set[str]:
    """What the call may be of: a class stands for its constructors; callbacks are no alternatives."""
    own = [row for row in rows if row["dst_id"] is not None and row["role"] != "callback"]
    made = {row["dst_id"] for row in own if row["relation_kind"] == "INSTANTIATES"}
    run = {
        row["dst_id"]
        for row in own
        if row["relation_kind"] != "INSTANTIATES"
        and not (made and (row["dst_qname"] or "").rpartition(".")[2] in CONSTRUCTORS)
    }
    return run | made


def per_site(rows: list[Row]) -> list[int]:
    """How many relations each call site has, with those of its arguments."""
    counted: Counter[str] = Counter()
    for row in rows:
        if row["src_kind"] == "CALLSITE":
            counted[row["src_id"]] += 1
        elif row["relation_kind"] == "PASSES_TO":
            counted[row["evidence"]["key"][0]] += 1
    return list(counted.values())


def share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})" if whole else "0"


def measure(package: str, witnesses: tuple[str, ...]) -> None:
    """Print the figures of one package."""
    folder = corpus.package(package)
    said: dict[str, Mapping[str, Cells]] = {}
    if "scip" in witnesses:
        said["scip"] = scip_cells(folder, package)
    if "typed" in witnesses:
        said["typed"] = pyrefly_cells(folder)
    analysis = analyse(folder, said)
    trees = map(ast.parse, analysis.sources.values())
    written = sum(isinstance(node, ast.Call) for tree in trees for node in ast.walk(tree))
    called = {key: rows for found in analysis.rows.values() for key, rows in sites(found).items()}
    counts = [len(targets(rows)) for rows in called.values()]
    reasons = Counter(row["reason"] for rows in called.values() for row in rows if row["dst_id"] is None)
    relations = sorted(each for found in analysis.rows.values() for each in per_site(found))
    at_99 = relations[int(len(relations) * 0.99)] if relations else 0
    total = sum(map(len, analysis.rows.values()))
    print(f"{package}, witnesses: {', '.join(witnesses) or 'none but our own'}")
    print(
        f"  files {len(analysis.sources):,}, relations {total:,}, call sites {len(counts):,} of {written:,}"
    )
    some, one = sum(1 for each in counts if each), counts.count(1)
    print(f"  with a target {share(some, len(counts))}, with exactly one {share(one, len(counts))}")
    why = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
    print(f"  without {share(counts.count(0), len(counts))}: {why}")
    shape = f"median {median(relations or [0]):g}, 99 % {at_99}, most {max(relations, default=0)}"
    print(f"  relations per call site: {shape}")
    spent = ", ".join(
        f"{step} {seconds:.1f} s (peak {analysis.peak_bytes[step] / MB:.0f} MB)"
        for step, seconds in analysis.seconds.items()
    )
    print(f"  {spent}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--witnesses", help="measure one package here, with these, divided by commas")
    given = parser.parse_args()
    if given.witnesses is not None:
        for package in given.packages:
            measure(package, tuple(filter(None, given.witnesses.split(","))))
        return
    for package in given.packages:
        for witnesses in VARIANTS:
            subprocess.run([sys.executable, __file__, package, "--witnesses", witnesses], check=True)


if __name__ == "__main__":
    main()
