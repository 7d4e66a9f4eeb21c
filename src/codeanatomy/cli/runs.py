"""Commands about the runs of a lake: what is published, who writes, and what each run has done.

    codeanatomy status --lake lake
    codeanatomy runs --lake lake
    codeanatomy runs show 20260501T12 --lake lake

Figures that nobody has recorded are shown as "-". Tests: `tests/unit/query/test_status.py`, `tests/unit/query/test_runs.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from codeanatomy.catalog.spec import MB
from codeanatomy.cli.options import (
    Format,
    as_of_option,
    format_option,
    lake_choice,
    lake_option,
    limit_option,
)
from codeanatomy.cli.printing import harmless, print_grid, print_json
from codeanatomy.config import load_settings

if TYPE_CHECKING:
    from codeanatomy.query.status.runs import RunReport, StepLine
    from codeanatomy.query.status.status import LakeStatus, RepositoryStatus

# Repositories of a run that are shown.
SHOWN = 20
# Characters of a commit or a fingerprint that tell it from others.
SHORT = 12


@click.command()
@lake_option
@as_of_option
@limit_option(100, "Repositories to show.")
@format_option
@click.pass_obj
def status(flags: tuple[str, ...], lake: str, as_of: str | None, limit: int, form: Format) -> None:
    """Say what a lake has published, from what, and whether the sources have changed since."""
    from codeanatomy.query.status.status import status as asked

    found = asked(lake, load_settings(flags).extract, as_of, limit)
    if form == "json":
        print_json(msgspec.to_builtins(found))
        return
    if found.repositories:
        print_grid(
            ("repository", "source is", "commit", "files", "nodes", "edges", "built", "run", "source"),
            [_repository(row) for row in found.repositories],
        )
    _tell(found)


@click.group(invoke_without_command=True)
@lake_choice(required=False)
@limit_option(20, "Runs to show.")
@format_option
@click.pass_context
def runs(context: click.Context, lake: str | None, limit: int, form: Format) -> None:
    """List the runs of a lake, newest first, or show one."""
    if context.invoked_subcommand is not None:
        # What was said before `show` holds for it.
        context.default_map = {"show": {"form": form, **({"lake": lake} if lake else {})}}
        return
    if lake is None:
        raise click.UsageError("Missing option '--lake'.", context)
    from codeanatomy.query.status.runs import runs as asked

    found = asked(lake, limit)
    if form == "json":
        print_json(msgspec.to_builtins(found))
        return
    print_grid(
        ("run", "status", "mode", "started", "seconds", "repositories", "rows", "skipped"),
        [
            (
                row.run_id,
                row.status,
                row.mode,
                _time(row.started_at),
                f"{row.seconds:.1f}",
                _part(row.succeeded, row.repositories),
                _count(row.rows),
                ", ".join(_share(step, count, row.succeeded) for step, count in row.skipped.items()) or "-",
            )
            for row in found.rows
        ],
    )
    cut = f", {found.total - len(found.rows):,} not shown (--limit)" if found.total > len(found.rows) else ""
    click.echo(f"{found.total:,} runs{cut}", err=True)


@runs.command("show")
@click.argument("run_id", metavar="ID")
@lake_option
@format_option
def runs_show(run_id: str, lake: str, form: Format) -> None:
    """Show one run, by its ID or the first characters of it: its steps, tables and repositories."""
    from codeanatomy.query.status.runs import run_report

    found = run_report(lake, run_id)
    if form == "json":
        print_json(msgspec.to_builtins(found))
        return
    _print_run(found)


def _repository(row: RepositoryStatus) -> tuple[str, ...]:
    return (
        row.repo_id,
        row.source_state,
        _short(row.git_commit),
        _count(row.files),
        _count(row.nodes),
        _count(row.edges),
        _time(row.built_at),
        row.run_id,
        row.source or "-",
    )


def _tell(found: LakeStatus) -> None:
    """What is said beside the table: what is published, what failed, and who writes."""
    cut = f", {found.total - len(found.repositories):,} not shown (--limit)"
    shown = f"{found.total:,} repositories{cut if found.total > len(found.repositories) else ''}"
    if found.run_id is None or found.published_at is None:
        click.echo("nothing is published", err=True)
    else:
        _say(f"published by run {found.run_id} at {_time(found.published_at)}: {shown}")
    if found.failed is not None:
        _say(f"run {found.failed.run_id} has failed at {_time(found.failed.finished_at)}:")
        for name, error in list(found.failed.errors.items())[:SHOWN]:
            _say(f"  {name}: {error}")
        if len(found.failed.errors) > SHOWN:
            click.echo(f"  and {len(found.failed.errors) - SHOWN:,} more", err=True)
        click.echo(f"failures: codeanatomy errors --lake {shlex.quote(harmless(found.lake))}", err=True)
    if found.writer is not None:
        who = f"run {found.writer.run_id} on {found.writer.host}"
        names = ", ".join(found.writer.repositories[:SHOWN])
        if found.writer.state == "writing":
            _say(f"being written by {who} since {_time(found.writer.since)}: {names}")
        else:
            _say(f"{who} has ended without a word; the next build undoes what it has left")


def _redone(counts: Mapping[str, int] | None) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in (counts or {}).items()) or "-"


def _print_run(found: RunReport) -> None:
    line = found.line
    facts = {
        "run": line.run_id,
        "status": line.status,
        "started": _time(line.started_at),
        "seconds": f"{line.seconds:.1f}",
        "repositories": _part(line.succeeded, line.repositories),
        "rows": _count(line.rows),
        "trace": found.trace_id or "-",
    }
    print_grid(("fact", "value"), list(facts.items()))
    click.echo("")
    print_grid(
        ("step", "status", "seconds", "rows", "MB", "jobs", "tasks", "skew", "spilled MB", "made from"),
        [_step(step) for step in found.steps],
    )
    if found.pins:
        click.echo("")
        print_grid(
            ("table", "before", "after", "rows"),
            [(pin.table, _count(pin.before), _count(pin.after), _count(pin.rows)) for pin in found.pins],
        )
    click.echo("")
    # Those with something to tell come first.
    rows = sorted(found.repositories, key=lambda row: (row.status == "succeeded", row.repo_id))
    print_grid(
        ("repository", "status", "mode", "files redone", "commit", "error"),
        [
            (
                row.repo_id,
                row.status,
                row.mode,
                _redone(found.redone.get(row.repo_id)),
                _short(row.git_commit),
                row.error or "",
            )
            for row in rows[:SHOWN]
        ],
    )
    for step in found.steps:
        if step.error:
            _say(f"{step.step}: {step.error}")
    if len(rows) > SHOWN:
        click.echo(f"{len(rows) - SHOWN:,} repositories not shown (--format json)", err=True)


def _step(step: StepLine) -> tuple[str, ...]:
    prints = step.fingerprints
    return (
        step.step,
        step.status or "-",
        "-" if step.milliseconds is None else f"{step.milliseconds / 1000:.1f}",
        _count(step.rows),
        _megabytes(step.bytes),
        _count(step.jobs),
        _count(step.tasks),
        "-" if step.skew is None else f"{step.skew:.1f}",
        _megabytes(step.spilled_bytes),
        f"{len(prints):,} fingerprints" if len(prints) > 1 else _short(next(iter(prints.values()), None)),
    )


def _say(text: str) -> None:
    click.echo(harmless(text), err=True)


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _short(text: str | None) -> str:
    return text[:SHORT] if text else "-"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / MB:,.1f}"


def _part(some: int, all_of_them: int) -> str:
    return f"{some:,}" if some == all_of_them else f"{some:,} of {all_of_them:,}"


def _share(step: str, count: int, of: int) -> str:
    return step if count == of else f"{step} {count:,}/{of:,}"
