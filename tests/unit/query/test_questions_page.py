"""`docs/questions.md`: every statement on the page is run, and its rows are those of the table below it.

After a change that is meant, `pytest tests/unit/query/test_questions_page.py --regenerate` writes the tables
anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.light import SqlAnswer
from support.folders import ROOT

PAGE = ROOT / "docs" / "questions.md"
QUESTION = re.compile(
    r"^## (?P<number>\d+)\. (?P<words>[^\n]+)\n(?P<text>.*?)"
    r"```sql\n(?P<sql>.*?)```\n\n(?P<table>(?:\|[^\n]*\n)+)",
    re.MULTILINE | re.DOTALL,
)


class Question(NamedTuple):
    number: int
    words: str
    sql: str
    table: str


def questions(page: str) -> list[Question]:
    return [
        Question(int(found["number"]), found["words"], found["sql"], found["table"])
        for found in QUESTION.finditer(page)
    ]


QUESTIONS = questions(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def test_there_are_ten_questions_and_nothing_else() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [each.number for each in QUESTIONS] == list(range(1, 11))
    assert page.count("\n## ") == page.count("```sql\n") == 10


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.words)
def test_the_answer_is_on_the_page(question: Question, lake: Lake, request: pytest.FixtureRequest) -> None:
    # The lake of the tests has other repositories too.
    assert "repo_id = 'flask'" in question.sql
    answer = lake.sql(question.sql)
    assert is_sorted_by_more_than_chance(question.sql, answer)
    found = table(answer)
    if request.config.getoption("--regenerate"):
        write(question.number, found)
    else:
        assert question.table.splitlines() == found.splitlines()


def is_sorted_by_more_than_chance(sql: str, answer: SqlAnswer) -> bool:
    """Whether no two rows are equal in what they are sorted by: such rows could be in any order."""
    order = sql.rpartition("ORDER BY ")[2].partition("\n")[0]
    keys = [key.split()[0].rpartition(".")[2] for key in order.split(", ")]
    return len({tuple(row[key] for key in keys) for row in answer.rows}) == len(answer.rows)


def table(found: SqlAnswer) -> str:
    """The whole answer as a Markdown table."""
    assert not found.more
    assert found.rows
    rows = [[cell(row[name]) for name in found.columns] for row in found.rows]
    lines = [list(found.columns), ["---"] * len(found.columns), *rows]
    return "".join(
        f"|{'|'.join(line)}|\n" if line[0] == "---" else f"| {' | '.join(line)} |\n" for line in lines
    )


def cell(value: Any) -> str:
    """A value as Markdown shows it; names are code, for some begin and end with `__`."""
    assert value is not None
    # So that nothing has to be escaped.
    assert not set(str(value)) & set("|`\n")
    return f"`{value}`" if isinstance(value, str) else str(value)


def write(number: int, rows: str) -> None:
    """Replace the table of a question."""

    def replaced(found: re.Match[str]) -> str:
        start, end = found.span("table")
        whole = found[0]
        return (
            whole[: start - found.start()] + rows + whole[end - found.start() :]
            if int(found["number"]) == number
            else whole
        )

    PAGE.write_text(QUESTION.sub(replaced, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
