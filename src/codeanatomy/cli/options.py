"""Declare the options that several commands share.

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
    """Return `--format` with further choices beside a table and JSON."""
    choice = click.Choice(["table", "json", *more])
    return click.option("--format", "form", type=choice, default="table", show_default=True, help=help_text)


def lake_choice(*, required: bool) -> Callable[[Command], Command]:
    """Return `--lake`; a group with subcommands cannot require it."""
    return click.option(
        "--lake",
        required=required,
        metavar="DIR",
        envvar="CODEANATOMY_LAKE",
        show_envvar=True,
        callback=_configure_store,
        help="The lake: a folder or URI.",
    )


def _configure_store(context: click.Context, _: click.Parameter, lake: str | None) -> str | None:
    """Apply the store settings to a remote lake before the command uses it."""
    if lake is not None and not is_local(lake):
        # Imported here: most lakes are local folders.
        from codeanatomy.config import load_settings
        from codeanatomy.delta.lake_tables import normalize_root

        policy = StorePolicy.from_profile(load_settings(context.find_root().obj or ()).runtime)
        register_policy(normalize_root(lake, policy.require_local_paths), policy)
    return lake


def limit_option(default: int, help_text: str) -> Callable[[Command], Command]:
    """Return `--limit` of a command that may print many rows."""
    kind = click.IntRange(min=1, max=MAX_LIMIT)
    return click.option("--limit", type=kind, default=default, show_default=True, help=help_text)


answer_format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "jsonl", "csv", "markdown"]),
    help="Output format; default: table on a terminal, JSON elsewhere.",
)
wide_option = click.option("--wide", is_flag=True, help="Show all columns of a table.")
format_option = format_choice("Output format.")
lake_option = lake_choice(required=True)
repo_option = click.option("--repo-id", "--repo", "repo_id", metavar="NAME", help="Only this repository.")
as_of_option = click.option(
    "--as-of",
    metavar="RUN|TIME",
    help="Read the lake as a run left it (the first characters of its id), or as it was at a time such as"
    " 2026-05-01T12:00Z; a date alone means midnight.",
)
