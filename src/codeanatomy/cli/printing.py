"""Print answers: a table, JSON, JSON lines, CSV or Markdown on stdout, notes about them on stderr.

    print_table(("table", "rows"), [("cpg_nodes", "31")])
    print_answer(Lake.open("lake").callers("Session.send"), "markdown")

The number of rows, the freshness of the sources and the gaps of an answer are part of its JSON object. With
the other formats they are lines on stderr; Markdown, which is made to be sent on, has both.

A table is as wide as the terminal, in colours unless NO_COLOR is set; elsewhere its lines are neither
wrapped nor styled. Values come from analysed files: nothing in them is markup or controls a terminal. Only
CSV that is not for a terminal has them unchanged.
Tests: `tests/unit/cli/test_cli.py`, `tests/unit/query/test_questions.py`.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from codeanatomy.catalog.spec import MB
from codeanatomy.cli.options import AnswerFormat
from codeanatomy.errors import AmbiguousSymbol, CodeAnatomyError, SqlRefused, UnknownSymbol
from codeanatomy.query.answers import Answer, place

if TYPE_CHECKING:
    from codeanatomy.query.sql.answer import SqlAnswer

# Columns that are not shown to people; the others are shown if a row has a value.
MACHINE_COLUMNS = ("symbol_id", "path", "line", "group_id")
MAX_CELL_CHARS = 200
# The `status` of the JSON object of an error; that of any other class is "error".
STATUSES = {UnknownSymbol: "unknown", AmbiguousSymbol: "ambiguous", SqlRefused: "refused"}
COMMIT_CHARS = 12
# Colours of a terminal: of a whole column, of known values, and of a confidence from this one upwards.
COLUMN_STYLES = {"kind": "cyan", "subkind": "cyan", "element": "cyan", "operation": "cyan"}
VALUE_STYLES = {
    **dict.fromkeys(("ok", "succeeded", "done", "unchanged", "added"), "green"),
    **dict.fromkeys(("warn", "skipped", "changed", "unknown"), "yellow"),
    **dict.fromkeys(("fail", "failed", "refused", "gone", "removed"), "red"),
}
VALUE_COLUMNS = ("status", "outcome", "source is", "change")
CONFIDENCE_STYLES = ((0.9, "green"), (0.5, "yellow"), (0.0, "red"))
# A number, or `-` where there is none.
NUMBER = re.compile(r"[-+]?[\d,]+(\.\d+)?%?|-?")

Cells = tuple[tuple[str, ...], list[tuple[str, ...]]]


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(escape_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def print_json_line(value: object) -> None:
    """Print a value as one line of JSON."""
    click.echo(escape_json(msgspec.json.encode(value).decode()))


def escape_json(text: str) -> str:
    r"""Escape characters of a JSON text that a terminal might obey; to a program it is the same value.

    >>> print(escape_json('"\x9b31m"'))
    "\u009b31m"
    """
    return "".join(each if each.isprintable() or each == "\n" else _json_escape(each) for each in text)


def _json_escape(character: str) -> str:
    """Write a character as one or two UTF-16 units."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))


def escape_unprintable(text: str) -> str:
    r"""Make one line of a text, without characters that control a terminal.

    >>> print(escape_unprintable("two\nlines"))
    two\nlines
    """
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table for people: as wide as the terminal and in colours, unwrapped and plain elsewhere."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    on_terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(header):
        cells = [row[index] for row in rows]
        numbers = on_terminal and any(cell.strip("-") for cell in cells) and all(map(NUMBER.fullmatch, cells))
        table.add_column(
            name,
            justify="right" if numbers else "left",
            # A path that is too long for its column is folded, not cut.
            overflow="fold" if on_terminal else "ellipsis",
        )
    for row in rows:
        # Text, not str: nothing in a value may be read as markup.
        table.add_row(
            *(
                Text(escape_unprintable(cell), _style(name, cell) if on_terminal else "")
                for name, cell in zip(header, row, strict=True)
            )
        )
    console = Console(width=None if on_terminal else 10_000, soft_wrap=False, highlight=False)
    # Printed by click, because rich ends the process when a pipe is closed.
    with console.capture() as printed:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def _style(column: str, cell: str) -> str:
    """Choose the colour of a cell on a terminal; empty if it has none."""
    if column == "confidence":
        try:
            return next(style for least, style in CONFIDENCE_STYLES if float(cell) >= least)
        except (ValueError, StopIteration):
            return ""
    if column in VALUE_COLUMNS:
        return VALUE_STYLES.get(cell, "")
    return COLUMN_STYLES.get(column, "")


def effective_format(form: AnswerFormat | None) -> AnswerFormat:
    """Return the requested format; without one, a table on a terminal and JSON elsewhere."""
    return form or ("table" if sys.stdout.isatty() else "json")


def print_answer(answer: Answer, form: AnswerFormat | None) -> None:
    """Print an answer in the requested format, with its notes."""
    chosen = effective_format(form)
    if chosen == "json":
        print_json({"status": "ok", **msgspec.to_builtins(answer)})
        return
    if chosen == "markdown":
        click.echo("\n".join(_markdown(answer)))
        return
    if chosen == "table" and answer.verb == "show":
        _print_facts(answer)
    else:
        print_rows(answer.columns, answer.rows, chosen)
    for line in answer_notes(answer):
        click.echo(line, err=True)


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    form: AnswerFormat,
    *,
    every_column: bool = False,
) -> None:
    """Print rows alone: JSON lines, CSV, a Markdown table or a table for people.

    The tables leave out columns for machines and empty ones, unless `every_column`.
    """
    if form in ("json", "jsonl"):
        for row in rows:
            print_json_line(row)
    elif form == "csv":
        click.echo(_csv(columns, rows), nl=False)
    elif form == "markdown":
        click.echo("\n".join(_markdown_table(*_table_cells(columns, rows, every_column))))
    elif rows:
        print_table(*_table_cells(columns, rows, every_column))


