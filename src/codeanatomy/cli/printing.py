"""Print answers: a table, JSON, JSON lines, CSV or Markdown on stdout, notes about them on stderr.

    print_table(("table", "rows"), [("cpg_nodes", "31")])
    print_answer(Lake.open("lake").callers("Session.send"), "markdown")

The number of rows, the freshness of the sources and the gaps of an answer are part of its JSON object. With
the other formats they are lines on stderr; Markdown, which is made to be sent on, has both.

A table of an answer has the columns that fit the terminal (elsewhere 120 characters, or COLUMNS), most
important first (`COLUMN_RANKS`); one with one value in all rows is left out. A line on stderr names what is
left out, and `--wide` shows it. Tables are as wide as the terminal, in colours unless NO_COLOR is set;
elsewhere their lines are neither wrapped, cut nor styled. Values come from analysed files: nothing in them is
markup or controls a terminal. Only CSV that is not for a terminal has them unchanged.

Tests: `tests/unit/cli/test_cli.py`, `tests/unit/query/test_questions.py`.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from codeanatomy.catalog.spec import MB
from codeanatomy.cli.options import AnswerFormat
from codeanatomy.errors import AmbiguousSymbol, CodeAnatomyError, SqlRefused, UnknownSymbol
from codeanatomy.query.answers import Answer, place
from codeanatomy.query.export.escaping import shortened

if TYPE_CHECKING:
    from codeanatomy.query.sql.answer import SqlAnswer

# Columns that are not shown to people; the others are shown if a row has a value.
MACHINE_COLUMNS = ("symbol_id", "path", "line", "group_id")
MAX_CELL_CHARS = 200
# Verbs whose rows are definitions; those of others are uses.
DEFINITION_VERBS = ("find", "unused")
# Columns of a table by importance, after those that answer the question of a verb; others need --wide.
COLUMN_RANKS = (
    "symbol", "place", "repo_id", "amount", "detail", "source", "confidence", "sites", "depth", "relation",
    "method", "test", "inside", "via", "kind", "defined",
)  # fmt: skip
FIRST_COLUMNS = {
    "cycles": ("target", "method"),
    "errors": ("kind", "method"),
    "explain": ("relation", "target", "method", "evidence"),
    "impact": ("depth", "test"),
    "path": ("depth",),
    "refs": ("inside",),
    "unresolved": ("method",),
    "unused": ("confidence", "detail"),
}
# Shown although all rows have the same value.
ALWAYS_SHOWN = ("place", "amount", "detail", "source", "confidence", "sites")
# Characters that a column of long texts needs; on a terminal `source` is cut at the edge.
LONG_TEXT_CHARS = {"detail": 24, "source": 32}
GAP = 2
# Width of a table that is not for a terminal.
FALLBACK_WIDTH = 120
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


def print_table(
    header: tuple[str, ...], rows: list[tuple[str, ...]], below: tuple[str, Sequence[str]] = ("", ())
) -> None:
    """Print a table for people: as wide as the terminal and in colours, unwrapped and plain elsewhere.

    `below` names a column, and has a second line of it for each row.
    """
    column, lines = below
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
    for number, row in enumerate(rows):
        # Text, not str: nothing in a value may be read as markup.
        texts = {
            name: Text(escape_unprintable(cell), _style(name, cell) if on_terminal else "")
            for name, cell in zip(header, row, strict=True)
        }
        if lines:
            texts[column].append(f"\n{' ' * GAP}{escape_unprintable(lines[number])}", "dim")
        table.add_row(*texts.values())
    # With a height, because rich ignores the width of a dumb terminal otherwise.
    width = terminal_width() if on_terminal else 10_000
    console = Console(width=width, height=25, soft_wrap=False, highlight=False)
    # Printed by click, because rich ends the process when a pipe is closed.
    with console.capture() as printed:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def terminal_width() -> int:
    """Return the width of tables: that of the terminal, or the variable COLUMNS."""
    return shutil.get_terminal_size((FALLBACK_WIDTH, 0)).columns


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


def print_answer(answer: Answer, form: AnswerFormat | None, *, wide: bool = False) -> None:
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
    elif chosen == "table" and answer.rows:
        _print_columns(answer, wide=wide)
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
    elif form == "markdown" or rows:
        cells = _cells(columns, rows) if every_column else _readable_cells(columns, rows)
        if form == "markdown":
            click.echo("\n".join(_markdown_table(*cells)))
        else:
            print_table(*cells)


def print_error(error: CodeAnatomyError, form: AnswerFormat | None) -> None:
    """Print an error in place of an answer, if that would be a JSON object; `main` prints it for people."""
    if effective_format(form) != "json":
        return
    message = {
        "code": error.code,
        "error": _escape_surrogates(error.message),
        "hint": _escape_surrogates(error.hint),
    }
    candidates = error.candidates if isinstance(error, UnknownSymbol | AmbiguousSymbol) else ()
    refused = {"diagnostics": error.diagnostics} if isinstance(error, SqlRefused) else {}
    status = STATUSES.get(type(error), "error")
    print_json({"status": status, **message, "candidates": candidates, **refused})


def error_lines(error: CodeAnatomyError) -> Iterator[str]:
    """Yield an error for people: what happened, the candidates of an ambiguous name, the next step."""
    # Line by line: a name or a path in the message may have any character.
    yield from map(escape_unprintable, f"error [{error.code}] {error.message}".split("\n"))
    if isinstance(error, AmbiguousSymbol):
        for row in error.candidates:
            location = place(row["path"], row["line"])
            yield escape_unprintable(f"    {row['symbol']}  {row['kind']}  {location}  {row['repo_id']}")
        if error.total > len(error.candidates):
            yield f"    and {error.total - len(error.candidates):,} more"
    if error.hint:
        yield from map(escape_unprintable, f"  next: {error.hint}".split("\n"))


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
            files = f"{covered.failed_files:,} of {covered.files or 0:,} files have failures"
            yield escape_unprintable(
                f"{covered.repo_id}: {files}, {covered.failures:,} in all (codeanatomy errors)"
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


def _readable_cells(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Cells:
    """Return header and cells of the columns that people read and that have values."""
    used = [name for name in columns if any(row[name] is not None for row in rows)]
    names = [name for name in used if name not in (*MACHINE_COLUMNS, "source")]
    if len({row.get("repo_id") for row in rows}) == 1:
        names = [name for name in names if name != "repo_id"]
    if "path" in used:
        names.insert(min(2, len(names)), "place")
    # Last, since lines have any length.
    names += ["source"] * ("source" in used)
    return _cells(names, [{**row, "place": place(row.get("path"), row.get("line"))} for row in rows])


def _print_columns(answer: Answer, *, wide: bool) -> None:
    """Print the columns of an answer that fit the width, most important first, or all of them.

    On a narrow terminal source lines are below the symbols, else in the last column.
    """
    header, rows = _readable_cells(answer.columns, answer.rows)
    same = {} if wide else _same_in_all_rows(answer.verb, header, rows)
    candidates = [name for name in header if name not in same]
    kept = dict.fromkeys(header, MAX_CELL_CHARS) if wide else _fitting(answer.verb, candidates, header, rows)
    below: list[str] = []
    if header[-1] == "source" and not wide and sys.stdout.isatty():
        most = kept.get("source", kept[_first_name(kept)] - GAP)
        lines = [shortened(row[-1], most) for row in rows]
        if "source" in kept:
            rows = [(*row[:-1], line) for row, line in zip(rows, lines, strict=True)]
        elif answer.verb not in DEFINITION_VERBS:
            below = lines
    chosen = [at for at, name in enumerate(header) if name in kept]
    labels = dict(zip(header, _labels(answer, header), strict=True))
    print_table(
        tuple(labels[header[at]] for at in chosen),
        [tuple(row[at] for at in chosen) for row in rows],
        (_first_name(kept), below),
    )
    if same:
        click.echo(
            escape_unprintable(f"all rows: {', '.join(' '.join(each) for each in same.items())}"), err=True
        )
    shown = {*kept, *same, "source"} if below else {*kept, *same}
    if left_out := [labels[name] for name in header if name not in shown]:
        click.echo(f"columns left out: {', '.join(left_out)} (--wide)", err=True)


def _first_name(kept: Mapping[str, int]) -> str:
    """Return the column that a second line of a row is in."""
    return next((name for name in ("symbol", "place") if name in kept), next(iter(kept)))


def _same_in_all_rows(verb: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the columns that have one value in several rows, with the value; some are always shown."""
    always = ALWAYS_SHOWN if verb == "refs" else (*ALWAYS_SHOWN, "symbol")
    return {
        name: rows[0][at]
        for at, name in enumerate(header)
        if len(rows) > 1 and name not in always and len({row[at] for row in rows}) == 1
    }


