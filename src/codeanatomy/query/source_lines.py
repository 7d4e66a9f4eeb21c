r"""Add the text of the source line to each row of an answer.

    with_source_lines(reader, records, ["shop"])
    # [{"path": "shop/cart.py", "line": 48, "source": "cart.checkout()", ...}, ...]

The text is that of `repo_file_blobs_v1`, which the lake keeps: the one that the positions refer to, also
after the source has changed. A repository whose graph is of an earlier run than its files is left out: a line
of other text would be wrong. Lines are counted as CPython does (`\n`, `\r\n`, `\r`). Only rows that are
shown are looked up, so that the time does not depend on the size of the answer; a DataFrame has the column by
a join.

Tests: `tests/unit/query/test_source_lines.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import structs

from codeanatomy.query.engines.statements import Query, Reader, Slice

NEWLINE = re.compile(r"\r\n|\r|\n")
# Longer lines are cut.
LINE_CHARS = 200
# Files read at once.
BATCH = 100


def with_source_lines(
    reader: Reader, records: Sequence[Mapping[str, Any]], repo_ids: Collection[str]
) -> tuple[dict[str, Any], ...]:
    """Return the rows of an answer with the text of their lines; rows of other repositories have none."""
    wanted: dict[tuple[str, str], set[int]] = {}
    for row in records:
        if row["line"] is not None and row["path"] is not None and row["repo_id"] in repo_ids:
            wanted.setdefault((row["repo_id"], row["path"]), set()).add(row["line"])
    lines: dict[tuple[str, str, int], str] = {}
    files = sorted(wanted)
    for first in range(0, len(files), BATCH):
        batch = files[first : first + BATCH]
        for repo_id, path, text in reader.rows(texts_query(batch)):
            for number, line in lines_of(text, wanted.get((repo_id, path), ())).items():
                lines[repo_id, path, number] = line
    return tuple({**row, "source": lines.get((row["repo_id"], row["path"], row["line"]))} for row in records)


def texts_query(files: Collection[tuple[str, str]]) -> Query:
    """Return the query of the texts of files, given by repository and path, and perhaps of some others."""
    repo_ids, paths = ({file[at] for file in files} for at in (0, 1))
    return Query(
        "SELECT b.repo_id, b.path, b.text FROM b WHERE b.text IS NOT NULL",
        {"b": Slice("repo_file_blobs_v1", repo_id=sorted(repo_ids), path=sorted(paths))},
        order=("repo_id", "path"),
    )


def lines_of(text: str, numbers: Collection[int]) -> dict[int, str]:
    r"""Return lines of a text by number, counted from 1, without indentation.

    >>> lines_of("def f():\r\n\treturn 1\rx = 2", {2, 3, 4})
    {2: 'return 1', 3: 'x = 2'}
    """
    lines = NEWLINE.split(text) if numbers else []
    return {each: shorten(lines[each - 1].strip()) for each in numbers if 1 <= each <= len(lines)}


def shorten(line: str) -> str:
    """Cut a long line, and mark the cut."""
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}..."


def with_source_sql(query: Query, repo_ids: Collection[str]) -> Query:
    """Return a query of answer rows with the same column, for DataFrames: in SQL of Spark."""
    line = r"regexp_replace(get(t.lines, r.line - 1), '^[ \\t\\f]+|[ \\t\\f]+$', '')"
    cut = (
        f"concat(left({line}, {LINE_CHARS}), CASE WHEN length({line}) > {LINE_CHARS} THEN '...' ELSE '' END)"
    )
    texts = r"SELECT repo_id, path, split(text, '\\r\\n|\\r|\\n') AS lines FROM source_texts"
    sql = (
        f"SELECT r.* EXCEPT (source), {cut} AS source FROM ({query.sql}) AS r"
        f" LEFT JOIN ({texts}) AS t ON t.repo_id = r.repo_id AND t.path = r.path"
    )
    relations = {**query.relations, "source_texts": Slice("repo_file_blobs_v1", repo_id=sorted(repo_ids))}
    return structs.replace(query, sql=sql, relations=relations)
