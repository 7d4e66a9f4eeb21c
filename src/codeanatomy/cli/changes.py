"""List the rows of tables that were inserted, removed or changed between two runs.

    codeanatomy changes --since 20260501T12 --lake lake                   # how many, by table and repository
    codeanatomy changes repo_files_v1 --since 20260501T12 --lake lake     # which
    codeanatomy changes relations_v1 --since 2026-05-01 --until latest --all-commits --lake lake
    codeanatomy changes relations_v1 --since 2026-05-01 --engine spark --lake s3://bucket/lake

A JVM is started for `--engine spark` only. Tests:
`tests/unit/query/test_changes.py`, `tests/spark/test_changes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from codeanatomy import catalog
from codeanatomy.cli.main import AT_ONCE
from codeanatomy.cli.options import (
    AnswerFormat,
    answer_format_option,
    lake_option,
    limit_option,
    repo_option,
)
from codeanatomy.cli.printing import (
    effective_format,
    escape_unprintable,
    print_error,
    print_json,
    print_rows,
    row_count,
)
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.query.answers import DEFAULT_LIMIT

if TYPE_CHECKING:
    from codeanatomy.query.diff.table_changes import ChangeCounts, TableChanges

COUNT_COLUMNS = ("table", "repo_id", "inserted", "removed", "changed")
# Columns for people.
CHANGE_COLUMNS = ("change", "key", "path", "line", "detail", "repo_id")
COMMIT_COLUMNS = ("change", "version", "time", "key", "path", "line", "repo_id")
# Characters of a value in `detail`.
MAX_VALUE_CHARS = 24


@click.command()
@click.argument("table", required=False)
@click.option(
    "--since",
    required=True,
    metavar="RUN|TIME",
    help="List what changed after this run (the first characters of its id), or after the newest run at a"
    " time such as 2026-05-01T12:00Z; a time before the first run lists everything.",
)
@click.option("--until", metavar="RUN|TIME", help="Last run of the window; default: the newest.")
@lake_option
@repo_option
@click.option(
    "--all-commits",
    is_flag=True,
    help="List each row that a commit deleted or inserted, with the commit's version and time, instead of the"
    " net effect.",
)
@click.option(
    "--allow-out-of-range", is_flag=True, help="If nothing was published after --since, print no rows."
)
@limit_option(DEFAULT_LIMIT, "Rows to show.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Rows to skip.")
@click.option(
    "--engine",
    type=click.Choice(("local", "spark")),
    default="local",
    show_default=True,
    help="local: DuckDB in this process; spark: a Spark session.",
)
@answer_format_option
@click.pass_obj
def changes(
    flags: tuple[str, ...],
    table: str | None,
    since: str,
    until: str | None,
    lake: str,
    repo_id: str | None,
    all_commits: bool,
    allow_out_of_range: bool,
    limit: int,
    offset: int,
    engine: Literal["local", "spark"],
    form: AnswerFormat | None,
) -> str | None:
    """List the rows of tables that were inserted, removed or changed between two runs.

    TABLE is a table with a change feed (repo_files_v1, relations_v1, diagnostics_norm_v1 and others). Without
    it the changed rows of each of them are counted, by repository.
    """
    from codeanatomy.query.diff.table_changes import ChangeCounts, change_counts, table_changes

    chosen = effective_format(form)
    in_spark = engine == "spark"
    window: dict[str, Any] = {"repo_id": repo_id, "allow_out_of_range": allow_out_of_range}
    page: dict[str, Any] = {"every_commit": all_commits, "limit": limit, "offset": offset}
    result: ChangeCounts | TableChanges
    try:
        if table is None and all_commits:
            raise click.UsageError("--all-commits needs a TABLE")
        if in_spark:
            result = _read_in_spark(flags, lake, table, since, until, **window, **page)
        elif table is None:
            result = change_counts(lake, since, until, **window)
        else:
            result = table_changes(lake, table, since, until, **window, **page)
    except CodeAnatomyError as error:
        print_error(error, form)
        raise
    if isinstance(result, ChangeCounts):
        _print_counts(result, chosen)
    else:
        _print_changes(result, chosen)
    return None if in_spark else AT_ONCE


def _read_in_spark(
    flags: tuple[str, ...],
    lake: str,
    table: str | None,
    since: str,
    until: str | None,
    *,
    repo_id: str | None,
    allow_out_of_range: bool,
    **page: Any,
) -> ChangeCounts | TableChanges:
    """Read counts or a page in a Spark session of its own."""
    from codeanatomy.config import load_settings
    from codeanatomy.delta.store import Store
    from codeanatomy.query.diff.change_windows import open_window, require_feed
    from codeanatomy.query.engines.spark_change_pages import change_page, change_totals
    from codeanatomy.spark.session import close_session, open_session

    # Wrong options are reported before a JVM starts.
    window = open_window(lake, since, until, allow_out_of_range=allow_out_of_range)
    window.check_repository(repo_id)
    if table is not None:
        require_feed(window, table)
    spark = open_session(load_settings(flags).runtime)
    try:
        store = Store(spark, lake)
        if table is None:
            return change_totals(store, window, repo_id)
        return change_page(store, window, table, repo_id=repo_id, **page)
    finally:
        close_session(spark)


def _print_counts(counts: ChangeCounts, form: AnswerFormat) -> None:
    if form == "json":
        print_json({"status": "ok", **msgspec.to_builtins(counts)})
        return
    print_rows(COUNT_COLUMNS, [msgspec.to_builtins(each) for each in counts.counts], form, every_column=True)
    sums = ", ".join(
        f"{sum(getattr(each, how) for each in counts.counts):,} {how}" for how in COUNT_COLUMNS[2:]
    )
    _print_note(f"{sums} in {len(counts.tables)} tables {_runs(counts)}", form)


def _print_changes(page: TableChanges, form: AnswerFormat) -> None:
    if form == "json":
        print_json({"status": "ok", **msgspec.to_builtins(page)})
        return
    if form == "jsonl":
        print_rows(page.columns, page.rows, form)
    elif form == "csv":
        rows = [{name: _csv_cell(value) for name, value in row.items()} for row in page.rows]
        print_rows(page.columns, rows, form)
    elif "change" in page.columns:
        print_rows(CHANGE_COLUMNS, list(_net_lines(page)), form)
    else:
        print_rows(COMMIT_COLUMNS, list(_commit_lines(page)), form)
    cut = f", {page.cut:,} not shown ({page.more})" if page.cut else ""
    versions = (
        f"versions {page.first_version} to {page.last_version} of {page.table}"
        if page.first_version <= page.last_version
        else f"{page.table} was not written"
    )
    _print_note(f"{row_count(page.total)} {_runs(page)}: {versions}{cut}", form)


def _net_lines(page: TableChanges) -> Iterator[dict[str, Any]]:
    """Yield the cells that people read of each change."""
    for row in page.rows:
        differing = row["was"] or {}
        detail = ", ".join(f"{name}: {_text(was)} -> {_text(row[name])}" for name, was in differing.items())
        yield {**_place_and_key(page, row), "change": row["change"], "detail": detail or None}


def _commit_lines(page: TableChanges) -> Iterator[dict[str, Any]]:
    """Yield the cells that people read of each row of the feed."""
    for row in page.rows:
        yield {
            **_place_and_key(page, row),
            "change": row["_change_type"],
            "version": row["_commit_version"],
            "time": _time(row["_commit_timestamp"]),
        }


def _place_and_key(page: TableChanges, row: Mapping[str, Any]) -> dict[str, Any]:
    from codeanatomy.query.diff.table_changes import line_of

    keys = (row[name] for name in catalog.table(page.table).primary_key if name != "path")
    return {
        "key": " ".join(str(each) for each in keys if each is not None),
        "path": row.get("path"),
        "line": line_of(row),
        "repo_id": row.get("repo_id"),
    }


def _csv_cell(value: object) -> object:
    """Return a value as text that a program can read back."""
    if isinstance(value, datetime):
        return _time(value)
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value


def _text(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}..."


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"


def _runs(page: ChangeCounts | TableChanges) -> str:
    return f"from {f'run {page.run_a}' if page.run_a else 'the beginning'} to run {page.run_b}"


def _print_note(text: str, form: AnswerFormat) -> None:
    """Print a line about the rows: below them in Markdown, which is made to be sent on, else on stderr."""
    if form == "markdown":
        click.echo(f"\n- {escape_unprintable(text)}")
    else:
        click.echo(escape_unprintable(text), err=True)
