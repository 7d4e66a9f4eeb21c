"""Answers on paper: a table, JSON, JSON lines, CSV or Markdown on stdout; what to know about them on stderr.

    print_answer(Lake.open("lake").callers("Session.send"), "markdown")

The rows are data and go to stdout. How many there are, how fresh, and what is not covered is part of the JSON
object; with the other formats it is talk on stderr, and Markdown, which is made to be sent on, has both.
Values come from files that somebody else wrote: nothing in them is markup or commands a terminal. CSV that is
not for a terminal has them as they are. Tests: `tests/unit/query/test_questions.py`.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from codeanatomy.cli.options import AnswerFormat
from codeanatomy.cli.printing import harmless, print_grid, print_json, print_json_line
from codeanatomy.errors import AmbiguousSymbol, CodeAnatomyError, SqlRefused, UnknownSymbol
from codeanatomy.query.answers import Answer, place

if TYPE_CHECKING:
    from codeanatomy.query.sql.answer import SqlAnswer

# Columns that people do not read; the others are shown if a row has them.
FOR_MACHINES = ("symbol_id", "path", "line", "group_id")
CELL_CHARS = 200
# What an error says of the answer; any other is an error.
STATUSES = {UnknownSymbol: "unknown", AmbiguousSymbol: "ambiguous", SqlRefused: "refused"}
SHORT = 12


def chosen(form: AnswerFormat | None) -> AnswerFormat:
    """The form that was asked for; else a table on a terminal, JSON elsewhere."""
    return form or ("table" if sys.stdout.isatty() else "json")


def print_answer(found: Answer, form: AnswerFormat | None) -> None:
    """An answer, in the form that was asked for."""
    wanted = chosen(form)
    if wanted == "json":
        print_json({"status": "ok", **msgspec.to_builtins(found)})
        return
    if wanted == "markdown":
        click.echo("\n".join(_markdown(found)))
        return
    if wanted == "table" and found.verb == "show":
        _print_facts(found)
    else:
        print_rows(found.columns, found.rows, wanted)
    for line in about(found):
        click.echo(line, err=True)


def print_rows(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], form: AnswerFormat, *, as_asked: bool = False
) -> None:
    """Rows alone: lines of JSON, CSV, a Markdown table, or a table for people; with the columns as asked."""
    if form in ("json", "jsonl"):
        for row in rows:
            print_json_line(row)
    elif form == "csv":
        click.echo(_csv(columns, rows), nl=False)
    elif form == "markdown":
        click.echo(
            "\n".join(_markdown_table(*(_cells(columns, rows) if as_asked else _shown(columns, rows))))
        )
    elif rows:
        print_grid(*(_cells(columns, rows) if as_asked else _shown(columns, rows)))


def print_problem(problem: CodeAnatomyError, form: AnswerFormat | None) -> None:
    """Why there is no answer, as the answer; the error is told on stderr anyway."""
    candidates = problem.candidates if isinstance(problem, UnknownSymbol | AmbiguousSymbol) else ()
    if chosen(form) == "json":
        status = STATUSES.get(type(problem), "error")
        told = {"code": problem.code, "error": _written(problem.message), "hint": _written(problem.hint)}
        refused = {"diagnostics": problem.diagnostics} if isinstance(problem, SqlRefused) else {}
        print_json({"status": status, **told, "candidates": candidates, **refused})
        return
    for row in candidates:
        where = place(row["path"], row["line"])
        click.echo(harmless(f"  {row['symbol']}  {row['kind']}  {where}  {row['repo_id']}"), err=True)


def _written(text: str) -> str:
    """A text that may have bytes in it that are no text, such as those of a path."""
    return text.encode("utf-8", "backslashreplace").decode()


def about(found: Answer | SqlAnswer) -> Iterator[str]:
    """What to know about an answer, in words."""
    if found.total is None:
        yield f"{counted(len(found.rows))}, others are not shown ({found.more})"
    else:
        cut = f", {found.cut:,} not shown ({found.more})" if found.cut else ""
        yield f"{counted(found.total)}{cut}"
    for note in found.notes:
        yield harmless(f"note: {note}")
    for fresh in found.freshness:
        commit = f", commit {fresh.commit[:SHORT]}" if fresh.commit else ""
        states = {
            "unchanged": "the source has not changed since",
            "changed": "the source has changed since: build it again",
            "gone": "the source is gone",
            "unknown": "whether the source has changed is not known",
        }
        yield harmless(f"{fresh.repo_id}: run {fresh.run_id}{commit}; {states[fresh.source_state]}")
    for covered in found.coverage:
        if covered.failures:
            yield harmless(
                f"{covered.repo_id}: {covered.failures:,} failures in {covered.files or 0:,} files"
                " (codeanatomy errors)"
            )
        if not covered.graph:
            yield harmless(
                f"{covered.repo_id} was last built without the graph stage: nothing is known of it"
            )


def counted(rows: int) -> str:
    """How many rows, in words."""
    return "1 row" if rows == 1 else f"{rows:,} rows"


def _shown(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns that people read, and the rows of them."""
    used = [name for name in columns if any(row[name] is not None for row in rows)]
    names = [name for name in used if name not in FOR_MACHINES]
    if len({row.get("repo_id") for row in rows}) == 1:
        names = [name for name in names if name != "repo_id"]
    if "path" in used:
        names.insert(min(2, len(names)), "place")
    return _cells(names, [{**row, "place": place(row.get("path"), row.get("line"))} for row in rows])


def _cells(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    return tuple(columns), [tuple(_text(row[name]) for name in columns) for row in rows]


def _text(value: Any) -> str:
    """A value in a cell: one line, not too long."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    line = " ".join(text.split())
    return line if len(line) <= CELL_CHARS else f"{line[:CELL_CHARS]}..."


def _print_facts(found: Answer) -> None:
    """Each row as a list of facts: there are few rows and much in each."""
    for number, row in enumerate(found.rows):
        if number:
            click.echo("")
        click.echo(harmless(f"{row['symbol']}  {place(row['path'], row['line'])}"))
        for name in found.columns:
            if row[name] is None or name in ("symbol", "docstring", *FOR_MACHINES):
                continue
            click.echo(harmless(f"  {name:<10} {_text(row[name])}"))
        for line in (row.get("docstring") or "").splitlines():
            click.echo(f"    {harmless(line)}")


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[name] for name in columns] for row in rows)
    return text.getvalue() if not sys.stdout.isatty() else "".join(map(_shown_line, text.getvalue()))


def _shown_line(character: str) -> str:
    """A character of a file that is shown on a terminal instead of written to a file."""
    return character if character == "\n" else harmless(character)


def _markdown(found: Answer) -> Iterator[str]:
    asked = " ".join((found.verb, *found.subject))
    yield f"**{_cell(asked)}**"
    yield ""
    if found.rows:
        yield from _markdown_table(*_shown(found.columns, found.rows))
        yield ""
    yield from (f"- {_cell(line)}" for line in about(found))


def _markdown_table(header: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    yield _line(header)
    yield _line(["---"] * len(header))
    yield from map(_line, cells)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """A text in which nothing is Markdown or HTML."""
    escaped = harmless(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in ("\\", "`", "*", "_", "[", "]", "|"):
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
