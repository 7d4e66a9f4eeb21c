"""The verbs that ask a lake, each a command with the same options. No JVM.

    codeanatomy callers Session.send --depth 2 --lake lake
    codeanatomy impact --diff main --lake lake --format markdown

Tests: `tests/unit/query/test_questions.py`.
"""

from __future__ import annotations

from typing import Any

import click

from codeanatomy.cli.answers import print_answer, print_problem
from codeanatomy.cli.options import (
    AnswerFormat,
    answer_format_option,
    as_of_option,
    lake_option,
    limit_option,
    repo_option,
)
from codeanatomy.config import load_settings
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.query.answers import DEEPEST, LIMIT
from codeanatomy.query.ask import VERBS, errors_answer

DEPTH = click.IntRange(min=1, max=DEEPEST)
SYMBOL = click.Argument(["names"], metavar="SYMBOL")


def _depth(default: int, text: str) -> click.Option:
    return click.Option(["--depth"], type=DEPTH, default=default, show_default=True, help=text)


# What each verb takes beside the options of all.
PARAMETERS: dict[str, tuple[click.Parameter, ...]] = {
    "find": (
        click.Argument(["names"], metavar="NAME"),
        click.Option(["--kind"], help="Only this kind, such as class or function."),
    ),
    "show": (SYMBOL,),
    "callers": (SYMBOL, _depth(1, "Callers of callers, so many steps.")),
    "callees": (SYMBOL, _depth(1, "Callees of callees, so many steps.")),
    "refs": (SYMBOL,),
    "path": (
        click.Argument(["names"], nargs=2, metavar="FROM TO"),
        click.Option(
            ["--by"],
            type=click.Choice(["calls", "flow"]),
            default="calls",
            show_default=True,
            help="Over calls, or along values.",
        ),
        _depth(12, "Steps at most."),
    ),
    "impact": (
        click.Argument(["names"], nargs=-1, metavar="[SYMBOL]..."),
        click.Option(
            ["--diff"],
            metavar="GITREF",
            help="What changed between GITREF (or BASE..HEAD) and the work tree, instead of symbols.",
        ),
        _depth(5, "Steps at most."),
    ),
    "flows": (SYMBOL, _depth(5, "Steps at most.")),
    "explain": (click.Argument(["names"], nargs=-1, required=True, metavar="EDGE | FROM TO"),),
    "unused": (click.Option(["--kind"], help="Only function, or only class."),),
    "cycles": (
        click.Option(
            ["--by"],
            type=click.Choice(["imports", "calls"]),
            default="imports",
            show_default=True,
            help="Of imports, or of calls.",
        ),
    ),
    "unresolved": (
        click.Argument(["names"], nargs=-1, metavar="[SYMBOL]"),
        click.Option(["--reason"], help="Only what was not resolved for this reason."),
    ),
    "errors": (),
    "stats": (),
}


def _command(verb: str) -> click.Command:
    @lake_option
    @repo_option
    @as_of_option
    @limit_option(LIMIT, "Rows to show.")
    @answer_format_option
    @click.pass_obj
    def run(
        flags: tuple[str, ...],
        /,
        lake: str,
        repo_id: str | None,
        as_of: str | None,
        limit: int,
        form: AnswerFormat | None,
        names: str | tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        from codeanatomy.query.lake import Lake

        typed = (names,) if isinstance(names, str) else names
        try:
            if verb == "errors":
                # A lake may have nothing but failures.
                found = errors_answer(lake, repo_id, limit, as_of)
            else:
                recorded = load_settings(flags).observe.record_queries
                asked = Lake.open(lake, as_of, record_queries=recorded)
                found = asked.ask(verb, *typed, repo_id=repo_id, limit=limit, **options)
        except CodeAnatomyError as problem:
            print_problem(problem, form)
            raise
        print_answer(found, form)

    command = click.command(verb, help=VERBS[verb].doc)(run)
    command.params = [*PARAMETERS[verb], *command.params]
    return command


COMMANDS = {verb: _command(verb) for verb in VERBS}