def _labels(answer: Answer, header: Sequence[str]) -> list[str]:
    """Return the headers of columns: the place of a row that is a definition is where it is `defined`."""
    where = "defined" if answer.verb in DEFINITION_VERBS else "place"
    return [where if name == "place" else name for name in header]


def _fitting(
    verb: str,
    candidates: Sequence[str],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    least: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, int]:
    """Choose the columns of a table that fit its width, and return how many characters each may have."""
    always = {"symbol", "place"}
    if not sys.stdout.isatty() and verb not in DEFINITION_VERBS:
        always.add("source")
    left = terminal_width() + GAP
    kept: dict[str, int] = {}
    ranked = dict.fromkeys(("symbol", "place", *FIRST_COLUMNS.get(verb, ()), *COLUMN_RANKS))
    for name in (each for each in ranked if each in candidates):
        at = header.index(name)
        longest = max(len(name), *(len(row[at]) for row in rows))
        needed = max(min(longest, LONG_TEXT_CHARS.get(name, longest)), least.get(name, 0))
        if name in always or needed + GAP <= left:
            kept[name] = needed
            left -= needed + GAP
    first = _first_name(kept)
    if "source" in candidates and "source" not in kept and not least and verb not in DEFINITION_VERBS:
        # The line will be below the name, which gets room for it.
        without = [name for name in candidates if name != "source"]
        return _fitting(verb, without, header, rows, {first: LONG_TEXT_CHARS["source"]})
    # The source line gets the rest: a column, or the width of the names.
    kept["source" if "source" in kept else first] += max(left, 0)
    return kept


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
        header, rows = _readable_cells(answer.columns, answer.rows)
        yield from _markdown_table(_labels(answer, header), rows)
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
