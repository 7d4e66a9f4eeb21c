"""Show the runs of a lake: what is published, which process writes, and what each run did.

    codeanatomy status --lake lake
    codeanatomy runs --lake lake
    codeanatomy runs show 20260501T12 --lake lake

Figures that were not recorded are shown as "-".
Tests: `tests/unit/query/test_status.py`, `tests/unit/query/test_runs.py`.
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
    Format,
    as_of_option,
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
    print_table,
)
from codeanatomy.config import load_settings

if TYPE_CHECKING:
    from codeanatomy.query.status.lake_status import LakeStatus, RepositoryStatus
    from codeanatomy.query.status.run_reports import RunReport, StepReport

# Repositories and errors of a run that are shown.
MAX_SHOWN = 20
# Characters of a commit or a fingerprint that are enough to identify it.
ID_CHARS = 12


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
    """List the runs of a lake, newest first, or show one."""
    if context.invoked_subcommand is not None:
        # Options before `show` apply to it, too.
        context.default_map = {"show": {"form": form, **({"lake": lake} if lake else {})}}
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
    click.echo(f"{listed.total:,} runs{cut}", err=True)


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
    hidden = report.total - len(report.repositories)
    shown = f"{report.total:,} repositories{f', {hidden:,} not shown (--limit)' if hidden > 0 else ''}"
    if report.run_id is None or report.published_at is None:
        click.echo("nothing is published", err=True)
    else:
        _print_note(f"published by run {report.run_id} at {_time(report.published_at)}: {shown}")
        opens_all = len(report.readers) == len(READERS)
        _print_note(f"readers of its tables: {'all' if opens_all else ', '.join(report.readers)}")
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
    line = report.line
    facts = {
        "run": line.run_id,
        "status": line.status,
        "started": _time(line.started_at),
        "seconds": f"{line.seconds:.1f}",
        "repositories": _part_text(line.succeeded, line.repositories),
        "rows": count_text(line.rows),
        "trace": report.trace_id or "-",
    }
    print_table(("fact", "value"), list(facts.items()))
    click.echo("")
    print_table(
        ("step", "status", "seconds", "rows", "MB", "jobs", "tasks", "skew", "spilled MB", "made from"),
        [_step_cells(step) for step in report.steps],
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
