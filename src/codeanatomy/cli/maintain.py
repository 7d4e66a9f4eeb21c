"""Maintain the tables of a lake: by policy (`maintain`), or one operation at a time.

    codeanatomy maintain --lake lake --dry-run
    codeanatomy maintain --lake lake --no-wait            # for cron
    codeanatomy maintain --lake lake --readers all
    codeanatomy vacuum cpg_nodes --lake lake --retention-hours 240
    codeanatomy features cpg_nodes --lake lake --enable deletion_vectors

Exit code 0: all tables meet their policies. 5: an operation was refused, failed or waits for a build.
Tests: `tests/unit/maintain/test_maintain_command.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from codeanatomy.catalog.readers import readers_text
from codeanatomy.catalog.settings import Readers
from codeanatomy.catalog.spec import MB, FeatureName
from codeanatomy.cli.options import Format, format_option, lake_option
from codeanatomy.cli.printing import escape_unprintable, print_json, print_table
from codeanatomy.config import load_settings
from codeanatomy.errors import EXIT_FINDINGS, EXIT_STORAGE, UsageError
from codeanatomy.spark.lazy_session import session_for

if TYPE_CHECKING:
    from codeanatomy.maintain.inspection import Outcome
    from codeanatomy.maintain.maintenance import MaintenanceReport

Command = Callable[..., Any]
# The commands that do one operation.
OPERATIONS = {
    "optimize": "Merge the small files of each partition and drop deleted rows.",
    "zorder": "Rewrite each partition in the order of the table's policy.",
    "checkpoint": "Write a checkpoint of the newest version, so that readers open it faster.",
    "vacuum": "Delete data files that no published run, cursor or recent version needs.",
    "cleanup-log": "Delete log entries before the newest checkpoint that no reader needs.",
}
DELETING = ("vacuum", "cleanup-log")

COMMON = (
    click.argument("tables", nargs=-1, metavar="[TABLE]..."),
    lake_option,
    click.option("--dry-run", is_flag=True, help="Show what would be done and why, without doing it."),
    click.option(
        "--wait/--no-wait",
        default=True,
        show_default=True,
        help="Wait while a build writes the lake, or fail at once.",
    ),
)
RETENTION = (
    click.option(
        "--retention-hours",
        type=click.FloatRange(min=0, max=876_000, clamp=False),
        metavar="HOURS",
        help="Keep what was current or published in the last HOURS; default: the table's policy.",
    ),
    click.option(
        "--unsafe",
        is_flag=True,
        help="Allow a retention below 168 hours; safe only if no other process uses the lake.",
    ),
)
KEEP_NEEDED = click.option(
    "--keep-needed",
    is_flag=True,
    help="If some files are still needed, delete the others instead of refusing.",
)


def _add_options(options: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    """Return a decorator that adds options, in their order in the help."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.command()
@_add_options((*COMMON, *RETENTION, format_option))
@click.option(
    "--readers",
    type=click.Choice(get_args(Readers)),
    help="Only change which readers open the tables: all rewrites what deletion vectors mark and drops them, "
    "modern enables them.",
)
@click.pass_obj
def maintain(flags: tuple[str, ...], /, form: Format, readers: Readers | None, **options: Any) -> None:
    """Inspect the tables of a lake and do what their policies require.

    Compacts small files, restores the order of rows, writes checkpoints and deletes what no reader needs.
    Each operation and its reason are recorded in the table delta_maintenance. Safe to run at any time, also
    from cron: if there is nothing to do, nothing is written, and builds are not disturbed.

    With --readers, the tables are brought to the readers of the setting delta.readers, and nothing else is
    done.
    """
    if readers is None:
        _run(flags, form, **options)
    else:
        _change_readers(flags, form, readers, **options)


def _operation_command(name: str) -> click.Command:
    """Make the command of one operation."""
    options = (*COMMON, *((*RETENTION, KEEP_NEEDED) if name in DELETING else ()), format_option)

    @click.command(name, help=f"{OPERATIONS[name]}\n\nApplies to the given tables, or to all.")
    @_add_options(options)
    @click.pass_obj
    def command(flags: tuple[str, ...], /, form: Format, **options: Any) -> None:
        _run(flags, form, operations=(name.replace("-", "_"),), by_hand=True, **options)

    return command


COMMANDS = {name: _operation_command(name) for name in OPERATIONS}