def print_error(error: CodeAnatomyError, form: AnswerFormat | None) -> None:
    """Print an error in place of an answer: a JSON object, or the candidates; `main` prints its message."""
    candidates = error.candidates if isinstance(error, UnknownSymbol | AmbiguousSymbol) else ()
    if effective_format(form) == "json":
        status = STATUSES.get(type(error), "error")
        message = {
            "code": error.code,
            "error": _escape_surrogates(error.message),
            "hint": _escape_surrogates(error.hint),
        }
        refused = {"diagnostics": error.diagnostics} if isinstance(error, SqlRefused) else {}
        print_json({"status": status, **message, "candidates": candidates, **refused})
        return
    for row in candidates:
        location = place(row["path"], row["line"])
        line = f"  {row['symbol']}  {row['kind']}  {location}  {row['repo_id']}"
        click.echo(escape_unprintable(line), err=True)


def _escape_surrogates(text: str) -> str:
    """Escape bytes of a text that are not UTF-8, such as those of a path."""
    return text.encode("utf-8", "backslashreplace").decode()


def answer_notes(answer: Answer | SqlAnswer) -> Iterator[str]:
    """Describe an answer: number of rows, limitations, freshness and failures of the sources."""
    if answer.total is None:
        yield f"{row_count(len(answer.rows))}, others are not shown ({answer.more})"
    else:
        cut = f", {answer.cut:,} not shown ({answer.more})" if answer.cut else ""
        yield f"{row_count(answer.total)}{cut}"
    for note in answer.notes:
        yield escape_unprintable(f"note: {note}")
    for fresh in answer.freshness:
        commit = f", commit {fresh.commit[:COMMIT_CHARS]}" if fresh.commit else ""
        states = {
            "unchanged": "the source has not changed since",
            "changed": "the source has changed since: build it again",
            "gone": "the source is gone",
            "unknown": "it is not known whether the source has changed",
        }
        yield escape_unprintable(f"{fresh.repo_id}: run {fresh.run_id}{commit}; {states[fresh.source_state]}")
    for covered in answer.coverage:
        if covered.failures:
            yield escape_unprintable(
                f"{covered.repo_id}: {covered.failures:,} failures in {covered.files or 0:,} files"
                " (codeanatomy errors)"
            )
        if not covered.graph:
            yield escape_unprintable(
                f"{covered.repo_id} was last built without the graph stage:"
                " its nodes and edges are those of an earlier run, or missing"
            )


def row_count(rows: int) -> str:
    """Format a number of rows.

    >>> row_count(1), row_count(1200)
    ('1 row', '1,200 rows')
    """
    return "1 row" if rows == 1 else f"{rows:,} rows"


def count_text(number: int | None) -> str:
    """Format a count; `-` if it was not recorded."""
    return "-" if number is None else f"{number:,}"


def megabytes_text(size: int | None) -> str:
    """Format a number of bytes in MB; `-` if it was not recorded."""
    return "-" if size is None else f"{size / MB:,.1f}"


def _table_cells(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], every_column: bool) -> Cells:
    """Return header and cells of a table: of every column, or of those that people read."""
    if every_column:
        return _cells(columns, rows)
    used = [name for name in columns if any(row[name] is not None for row in rows)]
    names = [name for name in used if name not in MACHINE_COLUMNS]
    if len({row.get("repo_id") for row in rows}) == 1:
        names = [name for name in names if name != "repo_id"]
    if "path" in used:
        names.insert(min(2, len(names)), "place")
    return _cells(names, [{**row, "place": place(row.get("path"), row.get("line"))} for row in rows])


def _cells(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Cells:
    return tuple(columns), [tuple(_cell_text(row[name]) for name in columns) for row in rows]


def _cell_text(value: Any) -> str:
    """Format a value for a cell: one line of at most MAX_CELL_CHARS."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    line = " ".join(text.split())
    return line if len(line) <= MAX_CELL_CHARS else f"{line[:MAX_CELL_CHARS]}..."


def _print_facts(answer: Answer) -> None:
    """Print each row as a list of facts: `show` has few rows with many values."""
    for number, row in enumerate(answer.rows):
        if number:
            click.echo("")
        click.echo(escape_unprintable(f"{row['symbol']}  {place(row['path'], row['line'])}"))
        for name in answer.columns:
            if row[name] is None or name in ("symbol", "docstring", *MACHINE_COLUMNS):
                continue
            click.echo(escape_unprintable(f"  {name:<10} {_cell_text(row[name])}"))
        for line in (row.get("docstring") or "").splitlines():
            click.echo(f"    {escape_unprintable(line)}")


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[name] for name in columns] for row in rows)
    if not sys.stdout.isatty():
        return text.getvalue()
    return "".join(each if each == "\n" else escape_unprintable(each) for each in text.getvalue())


def _markdown(answer: Answer) -> Iterator[str]:
    question = " ".join((answer.verb, *answer.subject))
    yield f"**{_markdown_text(question)}**"
    yield ""
    if answer.rows:
        yield from _markdown_table(*_table_cells(answer.columns, answer.rows, every_column=False))
        yield ""
    yield from (f"- {_markdown_text(line)}" for line in answer_notes(answer))


def _markdown_table(header: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    yield _markdown_line(header)
    yield _markdown_line(["---"] * len(header))
    yield from map(_markdown_line, cells)


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_markdown_text, cells))} |"


def _markdown_text(text: str) -> str:
    """Escape a text so that nothing in it is Markdown or HTML."""
    escaped = escape_unprintable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in ("\\", "`", "*", "_", "[", "]", "|"):
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
