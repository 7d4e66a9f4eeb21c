"""Ask a lake: the query verbs, each a command with the same options, `sql` and `explore`.

    codeanatomy callers Session.send --depth 2 --lake lake
    codeanatomy impact --diff main --lake lake --format markdown
    codeanatomy sql "SELECT caller FROM calls WHERE callee = 'json.loads'" --lake lake
    codeanatomy explore --lake lake --open
    codeanatomy sql - --engine spark --lake lake < question.sql

Only `sql --engine spark` needs a JVM. Tests: `tests/unit/query/test_questions.py`,
`tests/unit/query/test_sql_command.py`, `tests/unit/serve/test_server.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from codeanatomy.cli.main import AT_ONCE
from codeanatomy.cli.options import (
    AnswerFormat,
    answer_format_option,
    as_of_option,
    lake_option,
    limit_option,
    repo_option,
    wide_option,
)
from codeanatomy.cli.printing import (
    answer_notes,
    effective_format,
    print_answer,
    print_error,
    print_json,
    print_rows,
)
from codeanatomy.config import load_settings
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.query.answers import DEFAULT_LIMIT, MAX_DEPTH
from codeanatomy.query.ask import VERBS
from codeanatomy.query.walks.usage import DEFAULT_CONFIDENCE

if TYPE_CHECKING:
    from codeanatomy.lake.recorded_queries import Record
    from codeanatomy.query.sql.answer import SqlAnswer

DEPTH = click.IntRange(min=1, max=MAX_DEPTH)
SYMBOL = click.Argument(["names"], metavar="SYMBOL")
# Statements from standard input are read up to this length.
MAX_STATEMENT_CHARS = 1_000_000


def _depth(default: int, text: str) -> click.Option:
    return click.Option(["--depth"], type=DEPTH, default=default, show_default=True, help=text)


# Arguments and options of each verb, beside those that all verbs have.
PARAMETERS: dict[str, tuple[click.Parameter, ...]] = {
    "find": (
        click.Argument(["names"], nargs=-1, metavar="[NAME]"),
        click.Option(["--kind"], help="Only this kind, such as class or function."),
        click.Option(
            ["--entry-points"],
            is_flag=False,
            flag_value="root",
            metavar="[KIND]",
            help="Only what is called from outside: requests, commands, tests. KIND is one of them, or all.",
        ),
    ),
    "show": (SYMBOL,),
    "callers": (SYMBOL, _depth(1, "Steps: 2 includes the callers of callers.")),
    "callees": (SYMBOL, _depth(1, "Steps: 2 includes the callees of callees.")),
    "refs": (SYMBOL,),
    "path": (
        click.Argument(["names"], nargs=-1, metavar="FROM TO"),
        click.Option(
            ["--by"],
            type=click.Choice(["calls", "flow"]),
            default="calls",
            show_default=True,
            help="Follow calls, or the flow of values.",
        ),
        _depth(12, "Maximum number of steps."),
    ),
    "impact": (
        click.Argument(["names"], nargs=-1, metavar="[SYMBOL]..."),
        click.Option(
            ["--diff"],
            metavar="GITREF",
            help="Use the definitions changed between GITREF (or BASE..HEAD) and the work tree as symbols.",
        ),
        _depth(5, "Maximum number of steps."),
    ),
    "flows": (
        SYMBOL,
        click.Option(
            ["--direction"],
            type=click.Choice(["to", "from"]),
            default="to",
            show_default=True,
            help="Where the value goes to, or comes from.",
        ),
        click.Option(
            ["--returns"], is_flag=True, help="Also follow values that functions return to their calls."
        ),
        _depth(5, "Maximum number of steps."),
    ),
    "explain": (click.Argument(["names"], nargs=-1, required=True, metavar="EDGE | FROM TO"),),
    "unused": (
        click.Option(["--kind"], help="Only this kind: function or class."),
        click.Option(
            ["--min-confidence"],
            type=click.FloatRange(0, 1),
            default=DEFAULT_CONFIDENCE,
            show_default=True,
            help="Least confidence that it is dead: 0.3 also lists what may be used, 0 entry points.",
        ),
        click.Option(["--path"], help="Only this file or folder, or a pattern: 'shop/*.py'."),
        click.Option(["--include-tests"], is_flag=True, help="Also list test code."),
    ),
    "cycles": (
        click.Option(
            ["--by"],
            type=click.Choice(["imports", "calls"]),
            default="imports",
            show_default=True,
            help="Cycles of imports, or of calls.",
        ),
        click.Option(
            ["--runtime"],
            is_flag=True,
            help="Only imports that run when a module is imported: none in functions or for type checkers.",
        ),
    ),
    "unresolved": (
        click.Argument(["names"], nargs=-1, metavar="[SYMBOL]"),
        click.Option(["--reason"], help="Only those with this reason."),
    ),
    "errors": (),
    "stats": (),
}


def _command(verb: str) -> click.Command:
    """Make the command of a verb."""

    @lake_option
    @repo_option
    @as_of_option
    @limit_option(DEFAULT_LIMIT, "Rows to show.")
    @answer_format_option
    @wide_option
    @click.pass_obj
    def run(
        flags: tuple[str, ...],
        /,
        lake: str,
        repo_id: str | None,
        as_of: str | None,
        limit: int,
        form: AnswerFormat | None,
        wide: bool,
        names: str | tuple[str, ...] = (),
        **options: Any,
    ) -> str:
        from codeanatomy.query.lake import Lake, recorded_errors

        symbols = (names,) if isinstance(names, str) else names
        try:
            record = query_recorder(flags, lake)
            if verb == "errors":
                # Works on a lake without a published graph, too.
                answer = recorded_errors(lake, repo_id, limit, as_of, record)
            else:
                opened = Lake.open(lake, as_of, record=record)
                answer = opened.ask(verb, *symbols, repo_id=repo_id, limit=limit, **options)
        except CodeAnatomyError as error:
            print_error(error, form)
            raise
        print_answer(answer, form, wide=wide)
        return AT_ONCE

    command = click.command(verb, help=VERBS[verb].doc)(run)
    command.params = [*PARAMETERS[verb], *command.params]
    return command


def query_recorder(flags: tuple[str, ...], lake: str) -> Callable[[Iterable[Record]], None] | None:
    """Return the function that records questions in the lake, if the setting observe.record_queries is on."""
    if not load_settings(flags).observe.record_queries:
        return None
    from codeanatomy.lake.recorded_queries import record_queries

    return partial(record_queries, lake)


@click.command()
@click.argument("text", metavar="STATEMENT|-")
@lake_option
@as_of_option
@limit_option(DEFAULT_LIMIT, "Rows to show.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1, max=3600),
    default=30.0,
    show_default=True,
    help="Time limit.",
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
    """Run one SELECT over the views, in Spark's SQL dialect.

    The views are symbols, calls, references and others, listed in docs/views.md. With - the statement is read
    from standard input.
    """
    from codeanatomy.query.lake import Lake

    statement = sys.stdin.read(MAX_STATEMENT_CHARS) if text == "-" else text
    chosen = effective_format(form)
    try:
        if engine == "spark":
            answer = _run_in_spark(flags, lake, as_of, statement, limit, seconds)
        else:
            opened = Lake.open(lake, as_of, record=query_recorder(flags, lake))
            answer = opened.sql(statement, limit=limit, seconds=seconds)
    except CodeAnatomyError as error:
        print_error(error, form)
        raise
    if chosen == "json":
        print_json({"status": "ok", **msgspec.to_builtins(answer)})
        return
    print_rows(answer.columns, answer.rows, chosen, every_column=True)
    for line in answer_notes(answer):
        click.echo(line, err=True)


def _run_in_spark(
    flags: tuple[str, ...], lake: str, as_of: str | None, text: str, limit: int, seconds: float
) -> SqlAnswer:
    """Run the statement in a Spark session of its own."""
    from codeanatomy.query.lake import Lake
    from codeanatomy.query.sql.spark import run_spark_sql
    from codeanatomy.spark.session import close_session, open_session

    spark = open_session(load_settings(flags).runtime)
    try:
        return run_spark_sql(Lake.open(lake, as_of, spark=spark), text, limit=limit, seconds=seconds)
    finally:
        close_session(spark)


COMMANDS = {**{verb: _command(verb) for verb in VERBS}, "sql": sql}


@click.command()
@lake_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="Port; 0 takes a free one."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at. Any but loopback needs the token that is printed.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
def explore(lake: str, port: int, host: str, open_browser: bool) -> None:
    """Show a lake in a browser: source, symbols, pictures, flows, runs, SQL."""
    # Imported here: a usage error should not wait for the server.
    from codeanatomy.lake.snapshot import Snapshot
    from codeanatomy.serve.explorer.server import serve

    # A missing lake is reported before the server starts.
    Snapshot.open(lake)
    serve(lake, host=host, port=port, open_browser=open_browser, report=click.echo)
