"""`codeanatomy sql`: one statement that reads, over the views.

    codeanatomy sql "SELECT caller FROM calls WHERE callee = 'json.loads'" --lake lake
    codeanatomy sql - --engine spark --lake lake < question.sql

Tests: `tests/unit/query/test_sql_command.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from codeanatomy.cli.answers import about, chosen, print_problem, print_rows
from codeanatomy.cli.options import (
    AnswerFormat,
    answer_format_option,
    as_of_option,
    lake_option,
    limit_option,
)
from codeanatomy.cli.printing import print_json
from codeanatomy.config import load_settings
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.query.answers import LIMIT
from codeanatomy.query.lake import Lake

if TYPE_CHECKING:
    from codeanatomy.query.sql.answer import SqlAnswer

# Longer texts are no questions of people.
TEXT_CHARS = 1_000_000


@click.command()
@click.argument("text", metavar="STATEMENT|-")
@lake_option
@as_of_option
@limit_option(LIMIT, "Rows to show.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1, max=3600),
    default=30.0,
    show_default=True,
    help="Time the answer may take.",
)
@click.option(
    "--engine",
    type=click.Choice(["light", "spark"]),
    default="light",
    show_default=True,
    help="DuckDB in this process, or a Spark session.",
)
@answer_format_option
@click.pass_obj
def sql(
    flags: tuple[str, ...],
    text: str,
    lake: str,
    as_of: str | None,
    limit: int,
    seconds: float,
    engine: str,
    form: AnswerFormat | None,
) -> None:
    """Ask one question in SQL, in Spark's dialect, over views such as symbols, calls and references.

    The statement may only read the views; docs/views.md lists them. With - it is read from standard input.
    """
    statement = sys.stdin.read(TEXT_CHARS) if text == "-" else text
    wanted = chosen(form)
    try:
        if engine == "spark":
            found = _by_spark(flags, lake, as_of, statement, limit, seconds)
        else:
            recorded = load_settings(flags).observe.record_queries
            asked = Lake.open(lake, as_of, record_queries=recorded)
            found = asked.sql(statement, limit=limit, seconds=seconds)
    except CodeAnatomyError as problem:
        print_problem(problem, form)
        raise
    if wanted == "json":
        print_json({"status": "ok", **msgspec.to_builtins(found)})
        return
    print_rows(found.columns, found.rows, wanted, as_asked=True)
    for line in about(found):
        click.echo(line, err=True)


def _by_spark(
    flags: tuple[str, ...], lake: str, as_of: str | None, text: str, limit: int, seconds: float
) -> SqlAnswer:
    """The same in a Spark session of our own."""
    from codeanatomy.query.sql.spark import run_spark_sql
    from codeanatomy.spark.session import close_session, open_session

    spark = open_session(load_settings(flags).runtime)
    try:
        return run_spark_sql(Lake.open(lake, as_of, spark=spark), text, limit=limit, seconds=seconds)
    finally:
        close_session(spark)
