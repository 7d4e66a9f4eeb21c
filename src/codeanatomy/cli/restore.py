"""Restore a lake to an earlier state (`restore`), or copy it as it was (`export-snapshot`).

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
from codeanatomy.cli.printing import escape_unprintable, print_json, print_table
from codeanatomy.config import load_settings
from codeanatomy.spark.lazy_session import session_for

if TYPE_CHECKING:
    from codeanatomy.maintain.restore import RestoreReport
    from codeanatomy.maintain.snapshot_export import CopyForm, CopyReport

# The forms of `export_snapshot`, repeated because it is imported only when called.
FORMS = ("delta", "parquet")


@click.command()
@click.argument("table", required=False)
@lake_option
@click.option("--run", "run_id", metavar="RUN|TIME", help="Restore all tables to what this run published.")
@click.option(
    "--to", metavar="VERSION|TIME", help="Restore TABLE to this version, or to its version at this time."
)
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait while another run writes the lake, or fail at once.",
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
    """Restore what a run published (--run), or an older version of TABLE (--to).

    No data is rewritten or lost: the present state can be restored in turn. A TABLE that is restored alone is
    not consistent with its inputs, so the next build repeats the step that makes it and all steps after it.
    """
    if (table is None) == (run_id is None) or (table is None) != (to is None):
        raise click.UsageError("give either --run RUN, or TABLE and --to VERSION")
    from codeanatomy.maintain.maintenance_run import WriteRequest
    from codeanatomy.maintain.restore import restore_run, restore_table_version
    from codeanatomy.progress import Progress

    settings = load_settings(flags)
    ask = WriteRequest(lake, settings, wait)
    with Progress(sys.stderr) as progress, session_for(settings, progress) as session:
        if run_id is not None:
            report = restore_run(ask, run_id, progress, session)
        else:
            report = restore_table_version(ask, table or "", to or "", progress, session)
    if form == "json":
        print_json(msgspec.to_builtins(report))
    else:
        _print_restore_report(report)


def _print_restore_report(report: RestoreReport) -> None:
    what = f"run {report.restored_run}" if report.restored_run else ", ".join(t.table for t in report.tables)
    if report.status == "unchanged":
        click.echo(f"nothing to do: the lake already has {what}", err=True)
        return
    print_table(
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
    click.echo(f"{escape_unprintable(what)} restored{by} in {report.seconds:.1f} s", err=True)
    if report.redone:
        click.echo(f"the next build repeats: {', '.join(report.redone)}", err=True)
    for note in report.notes:
        click.echo(escape_unprintable(note), err=True)


@click.command("export-snapshot")
@lake_option
@click.option("--run", "run_id", metavar="RUN", help="The run to copy; default: the newest.")
@as_of_option
@repo_option
@click.option(
    "--to",
    "target",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of the copy; must be empty or not exist.",
)
@click.option(
    "--form",
    "shape",
    type=click.Choice(FORMS),
    default="delta",
    show_default=True,
    help="A lake, or a folder of Parquet files for each table.",
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
    """Copy what a run published to a folder that works without the lake.

    The folder appears only when the copy is complete. Builds may run meanwhile.
    """
    if run_id is not None and as_of is not None:
        raise click.UsageError("give either --run or --as-of")
    from codeanatomy.maintain.snapshot_export import export_snapshot as copy_snapshot
    from codeanatomy.progress import Progress
    from codeanatomy.run.signals import raise_on_sigterm

    with Progress(sys.stderr) as progress, raise_on_sigterm():
        report = copy_snapshot(
            lake,
            target,
            as_of=run_id or as_of,
            form=shape,
            repo_id=repo_id,
            report=lambda text: progress.update("copy", text),
        )
    if form == "json":
        print_json(msgspec.to_builtins(report))
    else:
        _print_copy_report(report)


def _print_copy_report(report: CopyReport) -> None:
    print_table(
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
        f" {report.seconds:.1f} s: {escape_unprintable(report.target)}",
        err=True,
    )


COMMANDS = {"restore": restore, "export-snapshot": export_snapshot}
