"""Compare and check graphs as a whole: `callgraph`, `diff` of two runs, and `verify`.

    codeanatomy callgraph --lake lake
    codeanatomy diff 20260501T12 --lake lake --kind function
    codeanatomy verify --lake lake --as-of 2026-05-01T12:00Z
    codeanatomy verify --lake lake --against-clean

Only `verify --against-clean`, which builds the sources again, needs a JVM, unless `runtime.engine` is local.
Tests: `tests/unit/query/test_verify.py`, `tests/unit/query/test_run_diff.py`,
`tests/unit/run/test_clean_build.py`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from codeanatomy.cli.options import (
    AnswerFormat,
    answer_format_option,
    as_of_option,
    format_choice,
    lake_option,
    limit_option,
    repo_option,
)
from codeanatomy.cli.printing import (
    effective_format,
    print_error,
    print_json,
    print_json_line,
    print_rows,
    print_table,
)
from codeanatomy.config import load_settings
from codeanatomy.errors import EXIT_FINDINGS, CodeAnatomyError
from codeanatomy.query.answers import DEFAULT_LIMIT
from codeanatomy.spark.lazy_session import session_for

if TYPE_CHECKING:
    from codeanatomy.query.checks.compare import Comparison
    from codeanatomy.query.diff.run_diff import RunDiff

# Columns of `diff`: of a changed node or edge, and of the number of changes per kind.
CHANGE_COLUMNS = ("change", "kind", "symbol", "path", "line", "detail", "repo_id")
COUNT_COLUMNS = ("element", "kind", "added", "removed", "changed")


@click.command()
@lake_option
@repo_option
@as_of_option
@format_choice("One object of callees by caller, or one line per repository.", "jsonl")
def callgraph(lake: str, repo_id: str | None, as_of: str | None, form: str) -> None:
    """Print the call graph by qualified names."""
    from codeanatomy.query.checks.callgraph import call_graphs, merge_call_graphs

    answer = call_graphs(lake, repo_id, as_of)
    graphs = answer.calls
    for name in answer.outdated:
        click.echo(
            f"{name} was last built without the relate stage; build it again without --until", err=True
        )
    if form == "json":
        print_json(merge_call_graphs(graphs.values()))
    elif form == "jsonl":
        for name, calls in graphs.items():
            click.echo(msgspec.json.encode({"repo_id": name, "calls": calls}).decode())
    else:
        callees = merge_call_graphs(graphs.values())
        pairs: list[tuple[str, ...]] = [(caller, each) for caller in callees for each in callees[caller]]
        print_table(("caller", "callee"), pairs)
        click.echo(f"{len(pairs):,} calls in {len(graphs):,} repositories", err=True)


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

    A run is given by its id or the first characters of it, or as `latest`, the newest; RUN_B is `latest` by
    default.
    """
    from codeanatomy.query.diff.run_diff import diff_runs

    try:
        changes = diff_runs(lake, run_a, run_b, kinds=kinds, repo_id=repo_id, limit=limit)
    except CodeAnatomyError as error:
        print_error(error, form)
        raise
    if effective_format(form) == "json":
        print_json({"status": "ok", **msgspec.to_builtins(changes)})
    else:
        _print_diff(changes, effective_format(form))


def _print_diff(changes: RunDiff, form: AnswerFormat) -> None:
    rows: list[dict[str, Any]] = [msgspec.to_builtins(row) for row in changes.rows]
    if form in ("table", "markdown") and changes.counts:
        counts: list[dict[str, Any]] = [msgspec.to_builtins(each) for each in changes.counts]
        print_rows(COUNT_COLUMNS, counts, form, every_column=True)
        click.echo("")
    print_rows((*CHANGE_COLUMNS, "id") if form == "csv" else CHANGE_COLUMNS, rows, form)
    cut = f", {changes.cut:,} not shown ({changes.more})" if changes.cut else ""
    sums = ", ".join(
        f"{sum(getattr(each, how) for each in changes.counts):,} {how}" for how in COUNT_COLUMNS[2:]
    )
    notes = [
        f"{sums} from run {changes.run_a} to run {changes.run_b}{cut}",
        *(f"note: {each}" for each in changes.notes),
    ]
    if form == "markdown":
        click.echo("\n".join(("", *(f"- {line}" for line in notes))))
    else:
        click.echo("\n".join(notes), err=True)


