"""Summarize the last runs of a lake: `codeanatomy observe`.

    codeanatomy observe --lake lake                    # a few lines of every topic
    codeanatomy observe pruning --lake lake --last 50  # all of one

Figures that were not recorded are shown as "-". Tests: `tests/unit/lake/test_observations.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click
import msgspec

from codeanatomy.cli.options import Format, format_option, lake_option, limit_option
from codeanatomy.cli.printing import count_text, megabytes_text, print_json, print_table
from codeanatomy.query.status.activity import TOPICS, Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from codeanatomy.query.status.activity import Observation

# Lines of each topic if all topics are shown.
LINES_PER_TOPIC = 5
# Characters of a sample or a reason.
MAX_TEXT_CHARS = 80
MAX_RUNS = 10_000

Cells = tuple[tuple[str, ...], list[tuple[str, ...]]]


@click.command()
@click.argument("topic", required=False, type=click.Choice(get_args(Topic)))
@lake_option
@click.option(
    "--last",
    type=click.IntRange(min=1, max=MAX_RUNS),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of runs to read.",
)
@limit_option(100, "Lines of the topic to show.")
@format_option
def observe(topic: Topic | None, lake: str, last: int, limit: int, form: Format) -> None:
    """Summarize the last runs: slow steps, growth, retries, pruning, maintenance.

    Without a TOPIC, shows a few lines of each.
    """
    from codeanatomy.query.status.activity import observe as observe_lake

    activity = observe_lake(
        lake, last, topic, LINES_PER_TOPIC if topic is None and form == "table" else limit
    )
    if form == "json":
        print_json(msgspec.to_builtins(activity))
        return
    for name in (topic,) if topic else TOPICS:
        header, rows = (TABLES if topic is None else {**TABLES, "growth": _growth_by_run})[name](activity)
        click.echo(f"{'' if topic or name == TOPICS[0] else chr(10)}{TITLES[name]}")
        if rows:
            print_table(header, rows)
        else:
            click.echo("nothing recorded")
        if left := activity.cut.get(name):
            how = "--limit" if topic else f"codeanatomy observe {name}"
            click.echo(f"{left:,} not shown ({how})", err=True)
    click.echo(f"{len(activity.runs):,} runs, from {activity.runs[-1]} to {activity.runs[0]}", err=True)


TITLES: dict[Topic, str] = {
    "steps": "Steps, the slowest first",
    "growth": "Tables, the largest first",
    "retries": "Commits that were tried again, the newest first",
    "violations": "Rules that rows broke, the newest first",
    "pruning": "Files that scans had to read, most first",
    "questions": "Questions, the slowest verb first",
    "maintenance": "Maintenance, the newest first",
}


def _steps(activity: Observation) -> Cells:
    return ("step", "runs", "failed", "last s", "median s", "slowest s", "in run", "skew", "spilled MB"), [
        (
            line.step,
            count_text(line.runs),
            count_text(line.failed),
            *(f"{each / 1000:.1f}" for each in (line.last_ms, line.median_ms, line.slowest_ms)),
            line.slowest_run,
            "-" if line.skew is None else f"{line.skew:.1f}",
            megabytes_text(line.spilled_bytes),
        )
        for line in activity.steps
    ]


def _growth(activity: Observation) -> Cells:
    return ("table", "rows", "rows added", "files", "MB", "MB written"), [
        (
            line.table,
            count_text(line.rows),
            "-" if line.rows_added is None else f"{line.rows_added:+,}",
            count_text(line.files),
            megabytes_text(line.bytes),
            megabytes_text(line.bytes_written),
        )
        for line in activity.growth
    ]


def _growth_by_run(activity: Observation) -> Cells:
    """Growth of each table run by run."""
    return ("table", "run", "rows", "commits", "rows written", "files written", "MB written"), [
        (
            line.table,
            each.run_id,
            count_text(each.rows),
            count_text(each.commits),
            count_text(each.rows_written),
            count_text(each.files_written),
            megabytes_text(each.bytes_written),
        )
        for line in activity.growth
        for each in line.runs
    ]


def _retries(activity: Observation) -> Cells:
    return ("run", "table", "operation", "attempts", "lost against", "version"), [
        (
            line.run_id,
            line.table,
            line.operation,
            count_text(line.attempts),
            ", ".join(dict.fromkeys(line.conflicts)) or "-",
            "given up" if line.version is None else count_text(line.version),
        )
        for line in activity.retries
    ]


def _violations(activity: Observation) -> Cells:
    return ("run", "table", "rule", "condition", "such as"), [
        (line.run_id, line.table, line.rule, _short(line.condition), _short(line.sample))
        for line in activity.violations
    ]


def _pruning(activity: Observation) -> Cells:
    return ("table", "for", "scans", "files", "read", "pruned"), [
        (
            line.table,
            line.purpose,
            count_text(line.scans),
            count_text(line.total_files if line.counted else None),
            count_text(line.candidate_files if line.counted else None),
            f"{line.pruned_files / line.total_files:.0%}" if line.total_files else "-",
        )
        for line in activity.pruning
    ]


def _questions(activity: Observation) -> Cells:
    return ("verb", "questions", "median s", "slowest s", "last: files", "MB", "rows"), [
        (
            line.verb,
            count_text(line.questions),
            f"{line.median_ms / 1000:.3f}",
            f"{line.slowest_ms / 1000:.3f}",
            count_text(line.files),
            megabytes_text(line.bytes),
            count_text(line.rows),
        )
        for line in activity.questions
    ]


def _maintenance(activity: Observation) -> Cells:
    return ("run", "table", "operation", "outcome", "files", "MB", "s", "reason"), [
        (
            line.run_id,
            line.table,
            line.operation,
            line.outcome,
            f"+{count_text(line.files_added)} -{count_text(line.files_removed)}",
            f"+{megabytes_text(line.bytes_added)} -{megabytes_text(line.bytes_removed)}",
            "-" if line.milliseconds is None else f"{line.milliseconds / 1000:.1f}",
            _short(line.reason),
        )
        for line in activity.maintenance
    ]


TABLES: dict[Topic, Callable[[Observation], Cells]] = {
    "steps": _steps,
    "growth": _growth,
    "retries": _retries,
    "violations": _violations,
    "pruning": _pruning,
    "questions": _questions,
    "maintenance": _maintenance,
}


def _short(text: str | None) -> str:
    if text is None:
        return "-"
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}..."