@click.command()
@_add_options((*COMMON[:2], COMMON[3], format_option))
@click.option("--apply", is_flag=True, help="Set the properties that differ; starts Spark.")
@click.pass_obj
def properties(flags: tuple[str, ...], /, form: Format, apply: bool, **options: Any) -> None:
    """Show table properties that differ from the catalogue, or set them.

    Exit code 1 if some differ and were not set.
    """
    differing = _run(flags, form, operations=("properties",), by_hand=True, dry_run=not apply, **options)
    if differing and not apply:
        raise SystemExit(EXIT_FINDINGS)


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@lake_option
@click.option(
    "--enable", type=click.Choice(get_args(FeatureName)), help="Enable a feature; this cannot be undone."
)
@format_option
@click.pass_obj
def features(
    flags: tuple[str, ...], tables: tuple[str, ...], lake: str, enable: FeatureName | None, form: Format
) -> None:
    """Show the protocol, features and readers of tables, or enable an allowed feature."""
    from codeanatomy.maintain.features import Protocol, enable_feature, protocols
    from codeanatomy.progress import Progress

    settings = load_settings(flags)
    if enable is not None:
        with Progress(sys.stderr) as progress, session_for(settings, progress) as session:
            enable_feature(lake, settings, tables, enable, progress, session)
    rows: list[Protocol] = protocols(lake, settings, tables)
    if form == "json":
        print_json(msgspec.to_builtins(rows))
        return
    print_table(
        ("table", "version", "reader", "writer", "features", "allowed", "readers"),
        [
            (
                row.table,
                f"{row.version:,}",
                str(row.min_reader_version),
                str(row.min_writer_version),
                ", ".join(row.features) or "-",
                ", ".join(row.allowed) or "-",
                readers_text(row.features),
            )
            for row in rows
        ],
    )


def _run(flags: tuple[str, ...], form: Format, **options: Any) -> int:
    """Run the maintenance and print its report; return the number of operations."""
    from codeanatomy.maintain.inspection import MaintenanceRequest
    from codeanatomy.maintain.maintenance import maintain as maintain_lake
    from codeanatomy.progress import Progress

    settings = load_settings(flags)
    with Progress(sys.stderr) as progress, session_for(settings, progress) as session:
        report = maintain_lake(MaintenanceRequest(settings=settings, **options), progress, session)
    if form == "json":
        print_json(msgspec.to_builtins(report))
    else:
        _print_report(report)
    waiting = report.left_alone and not options.get("dry_run")
    if waiting or any(each.outcome in ("refused", "failed") for each in report.outcomes):
        raise SystemExit(EXIT_STORAGE)
    return len(report.outcomes)


def _change_readers(flags: tuple[str, ...], form: Format, readers: Readers, **options: Any) -> None:
    """Bring the tables of a lake to other readers, and print the report."""
    from codeanatomy.maintain.maintenance_run import WriteRequest
    from codeanatomy.maintain.readers import change_readers
    from codeanatomy.progress import Progress

    if options["tables"] or options["unsafe"] or options["retention_hours"] is not None:
        raise UsageError("--readers is for all tables of a lake", "leave out tables and retention")
    request = WriteRequest(options["lake"], load_settings(flags), options["wait"])
    with Progress(sys.stderr) as progress:
        report = change_readers(request, readers, progress, dry_run=options["dry_run"])
    if form == "json":
        print_json(msgspec.to_builtins(report))
    else:
        _print_report(report)


def _print_report(report: MaintenanceReport) -> None:
    if report.outcomes:
        print_table(
            ("table", "operation", "outcome", "version", "files", "MB", "seconds", "why"),
            [_outcome_cells(each) for each in report.outcomes],
        )
    for why in sorted(set(report.left_alone.values())):
        click.echo(f"left alone: {escape_unprintable(why)}", err=True)
    shown = {each.table_name for each in report.outcomes if each.operation in ("vacuum", "cleanup_log")}
    for name, why in report.kept.items():
        if name not in shown:
            click.echo(f"{name}: {escape_unprintable(why)}", err=True)
    if not report.before:
        click.echo(f"{_summary(report)} in {report.seconds:.1f} s", err=True)
        return
    files, size = sum(one.files for one in report.before), sum(one.bytes for one in report.before)
    dead = sum(one.dead_bytes for one in report.before)
    click.echo(
        f"{len(report.before):,} tables, {files:,} files, {size / MB:,.1f} MB and {dead / MB:,.1f} MB of old"
        f" versions; {_summary(report)} in {report.seconds:.1f} s",
        err=True,
    )


def _summary(report: MaintenanceReport) -> str:
    count = f"{len(report.outcomes):,} operation{'s' if len(report.outcomes) > 1 else ''}"
    if not report.outcomes:
        return "nothing to do"
    if report.run_id is None:
        return f"{count} would be done"
    return f"{count}, run {report.run_id}{' has published new versions' if report.published else ''}"


def _outcome_cells(each: Outcome) -> tuple[str, ...]:
    versions = "-" if each.delta_version is None else f"{each.from_version} -> {each.delta_version}"
    return (
        each.table_name,
        each.operation,
        each.outcome,
        versions,
        _change_text(each.files_removed, each.files_added, 1),
        _change_text(each.bytes_removed, each.bytes_added, MB),
        f"{each.duration_ms / 1000:.1f}",
        each.reason,
    )


def _change_text(removed: int | None, added: int | None, unit: int) -> str:
    """Format what was removed and added, such as `-12 +1`."""
    if removed is None and added is None:
        return "-"
    form = ",.0f" if unit == 1 else ",.1f"
    parts = [f"-{removed / unit:{form}}" if removed else "", f"+{added / unit:{form}}" if added else ""]
    return " ".join(part for part in parts if part) or "0"
