"""Show the runs of a lake: what is published, which process writes, and what each run did.

    codeanatomy status --lake lake
    codeanatomy runs --lake lake
    codeanatomy runs show 20260501T12 --lake lake
    codeanatomy runs compare 20260501T12 latest --lake lake       # why was this run slower?

Figures that were not recorded are shown as "-".
Tests: `tests/unit/query/test_status.py`, `tests/unit/query/test_runs.py`,
`tests/unit/query/test_run_comparison.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from codeanatomy.catalog.readers import READERS
from codeanatomy.cli.options import (
    AnswerFormat,
    Format,
    as_of_option,
    format_choice,
    format_option,
    lake_choice,
    lake_option,
    limit_option,
)
from codeanatomy.cli.printing import (
    count_text,
    escape_unprintable,
    megabytes_text,
    print_json,
    print_rows,
    print_table,
)
from codeanatomy.config import load_settings

if TYPE_CHECKING:
    from codeanatomy.query.status.lake_status import LakeStatus, RepositoryStatus
    from codeanatomy.query.status.run_comparison import CostDifference, RunComparison
    from codeanatomy.query.status.run_reports import RunReport, StepReport

# Repositories and errors of a run that are shown.
MAX_SHOWN = 20
# Characters of a commit or a fingerprint that are enough to identify it.
ID_CHARS = 12
# Characters of an operator or a fact that are shown of two runs side by side.
MAX_PLAN_CHARS = 80


@click.command()
@lake_option
@as_of_option
@limit_option(100, "Repositories to show.")
@format_option
@click.pass_obj
def status(flags: tuple[str, ...], lake: str, as_of: str | None, limit: int, form: Format) -> None:
    """Show what a lake has published, and whether the sources have changed since."""
    from codeanatomy.query.status.lake_status import status as lake_status

    settings = load_settings(flags)
    report = lake_status(lake, settings.extract, as_of, limit, settings.runtime)
    if form == "json":
        print_json(msgspec.to_builtins(report))
        return
    if report.repositories:
        print_table(
            ("repository", "source is", "commit", "files", "nodes", "edges", "built", "run", "source"),
            [_repository_cells(row) for row in report.repositories],
        )
    _print_state(report)


@click.group(invoke_without_command=True)
@lake_choice(required=False)
@limit_option(20, "Runs to show.")
@format_option
@click.pass_context
def runs(context: click.Context, lake: str | None, limit: int, form: Format) -> None:
    """List, show or compare the runs of a lake."""
    if context.invoked_subcommand is not None:
        # Options before the subcommand apply to it, too.
        given = {"form": form, **({"lake": lake} if lake else {})}
        context.default_map = {"show": given, "compare": given}
        return
    if lake is None:
        raise click.UsageError("Missing option '--lake'.", context)
    from codeanatomy.query.status.run_reports import runs as lake_runs

    listed = lake_runs(lake, limit)
    if form == "json":
        print_json(msgspec.to_builtins(listed))
        return
    print_table(
        ("run", "status", "mode", "started", "seconds", "repositories", "rows", "skipped"),
        [
            (
                row.run_id,
                row.status,
                row.mode,
                _time(row.started_at),
                f"{row.seconds:.1f}",
                _part_text(row.succeeded, row.repositories),
                count_text(row.rows),
                ", ".join(_skipped_text(step, count, row.succeeded) for step, count in row.skipped.items())
                or "-",
            )
            for row in listed.rows
        ],
    )
    hidden = listed.total - len(listed.rows)
    cut = f", {hidden:,} not shown (--limit)" if hidden > 0 else ""
    click.echo(f"{listed.total:,} run{'' if listed.total == 1 else 's'}{cut}", err=True)


@runs.command("show")
@click.argument("run_id", metavar="ID")
@lake_option
@format_option
def runs_show(run_id: str, lake: str, form: Format) -> None:
    """Show one run: steps, tables and repositories.

    ID is the id of the run, or the first characters of it.
    """
    from codeanatomy.query.status.run_reports import run_report

    report = run_report(lake, run_id)
    if form == "json":
        print_json(msgspec.to_builtins(report))
        return
    _print_run(report)


@runs.command("compare")
@click.argument("run_a", metavar="A")
@click.argument("run_b", metavar="[B]", default="latest")
@lake_option
@limit_option(10, "Lines of each kind to show.")
@format_choice("Output format.", "jsonl", "csv", "markdown")
def runs_compare(run_a: str, run_b: str, lake: str, limit: int, form: AnswerFormat) -> None:
    """Compare two runs, to see why one was slower.

    A and B are ids of runs, the first characters of them, or `latest`, which is also the default of B. What
    took longer or wrote more comes first; then frames of Spark and their operators, settings and versions.
    """
    from codeanatomy.query.status.run_comparison import LINE_COLUMNS, compare_runs, comparison_lines

    compared = compare_runs(lake, run_a, run_b, limit=limit)
    if form == "json":
        print_json(msgspec.to_builtins(compared))
    elif form == "table":
        _print_comparison(compared)
    else:
        print_rows(LINE_COLUMNS, comparison_lines(compared), form, every_column=True)
    for note in compared.notes:
        _print_note(f"note: {note}")
    for kind, left in compared.cut.items():
        click.echo(f"{kind}: {left:,} not shown (--limit)", err=True)


def _print_comparison(compared: RunComparison) -> None:
    a, b = compared.a, compared.b
    print_table(
        ("run", "is", "status", "mode", "started", "seconds", "repositories", "rows"),
        [
            (
                run.run_id,
                name,
                run.status,
                run.mode,
                _time(run.started_at),
                f"{run.seconds:.1f}",
                f"{run.repositories:,}",
                count_text(run.rows),
            )
            for name, run in (("A", a), ("B", b))
        ],
    )
    if compared.costs:
        click.echo("")
        header = ("scope", "step", "name", "s A", "s B", "B - A", "rows A", "rows B", "MB A", "MB B")
        print_table(header, [_cost_cells(each) for each in compared.costs])
    if compared.frames:
        click.echo("")
        print_table(
            ("step", "frame", "plan", "s A", "s B"),
            [
                (each.step, each.frame, each.plan, _seconds(each.seconds_a), _seconds(each.seconds_b))
                for each in compared.frames
            ],
        )
    if compared.operators:
        click.echo("")
        print_table(
            ("step", "frame", "operator", "change", "A", "B"),
            [
                (
                    each.step,
                    each.frame,
                    each.operator,
                    each.change,
                    _operator_text(each.line_a, each.metrics_a),
                    _operator_text(each.line_b, each.metrics_b),
                )
                for each in compared.operators
            ],
        )
    click.echo("")
    if compared.facts:
        print_table(
            ("fact", "A", "B"),
            [(each.name, _fact_text(each.a), _fact_text(each.b)) for each in compared.facts],
        )
    else:
        click.echo("the same settings, versions and sources")


def _cost_cells(line: CostDifference) -> tuple[str, ...]:
    return (
        line.scope,
        line.step or "-",
        line.name,
        _seconds(line.seconds_a),
        _seconds(line.seconds_b),
        f"{line.seconds:+.2f}",
        count_text(line.rows_a),
        count_text(line.rows_b),
        megabytes_text(line.bytes_a),
        megabytes_text(line.bytes_b),
    )


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f}"


def _operator_text(line: str | None, metrics: Mapping[str, int]) -> str:
    """Describe an operator in a cell: the beginning of its line, and its metrics."""
    if line is None:
        return "-"
    figures = ", ".join(f"{name} {value:,}" for name, value in metrics.items())
    text = line if len(line) <= MAX_PLAN_CHARS else f"{line[:MAX_PLAN_CHARS]}..."
    return f"{text}; {figures}" if figures else text


def _fact_text(text: str | None) -> str:
    return "-" if text is None else text if len(text) <= MAX_PLAN_CHARS else f"{text[:MAX_PLAN_CHARS]}..."


def _repository_cells(row: RepositoryStatus) -> tuple[str, ...]:
    return (
        row.repo_id,
        row.source_state,
        _short(row.git_commit),
        count_text(row.files),
        count_text(row.nodes),
        count_text(row.edges),
        _time(row.built_at),
        row.run_id,
        row.source or "-",
    )


def _print_state(report: LakeStatus) -> None:
    """Print beside the table: what is published, the last failed run, and the process that writes."""
    from codeanatomy.lake.engine_facts import engine_text

    hidden = report.total - len(report.repositories)
    shown = f"{report.total:,} repositories{f', {hidden:,} not shown (--limit)' if hidden > 0 else ''}"
    if report.run_id is None or report.published_at is None:
        click.echo("nothing is published", err=True)
    else:
        _print_note(f"published by run {report.run_id} at {_time(report.published_at)}: {shown}")
        if report.engine_facts is not None:
            _print_note(f"engine of its newest build: {engine_text(report.engine_facts)}")
        opens_all = len(report.readers) == len(READERS)
        _print_note(f"readers of its tables: {'all' if opens_all else ', '.join(report.readers)}")
    if report.damaged:
        names = ", ".join(report.damaged)
        _print_note(f"damaged: {names}; `codeanatomy build` with all sources of the lake makes them again")
    if report.failed is not None:
        _print_note(f"run {report.failed.run_id} failed at {_time(report.failed.finished_at)}:")
        for name, error in list(report.failed.errors.items())[:MAX_SHOWN]:
            _print_note(f"  {name}: {error}")
        if len(report.failed.errors) > MAX_SHOWN:
            click.echo(f"  and {len(report.failed.errors) - MAX_SHOWN:,} more", err=True)
        lake = shlex.quote(escape_unprintable(report.lake))
        click.echo(f"failures: codeanatomy errors --lake {lake}", err=True)
    if report.writer is not None:
        writer = f"run {report.writer.run_id} on {report.writer.host}"
        names = ", ".join(report.writer.repositories[:MAX_SHOWN])
        if report.writer.state == "writing":
            _print_note(f"being written by {writer} since {_time(report.writer.since)}: {names}")
        else:
            _print_note(f"{writer} died before it finished; the next build undoes its changes")


def _redone_text(counts: Mapping[str, int] | None) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in (counts or {}).items()) or "-"


def _print_run(report: RunReport) -> None:
    from codeanatomy.lake.engine_facts import engine_text

    line = report.line
    facts = {
        "run": line.run_id,
        "status": line.status,
        "started": _time(line.started_at),
        "seconds": f"{line.seconds:.1f}",
        "repositories": _part_text(line.succeeded, line.repositories),
        "rows": count_text(line.rows),
        "engine": engine_text(line.engine_facts) if line.engine_facts else "-",
        "trace": report.trace_id or "-",
    }
    print_table(("fact", "value"), list(facts.items()))
    click.echo("")
    print_table(
        ("step", "status", "seconds", "rows", "MB", "jobs", "tasks", "skew", "spilled MB", "made from"),
        [_step_cells(step) for step in report.steps],
    )
    if report.frames:
        click.echo("")
        print_table(
            ("step", "frame", "seconds", "operators", "plan"),
            [
                (
                    frame.step,
                    frame.frame,
                    "-" if frame.milliseconds is None else f"{frame.milliseconds / 1000:.1f}",
                    count_text(frame.operators),
                    _short(frame.plan_hash),
                )
                for frame in report.frames
            ],
        )
    if report.pins:
        click.echo("")
        print_table(
            ("table", "before", "after", "rows"),
            [
                (pin.table, count_text(pin.before), count_text(pin.after), count_text(pin.rows))
                for pin in report.pins
            ],
        )
    click.echo("")
    # Failed repositories come first.
    rows = sorted(report.repositories, key=lambda row: (row.status == "succeeded", row.repo_id))
    print_table(
        ("repository", "status", "mode", "files redone", "commit", "error"),
        [
            (
                row.repo_id,
                row.status,
                row.mode,
                _redone_text(report.redone.get(row.repo_id)),
                _short(row.git_commit),
                row.error or "",
            )
            for row in rows[:MAX_SHOWN]
        ],
    )
    for step in report.steps:
        if step.error:
            _print_note(f"{step.step}: {step.error}")
    if len(rows) > MAX_SHOWN:
        click.echo(f"{len(rows) - MAX_SHOWN:,} repositories not shown (--format json)", err=True)


def _step_cells(step: StepReport) -> tuple[str, ...]:
    fingerprints = step.fingerprints
    return (
        step.step,
        step.status or "-",
        "-" if step.milliseconds is None else f"{step.milliseconds / 1000:.1f}",
        count_text(step.rows),
        megabytes_text(step.bytes),
        count_text(step.jobs),
        count_text(step.tasks),
        "-" if step.skew is None else f"{step.skew:.1f}",
        megabytes_text(step.spilled_bytes),
        f"{len(fingerprints):,} fingerprints"
        if len(fingerprints) > 1
        else _short(next(iter(fingerprints.values()), None)),
    )


def _print_note(text: str) -> None:
    click.echo(escape_unprintable(text), err=True)


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _short(text: str | None) -> str:
    return text[:ID_CHARS] if text else "-"


def _part_text(part: int, total: int) -> str:
    return f"{part:,}" if part == total else f"{part:,} of {total:,}"


def _skipped_text(step: str, count: int, total: int) -> str:
    return step if count == total else f"{step} {count:,}/{total:,}"
