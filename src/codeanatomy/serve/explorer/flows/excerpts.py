"""Cut the lines around spans out of several files, and mark the spans.

    made = excerpts(reader, "shop", {span: "flow at-1"}, {("shop/paths/values.py", 9): (1, 2)})
    made.files[0].parts[0].lines[0].html     # line 7 of values.py, as HTML

Spans of one file with few lines between them share a part. The number of files and lines is bounded;
`left_out` has the paths whose lines are not shown.

Tests: `tests/unit/serve/test_flow_pages.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from codeanatomy.query.engines.statements import Query, Reader, Slice
from codeanatomy.serve.explorer.flows.flow_steps import FlowSpan
from codeanatomy.serve.explorer.source_text import Mark, lexed, render_lines

# Lines before and after a span.
CONTEXT = 2
MAX_FILES = 25
MAX_LINES = 800
# Larger files are not shown.
MAX_FILE_BYTES = 2_000_000
# Lines of a span that are shown.
SPAN_LINES = 6
# The name of a function in its definition.
NAME = re.compile(rb"(?:async\s{1,100})?def\s{1,100}([\w\x80-\xff]{1,1000})")


class ExcerptLine(Struct, frozen=True):
    """A line with the numbers of the steps on it."""

    number: int
    html: Markup
    steps: tuple[int, ...]


class ExcerptPart(Struct, frozen=True):
    """Consecutive lines."""

    lines: tuple[ExcerptLine, ...]


class ExcerptFile(Struct, frozen=True):
    """The shown parts of a file."""

    path: str
    parts: tuple[ExcerptPart, ...]


class Excerpts(Struct, frozen=True):
    """Parts of files, in the order of the first span in each."""

    files: tuple[ExcerptFile, ...]
    left_out: tuple[str, ...]


def excerpts(
    reader: Reader, repo_id: str, marks: Mapping[FlowSpan, str], steps: Mapping[FlowSpan, Sequence[int]]
) -> Excerpts:
    """Return the lines around the marked spans; `steps` has the numbers of steps at spans."""
    paths = list(dict.fromkeys(span.path for span in marks))
    query = Query(
        "SELECT b.path, b.text FROM b WHERE b.text IS NOT NULL AND b.size_bytes <= ?",
        {"b": Slice("repo_file_blobs_v1", repo_id=(repo_id,), path=paths[:MAX_FILES])},
        (MAX_FILE_BYTES,),
    )
    texts: dict[str, str] = dict(reader.rows(query)) if paths else {}
    files: list[ExcerptFile] = []
    lines = 0
    for path in paths:
        if path in texts and lines < MAX_LINES:
            of_file = {span: css for span, css in marks.items() if span.path == path}
            files.append(_file(path, texts[path], of_file, steps, MAX_LINES - lines))
            lines += sum(len(part.lines) for part in files[-1].parts)
    shown = {file.path for file in files}
    return Excerpts(tuple(files), tuple(path for path in paths if path not in shown))


def _file(
    path: str,
    text: str,
    spans: Mapping[FlowSpan, str],
    steps: Mapping[FlowSpan, Sequence[int]],
    most: int,
) -> ExcerptFile:
    source = lexed(text)
    marks: list[Mark] = []
    wanted: set[int] = set()
    numbers: dict[int, list[int]] = {}
    for span, css in spans.items():
        name = NAME.match(source.data, span.bstart)
        start, end = name.span(1) if name else (span.bstart, span.bend)
        marks.append((start, end, css))
        first = source.line_of(start)
        last = min(source.line_of(max(end - 1, start)), first + SPAN_LINES)
        wanted.update(range(max(first - CONTEXT, 1), min(last + CONTEXT, source.line_count) + 1))
        numbers.setdefault(first, []).extend(steps.get(span, ()))
    ranges: list[tuple[int, int]] = []
    for line in sorted(wanted)[:most]:
        # A gap of one line would take as much room as the line itself.
        if ranges and line - ranges[-1][1] <= CONTEXT:
            ranges[-1] = (ranges[-1][0], line)
        else:
            ranges.append((line, line))
    parts = [
        ExcerptPart(
            tuple(
                ExcerptLine(line.number, line.html, tuple(sorted(set(numbers.get(line.number, ())))))
                for line in render_lines(text, first, last, marks=marks)
            )
        )
        for first, last in ranges
    ]
    return ExcerptFile(path, tuple(parts))
