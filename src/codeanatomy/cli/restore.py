"""Commands that bring a lake back to what it was, or take a copy of it as it was.

    codeanatomy restore --lake lake --run 20260501T12
    codeanatomy restore cpg_nodes --lake lake --to 4
    codeanatomy export-snapshot --lake lake --run 20260501T12 --to /backup/lake

Tests: `tests/unit/maintain/test_restore.py`, `tests/unit/maintain/test_snapshot_export.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from codeanatomy.catalog.spec import MB
from codeanatomy.cli.options import Format, as_of_option, format_option, lake_option, repo_option
from codeanatomy.cli.printing import harmless, print_grid, print_json
from codeanatomy.cli.sessions import session_for
from codeanatomy.config import load_settings

if TYPE_CHECKING:
    from codeanatomy.maintain.restore import RestoreReport
    from codeanatomy.maintain.snapshot_export import CopyForm, CopyReport

# As `export_snapshot` knows them, which is imported when it is needed.
FORMS = ("delta", "parquet")


@click.command()
@click.argument("table", required=False)
@lake_option
@click.option("--run", "run_id", metavar="RUN|TIME", help="Bring all tables back to what this run published.")
@click.option("--to", metavar="VERSION|TIME", help="Bring TABLE back to this version, or to that of a time.")
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait while another run writes the lake, or end at once.",
)
@format_option
@click.pass_obj
def restore(
    flags: tuple[str, ...],
    table: str | None,
    lake: str,
    run_id: str | None,
    to: str | None,
    wait: bool,
    form: Format,
) -> None:
    """Publish again what a run has left (--run), or give one TABLE the rows of an older version (--to).

    Nothing is rewritten or lost: what is there now can be restored in turn. A TABLE that is brought back
    alone does not follow from the others any more, so the next build does the steps again that make it and
    what comes after it.
    """
    if (table is None) == (run_id is None) or (table is None) != (to is None):
        raise click.UsageError("say either --run RUN, or TABLE --to VERSION")
    from codeanatomy.maintain.maintenance_run import Ask
    from codeanatomy.maintain.restore import restore_one, restore_run
    from codeanatomy.progress import Progress

    settings = load_settings(flags)
    ask = Ask(lake, settings, wait)
    with Progress(sys.stderr) as progress, session_for(settings, progress) as session:
        if run_id is not None:
            report = restore_run(ask, run_id, progress, session)
        else:
            report = restore_one(ask, table or "", to or "", progress, session)
    if form == "json":
        print_json(msgspec.to_builtins(report))
    else:
        _print_restored(report)


def _print_restored(report: RestoreReport) -> None:
    what = f"run {report.restored_run}" if report.restored_run else ", ".join(t.table for t in report.tables)
    if report.status == "unchanged":
        click.echo(f"nothing to do: {what} is what the lake has", err=True)
        return
    print_grid(
        ("table", "was", "restored", "is", "rows"),
        [
            (
                each.table,
                str(each.from_version),
                "no rows" if each.restored_version is None else str(each.restored_version),
                str(each.version),
                "-" if each.rows is None else f"{each.rows:,}",
            )
            for each in report.tables
        ],
    )
    by = f" by run {report.run_id}" if report.run_id else ""
    click.echo(f"{harmless(what)} is restored{by} in {report.seconds:.1f} s", err=True)
    if report.redone:
        click.echo(f"the next build does again: {', '.join(report.redone)}", err=True)
    for note in report.notes:
        click.echo(harmless(note), err=True)


@click.command("export-snapshot")
@lake_option
@click.option("--run", "run_id", metavar="RUN", help="The run that is copied; by default the newest.")
@as_of_option
@repo_option
@click.option(
    "--to",
    "target",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder of the copy, which is not there yet or empty.",
)
@click.option(
    "--form",
    "shape",
    type=click.Choice(FORMS),
    default="delta",
    show_default=True,
    help="A lake of its own, or a folder of Parquet files for each table.",
)
@format_option
def export_snapshot(
    lake: str,
    run_id: str | None,
    as_of: str | None,
    repo_id: str | None,
    target: Path,
    shape: CopyForm,
    form: Format,
) -> None:
    """Copy what a run has published to a folder that needs nothing of the lake.

    The copy is whole or not there. A build may go on meanwhile.
    """
    if run_id is not None and as_of is not None:
        raise click.UsageError("say either --run or --as-of")
    from codeanatomy.maintain.snapshot_export import export_snapshot as copied
    from codeanatomy.progress import Progress
    from codeanatomy.run.signals import stoppable

    with Progress(sys.stderr) as progress, stoppable():
        report = copied(
            lake,
            target,
            as_of=run_id or as_of,
            form=shape,
            repo_id=repo_id,
            tell=lambda said: progress.tell("copy", said),
        )
    if form == "json":
        print_json(msgspec.to_builtins(report))
    else:
        _print_copied(report)


def _print_copied(report: CopyReport) -> None:
    print_grid(
        ("table", "rows", "files", "MB"),
        [
            (
                each.table,
                "-" if each.rows is None else f"{each.rows:,}",
                f"{each.files:,}",
                f"{each.size_bytes / MB:,.1f}",
            )
            for each in report.tables
        ],
    )
    click.echo(
        f"run {report.run_id}, {len(report.repositories):,} repositories, {report.size_bytes / MB:,.1f} MB in"
        f" {report.seconds:.1f} s: {harmless(report.target)}",
        err=True,
    )


COMMANDS = {"restore": restore, "export-snapshot": export_snapshot}
