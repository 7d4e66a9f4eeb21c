"""What the last runs of a lake did, for people: `codeanatomy observe`.

    codeanatomy observe --lake lake                    # a few lines of every topic
    codeanatomy observe pruning --lake lake --last 50  # all of one

Figures that nobody has recorded are shown as "-". Tests: `tests/unit/lake/test_observations.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click
import msgspec

from codeanatomy.catalog.spec import MB
from codeanatomy.cli.options import Format, format_option, lake_option, limit_option
from codeanatomy.cli.printing import print_grid, print_json
from codeanatomy.query.status.activity import TOPICS, Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from codeanatomy.query.status.activity import Observation

# Lines of a topic where all are shown.
FEW = 5
# Characters of a sample or a reason.
SHORT = 80
MOST_RUNS = 10_000

Grid = tuple[tuple[str, ...], list[tuple[str, ...]]]


@click.command()
@click.argument("topic", required=False, type=click.Choice(get_args(Topic)))
@lake_option
@click.option(
    "--last",
    type=click.IntRange(min=1, max=MOST_RUNS),
    default=10,
    show_default=True,
    metavar="N",
    help="Runs to look at.",
)
@limit_option(100, "Lines of the topic to show.")
@format_option
def observe(topic: Topic | None, lake: str, last: int, limit: int, form: Format) -> None:
    """Say what the last runs did: what was slow, grew, was repeated, refused, pruned, cached, maintained."""
    from codeanatomy.query.status.activity import observe as asked

    found = asked(lake, last, topic, FEW if topic is None and form == "table" else limit)
    if form == "json":
        print_json(msgspec.to_builtins(found))
        return
    for name in (topic,) if topic else TOPICS:
        header, rows = (GRIDS if topic is None else {**GRIDS, "growth": _every_growth})[name](found)
        click.echo(f"{'' if topic or name == TOPICS[0] else chr(10)}{TITLES[name]}")
        if rows:
            print_grid(header, rows)
        else:
            click.echo("nothing recorded")
        if left := found.cut.get(name):
            how = "--limit" if topic else f"codeanatomy observe {name}"
            click.echo(f"{left:,} not shown ({how})", err=True)
    click.echo(f"{len(found.runs):,} runs, from {found.runs[-1]} to {found.runs[0]}", err=True)


TITLES: dict[Topic, str] = {
    "steps": "Steps, the slowest first",
    "growth": "Tables, the largest first",
    "retries": "Commits that were tried again, the newest first",
    "violations": "Rules that rows broke, the newest first",
    "pruning": "Files that scans had to read, most first",
    "caches": "Caches",
    "maintenance": "Maintenance, the newest first",
}


def _steps(found: Observation) -> Grid:
    return ("step", "runs", "failed", "last s", "median s", "slowest s", "in run", "skew", "spilled MB"), [
        (
            line.step,
            _count(line.runs),
            _count(line.failed),
            *(f"{each / 1000:.1f}" for each in (line.last_ms, line.median_ms, line.slowest_ms)),
            line.slowest_run,
            "-" if line.skew is None else f"{line.skew:.1f}",
            _megabytes(line.spilled_bytes),
        )
        for line in found.steps
    ]


def _growth(found: Observation) -> Grid:
    return ("table", "rows", "rows added", "files", "MB", "MB written"), [
        (
            line.table,
            _count(line.rows),
            "-" if line.rows_added is None else f"{line.rows_added:+,}",
            _count(line.files),
            _megabytes(line.bytes),
            _megabytes(line.bytes_written),
        )
        for line in found.growth
    ]


def _every_growth(found: Observation) -> Grid:
    """Run by run."""
    return ("table", "run", "rows", "commits", "rows written", "files written", "MB written"), [
        (
            line.table,
            each.run_id,
            _count(each.rows),
            _count(each.commits),
            _count(each.rows_written),
            _count(each.files_written),
            _megabytes(each.bytes_written),
        )
        for line in found.growth
        for each in line.runs
    ]


def _retries(found: Observation) -> Grid:
    return ("run", "table", "operation", "attempts", "lost against", "version"), [
        (
            line.run_id,
            line.table,
            line.operation,
            _count(line.attempts),
            ", ".join(dict.fromkeys(line.conflicts)) or "-",
            "given up" if line.version is None else _count(line.version),
        )
        for line in found.retries
    ]


def _violations(found: Observation) -> Grid:
    return ("run", "table", "rule", "condition", "such as"), [
        (line.run_id, line.table, line.rule, _short(line.condition), _short(line.sample))
        for line in found.violations
    ]


def _pruning(found: Observation) -> Grid:
    return ("table", "for", "scans", "files", "read", "pruned"), [
        (
            line.table,
            line.purpose,
            _count(line.scans),
            _count(line.total_files if line.counted else None),
            _count(line.candidate_files if line.counted else None),
            f"{line.pruned_files / line.total_files:.0%}" if line.total_files else "-",
        )
        for line in found.pruning
    ]


def _caches(found: Observation) -> Grid:
    return ("table", "policy", "uses", "hits", "MB"), [
        (line.table, line.policy, _count(line.uses), _count(line.hits), _megabytes(line.size_bytes))
        for line in found.caches
    ]


def _maintenance(found: Observation) -> Grid:
    return ("run", "table", "operation", "outcome", "files", "MB", "s", "reason"), [
        (
            line.run_id,
            line.table,
            line.operation,
            line.outcome,
            f"+{_count(line.files_added)} -{_count(line.files_removed)}",
            f"+{_megabytes(line.bytes_added)} -{_megabytes(line.bytes_removed)}",
            "-" if line.milliseconds is None else f"{line.milliseconds / 1000:.1f}",
            _short(line.reason),
        )
        for line in found.maintenance
    ]


GRIDS: dict[Topic, Callable[[Observation], Grid]] = {
    "steps": _steps,
    "growth": _growth,
    "retries": _retries,
    "violations": _violations,
    "pruning": _pruning,
    "caches": _caches,
    "maintenance": _maintenance,
}


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / MB:,.1f}"


def _short(text: str | None) -> str:
    if text is None:
        return "-"
    return text if len(text) <= SHORT else f"{text[:SHORT]}..."
