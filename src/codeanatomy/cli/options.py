"""Options that several commands have, each written once.

    @click.command()
    @lake_option
    @format_option
    def errors(lake: str, form: Format) -> None: ...

Tests: `tests/unit/cli/test_cli.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click

from codeanatomy.delta.store_policy import StorePolicy, is_local, register_policy
from codeanatomy.query.answers import MAX_LIMIT

Format = Literal["table", "json"]
AnswerFormat = Literal["table", "json", "jsonl", "csv", "markdown"]
Command = TypeVar("Command", bound=Callable[..., Any])


def format_choice(help_text: str, *more: str) -> Callable[[Command], Command]:
    """`--format` of a command that can print more than a table and JSON."""
    choice = click.Choice(["table", "json", *more])
    return click.option("--format", "form", type=choice, default="table", show_default=True, help=help_text)


def lake_choice(*, required: bool) -> Callable[[Command], Command]:
    """`--lake`; a group that has commands below it cannot require it."""
    return click.option(
        "--lake",
        required=required,
        metavar="DIR",
        envvar="CODEANATOMY_LAKE",
        show_envvar=True,
        callback=_reached,
        help="The lake: a folder or URI.",
    )


def _reached(context: click.Context, _: click.Parameter, lake: str | None) -> str | None:
    """The lake; one that is remote is reached as the settings say, by whatever the command does."""
    if lake is not None and not is_local(lake):
        # Here: most lakes are folders.
        from codeanatomy.config import load_settings
        from codeanatomy.delta.store import normalize_root

        policy = StorePolicy.from_profile(load_settings(context.find_root().obj or ()).runtime)
        register_policy(normalize_root(lake, policy.require_local_paths), policy)
    return lake


def limit_option(default: int, help_text: str) -> Callable[[Command], Command]:
    """`--limit` of a command whose answer may be long."""
    kind = click.IntRange(min=1, max=MAX_LIMIT)
    return click.option("--limit", type=kind, default=default, show_default=True, help=help_text)


answer_format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "jsonl", "csv", "markdown"]),
    help="How to print the answer; by default a table on a terminal, JSON elsewhere.",
)
format_option = format_choice("How to print the answer.")
lake_option = lake_choice(required=True)
repo_option = click.option("--repo-id", "--repo", "repo_id", metavar="NAME", help="Only this repository.")
as_of_option = click.option(
    "--as-of",
    metavar="RUN|TIME",
    help="As this run left the lake (its first characters are enough), or as it was at 2026-05-01T12:00Z;"
    " a date alone is its first moment.",
)