@click.command()
@lake_option
@repo_option
@as_of_option
@limit_option(20, "Findings to show of each rule, or of each table.")
@click.option(
    "--against-clean",
    is_flag=True,
    help="Instead, build the same sources into a temporary lake, and compare all tables row for row.",
)
@format_choice("Rows for people, one object with counts, or one line per finding.", "jsonl")
@click.pass_obj
def verify(
    flags: tuple[str, ...],
    lake: str,
    repo_id: str | None,
    as_of: str | None,
    limit: int,
    against_clean: bool,
    form: str,
) -> None:
    """Check the graph of a lake against the catalogue of kinds. Exit code 1 if there are findings."""
    if against_clean:
        _compare_with_clean_build(flags, lake, repo_id, as_of, limit, form)
        return
    from codeanatomy.query.checks.verify import verify as verify_graph

    report = verify_graph(lake, repo_id, limit, as_of)
    for name in report.unbuilt:
        click.echo(f"{name} was last built without the graph stage; build it again without --until", err=True)
    if form == "json":
        print_json(msgspec.to_builtins(report))
    elif form == "jsonl":
        for row in report.findings:
            click.echo(msgspec.json.encode(row).decode())
    elif report.findings:
        print_table(
            ("place", "rule", "table", "kind", "id", "message", "repository"),
            [
                (
                    row.place,
                    row.rule,
                    row.table,
                    row.kind or "",
                    row.entity_id or "",
                    row.message,
                    row.repo_id or "",
                )
                for row in report.findings
            ],
        )
    hidden = report.total - len(report.findings)
    cut = f", {hidden:,} not shown (--limit)" if hidden else ""
    click.echo(
        f"{report.total:,} findings{cut}; {len(report.rules)} rules over {sum(report.rows.values()):,} rows"
        f" of {len(report.runs):,} repositories in {report.seconds:.1f} s",
        err=True,
    )
    if report.newer:
        click.echo(f"not checked: unpublished versions of {', '.join(report.newer)}", err=True)
    if report.total:
        raise SystemExit(EXIT_FINDINGS)


def _compare_with_clean_build(
    flags: tuple[str, ...], lake: str, repo_id: str | None, as_of: str | None, limit: int, form: str
) -> None:
    """Compare a lake, row for row, with a build of the same sources into a temporary lake."""
    from codeanatomy.lake.snapshot import Snapshot
    from codeanatomy.progress import Progress
    from codeanatomy.query.checks.compare import compare_lakes
    from codeanatomy.run.clean_build import build_clean

    began = time.monotonic()
    settings = load_settings(flags)
    here = Snapshot.open(lake, as_of)
    with tempfile.TemporaryDirectory(prefix="codeanatomy-clean-") as folder, Progress(sys.stderr) as progress:
        with session_for(settings, progress) as session:
            clean = build_clean(here, settings, folder, progress, session, repo_id)
        comparison = compare_lakes(here, clean, list(clean.repositories), limit)
    runs = {name: row.run_id for name, row in here.select_repositories(repo_id).items()}
    _print_comparison(comparison, runs, lake, round(time.monotonic() - began, 3), form)
    if comparison.total:
        raise SystemExit(EXIT_FINDINGS)


def _print_comparison(
    comparison: Comparison, runs: dict[str, str], lake: str, seconds: float, form: str
) -> None:
    if form == "json":
        head = {"lake": lake, "runs": runs, "total": comparison.total, "seconds": seconds}
        print_json({**head, **msgspec.to_builtins(comparison)})
    elif form == "jsonl":
        for row in comparison.differences:
            print_json_line(msgspec.to_builtins(row))
    elif comparison.differences:
        print_table(
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
                for each in comparison.differences
            ],
        )
    for name, counts in comparison.tables.items():
        click.echo(f"{name}: {counts.only_here:,} rows only here, {counts.only_clean:,} only clean", err=True)
    hidden = comparison.total - sum(each.times for each in comparison.differences)
    cut = f", {hidden:,} not shown (--limit)" if hidden else ""
    click.echo(
        f"{comparison.total:,} rows differ{cut}; {sum(comparison.rows.values()):,} rows of"
        f" {len(comparison.rows)} tables of {len(runs):,} repositories, here and clean together,"
        f" in {seconds:.1f} s",
        err=True,
    )
