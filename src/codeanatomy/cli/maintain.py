"""Commands that keep a lake small, ordered and readable: by policy, or an operation by hand.

    codeanatomy maintain --lake lake --dry-run
    codeanatomy maintain --lake lake --no-wait            # for cron
    codeanatomy vacuum cpg_nodes --lake lake --retention-hours 240
    codeanatomy features cpg_nodes --lake lake --enable deletion_vectors

Exit code 0: all is as the policies want it. 5: something was refused, failed or waits for a build.
Tests: `tests/unit/maintain/test_maintain_command.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from codeanatomy.catalog.spec import MB, FeatureName
from codeanatomy.cli.options import Format, format_option, lake_option
from codeanatomy.cli.printing import harmless, print_grid, print_json
from codeanatomy.cli.sessions import session_for
from codeanatomy.config import load_settings
from codeanatomy.errors import EXIT_FINDINGS, EXIT_STORAGE

if TYPE_CHECKING:
    from codeanatomy.maintain.inspection import Outcome
    from codeanatomy.maintain.maintenance import UpkeepReport

Command = Callable[..., Any]
# The verbs that do one operation, with what they do.
VERBS = {
    "optimize": "Make one file of the small files of each partition, without removed rows.",
    "zorder": "Write the rows of each partition anew, in the Z-order of the table's policy.",
    "checkpoint": "Write a checkpoint of the newest version, so that readers need not read all entries.",
    "vacuum": "Delete data files that nobody needs: no published run, no cursor, no recent version.",
    "cleanup-log": "Delete log entries before the newest checkpoint that nobody looks behind.",
}
REMOVING = ("vacuum", "cleanup-log")

COMMON = (
    click.argument("tables", nargs=-1, metavar="[TABLE]..."),
    lake_option,
    click.option("--dry-run", is_flag=True, help="Say what would be done, and why; do nothing."),
    click.option(
        "--wait/--no-wait",
        default=True,
        show_default=True,
        help="Wait while a build writes the lake, or end at once.",
    ),
)
RETENTION = (
    click.option(
        "--retention-hours",
        type=click.FloatRange(min=0, max=876_000, clamp=False),
        metavar="HOURS",
        help="Keep what was current or published within so many hours; default: the table's policy.",
    ),
    click.option("--unsafe", is_flag=True, help="Allow a retention below 168 hours: nobody else is at work."),
)
KEEP_NEEDED = click.option(
    "--keep-needed", is_flag=True, help="Where something is needed, delete the rest instead of refusing."
)


def _with(options: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.command()
@_with((*COMMON, *RETENTION, format_option))
@click.pass_obj
def maintain(flags: tuple[str, ...], /, form: Format, **asked: Any) -> None:
    """Look at the tables of a lake, and do what their policies ask for.

    Small files are compacted, rows put in order again, logs checkpointed, and what nobody needs is deleted.
    What is done, and why, is recorded in the table delta_maintenance. May be run at any time, by cron too:
    where nothing is to be done nothing is written, and no build is disturbed.
    """
    _run(flags, form, **asked)


def _verb(name: str) -> click.Command:
    options = (*COMMON, *((*RETENTION, KEEP_NEEDED) if name in REMOVING else ()), format_option)

    @click.command(name, help=f"{VERBS[name]}\n\nOf all tables, or of those that are named.")
    @_with(options)
    @click.pass_obj
    def command(flags: tuple[str, ...], /, form: Format, **asked: Any) -> None:
        _run(flags, form, operations=(name.replace("-", "_"),), by_hand=True, **asked)

    return command


COMMANDS = {name: _verb(name) for name in VERBS}


@click.command()
@_with((*COMMON[:2], COMMON[3], format_option))
@click.option("--apply", is_flag=True, help="Set what differs; a session of Spark is opened for it.")
@click.pass_obj
def properties(flags: tuple[str, ...], /, form: Format, apply: bool, **asked: Any) -> None:
    """Show the properties of tables that differ from what the catalogue says, and set them.

    Exit code 1 if some differ and were not set.
    """
    differ = _run(flags, form, operations=("properties",), by_hand=True, dry_run=not apply, **asked)
    if differ and not apply:
        raise SystemExit(EXIT_FINDINGS)


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@lake_option
@click.option(
    "--enable", type=click.Choice(get_args(FeatureName)), help="Switch a feature on; there is no way back."
)
@format_option
@click.pass_obj
def features(
    flags: tuple[str, ...], tables: tuple[str, ...], lake: str, enable: FeatureName | None, form: Format
) -> None:
    """Show the protocol and features of tables, or switch on a feature that their policy allows."""
    from codeanatomy.maintain.features import Protocol, enable_feature, protocols
    from codeanatomy.progress import Progress

    settings = load_settings(flags)
    if enable is not None:
        with Progress(sys.stderr) as progress, session_for(settings, progress) as session:
            enable_feature(lake, settings, tables, enable, progress, session)
    found: list[Protocol] = protocols(lake, settings, tables)
    if form == "json":
        print_json(msgspec.to_builtins(found))
        return
    print_grid(
        ("table", "version", "reader", "writer", "features", "allowed"),
        [
            (
                row.table,
                f"{row.version:,}",
                str(row.min_reader_version),
                str(row.min_writer_version),
                ", ".join(row.features) or "-",
                ", ".join(row.allowed) or "-",
            )
            for row in found
        ],
    )


def _run(flags: tuple[str, ...], form: Format, **asked: Any) -> int:
    """Do it and print it; how many operations there were."""
    from codeanatomy.maintain.inspection import Upkeep
    from codeanatomy.maintain.maintenance import maintain as maintained
    from codeanatomy.progress import Progress

    settings = load_settings(flags)
    with Progress(sys.stderr) as progress, session_for(settings, progress) as session:
        found = maintained(Upkeep(settings=settings, **asked), progress, session)
    if form == "json":
        print_json(msgspec.to_builtins(found))
    else:
        _print(found)
    waits = found.left_alone and not asked.get("dry_run")
    if waits or any(each.outcome in ("refused", "failed") for each in found.outcomes):
        raise SystemExit(EXIT_STORAGE)
    return len(found.outcomes)


def _print(found: UpkeepReport) -> None:
    if found.outcomes:
        print_grid(
            ("table", "operation", "outcome", "version", "files", "MB", "seconds", "why"),
            [_line(each) for each in found.outcomes],
        )
    for why in sorted(set(found.left_alone.values())):
        click.echo(f"left alone: {harmless(why)}", err=True)
    told = {each.table_name for each in found.outcomes if each.operation in ("vacuum", "cleanup_log")}
    for name, why in found.kept.items():
        if name not in told:
            click.echo(f"{name}: {harmless(why)}", err=True)
    files, size = sum(one.files for one in found.before), sum(one.bytes for one in found.before)
    dead = sum(one.dead_bytes for one in found.before)
    click.echo(
        f"{len(found.before):,} tables, {files:,} files, {size / MB:,.1f} MB and {dead / MB:,.1f} MB of old"
        f" versions; {_ending(found)} in {found.seconds:.1f} s",
        err=True,
    )


def _ending(found: UpkeepReport) -> str:
    count = f"{len(found.outcomes):,} operation{'s' if len(found.outcomes) > 1 else ''}"
    if not found.outcomes:
        return "nothing to do"
    if found.run_id is None:
        return f"{count} would be done"
    return f"{count}, run {found.run_id}{' has published new versions' if found.published else ''}"


def _line(each: Outcome) -> tuple[str, ...]:
    made = "-" if each.delta_version is None else f"{each.from_version} -> {each.delta_version}"
    return (
        each.table_name,
        each.operation,
        each.outcome,
        made,
        _change(each.files_removed, each.files_added, 1),
        _change(each.bytes_removed, each.bytes_added, MB),
        f"{each.duration_ms / 1000:.1f}",
        each.reason,
    )


def _change(removed: int | None, added: int | None, unit: int) -> str:
    """What went and what came for it."""
    if removed is None and added is None:
        return "-"
    form = ",.0f" if unit == 1 else ",.1f"
    parts = [f"-{removed / unit:{form}}" if removed else "", f"+{added / unit:{form}}" if added else ""]
    return " ".join(part for part in parts if part) or "0"
