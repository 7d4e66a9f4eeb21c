"""How answers are printed: JSON, or a table for people.

    print_grid(("table", "rows"), [("cpg_nodes", "31")])

A value may come from a file that somebody else wrote, so nothing in it is read as markup, and no character
of it commands a terminal. Tests: `tests/unit/cli/test_cli.py`.
"""

from __future__ import annotations

import sys

import click
import msgspec


def print_json(value: object) -> None:
    """A value as JSON for people and programs: indented."""
    click.echo(escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def print_json_line(value: object) -> None:
    """A value as one line of JSON."""
    click.echo(escaped(msgspec.json.encode(value).decode()))


def escaped(text: str) -> str:
    """JSON in which characters that a terminal might obey are spelled out; to a program it is the same."""
    return "".join(each if each.isprintable() or each == "\n" else _spelled(each) for each in text)


def _spelled(character: str) -> str:
    """A character as JSON may spell it, in one or two units of UTF-16."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def print_grid(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table for people: as wide as the terminal, unwrapped when piped."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(*header, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        # Text, not str: nothing in a value may be read as markup.
        grid.add_row(*(Text(harmless(cell)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 10_000, soft_wrap=False, highlight=False)
    # Printed by click, because a pipe that is closed makes rich end the process by itself.
    with console.capture() as printed:
        console.print(grid)
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def harmless(text: str) -> str:
    """The text in one line, without characters that would command a terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
