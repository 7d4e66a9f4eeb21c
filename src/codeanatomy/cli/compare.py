"""Commands that compare: two runs of a lake, and a lake with what a build from nothing gives.

    codeanatomy diff 20260501T12 --lake lake --kind function
    codeanatomy verify --against-clean --lake lake

Tests: `tests/unit/query/test_run_diff.py`, `tests/unit/run/test_against_clean.py`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from codeanatomy.cli.answers import chosen, print_problem, print_rows
from codeanatomy.cli.options import (
    AnswerFormat,
    answer_format_option,
    lake_option,
    limit_option,
    repo_option,
)
from codeanatomy.cli.printing import print_grid, print_json, print_json_line
from codeanatomy.cli.sessions import session_for
from codeanatomy.config import load_settings
from codeanatomy.errors import EXIT_FINDINGS, CodeAnatomyError
from codeanatomy.query.answers import DEFAULT_LIMIT

if TYPE_CHECKING:
    from codeanatomy.query.checks.compare import Comparison
    from codeanatomy.query.diff.runs import RunDiff

# What people are told of a change, and how many of each kind there are.
COLUMNS = ("change", "kind", "symbol", "path", "line", "detail", "repo_id")
COUNTS = ("element", "kind", "added", "removed", "changed")


@click.command()
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="[RUN_B]", default="latest")
@lake_option
@repo_option
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind of nodes or edges.")
@limit_option(DEFAULT_LIMIT, "Rows to show.")
@answer_format_option
def diff(
    run_a: str,
    run_b: str,
    lake: str,
    repo_id: str | None,
    kinds: tuple[str, ...],
    limit: int,
    form: AnswerFormat | None,
) -> None:
    """List nodes and edges that were added, removed or changed between two runs.

    A run is named by its id or the first characters of it; `latest` is the newest, and what RUN_B is if it
    is not given.
    """
    from codeanatomy.query.diff.runs import diff_runs

    try:
        found = diff_runs(lake, run_a, run_b, kinds=kinds, repo_id=repo_id, limit=limit)
    except CodeAnatomyError as problem:
        print_problem(problem, form)
        raise
    if chosen(form) == "json":
        print_json({"status": "ok", **msgspec.to_builtins(found)})
    else:
        _print_diff(found, chosen(form))


def _print_diff(found: RunDiff, form: AnswerFormat) -> None:
    rows: list[dict[str, Any]] = [msgspec.to_builtins(row) for row in found.rows]
    if form in ("table", "markdown") and found.counts:
        counts: list[dict[str, Any]] = [msgspec.to_builtins(each) for each in found.counts]
        print_rows(COUNTS, counts, form, as_asked=True)
        click.echo("")
    print_rows((*COLUMNS, "id") if form == "csv" else COLUMNS, rows, form)
    cut = f", {found.cut:,} not shown ({found.more})" if found.cut else ""
    sums = ", ".join(f"{sum(getattr(each, how) for each in found.counts):,} {how}" for how in COUNTS[2:])
    told = [
        f"{sums} from run {found.run_a} to run {found.run_b}{cut}",
        *(f"note: {each}" for each in found.notes),
    ]
    if form == "markdown":
        click.echo("\n".join(("", *(f"- {line}" for line in told))))
    else:
        click.echo("\n".join(told), err=True)


def compare_with_clean(
    flags: tuple[str, ...], lake: str, repo_id: str | None, as_of: str | None, limit: int, form: str
) -> None:
    """Compare a lake with what a build of the same sources from nothing gives, and tell what differs."""
    from codeanatomy.delta.read.duck import local_path
    from codeanatomy.lake.snapshot import Snapshot
    from codeanatomy.progress import Progress
    from codeanatomy.query.checks.compare import compare_lakes
    from codeanatomy.run.clean_build import rebuilt

    began = time.monotonic()
    settings = load_settings(flags)
    # What is elsewhere is refused before anything is built.
    local_path(lake)
    here = Snapshot.open(lake, as_of)
    with tempfile.TemporaryDirectory(prefix="codeanatomy-clean-") as folder, Progress(sys.stderr) as progress:
        with session_for(settings, progress) as session:
            clean = rebuilt(here, settings, folder, progress, session, repo_id)
        found = compare_lakes(here, clean, list(clean.repositories), limit)
    runs = {name: row.run_id for name, row in here.select_repositories(repo_id).items()}
    _print_comparison(found, runs, lake, round(time.monotonic() - began, 3), form)
    if found.total:
        raise SystemExit(EXIT_FINDINGS)


def _print_comparison(found: Comparison, runs: dict[str, str], lake: str, seconds: float, form: str) -> None:
    if form == "json":
        told = {"lake": lake, "runs": runs, "total": found.total, "seconds": seconds}
        print_json({**told, **msgspec.to_builtins(found)})
    elif form == "jsonl":
        for row in found.differences:
            print_json_line(msgspec.to_builtins(row))
    elif found.differences:
        print_grid(
            ("table", "side", "place", "key", "differs", "row", "repository"),
            [
                (
                    each.table,
                    each.side,
                    each.place,
                    " ".join(map(str, each.key.values())),
                    " ".join(each.differs),
                    each.row,
                    each.repo_id or "",
                )
                for each in found.differences
            ],
        )
    for name, counts in found.tables.items():
        click.echo(f"{name}: {counts.only_here:,} rows only here, {counts.only_clean:,} only clean", err=True)
    hidden = found.total - sum(each.times for each in found.differences)
    cut = f", {hidden:,} not shown (--limit)" if hidden else ""
    click.echo(
        f"{found.total:,} rows differ{cut}; {sum(found.rows.values()):,} rows of {len(found.rows)} tables of"
        f" {len(runs):,} repositories, here and clean together, in {seconds:.1f} s",
        err=True,
    )
