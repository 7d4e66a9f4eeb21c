"""`codeanatomy sql` on DuckDB; on Spark: `tests/spark/test_sql_command.py`."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from support.commands import RunCommand, command_runner

KINDS = "SELECT kind, count(*) AS amount FROM symbols WHERE repo_id = 'depot' GROUP BY kind ORDER BY kind"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def test_rows_in_every_format(run: RunCommand, ask_lake: Path) -> None:
    code, out, err = run("sql", KINDS, "--lake", str(ask_lake))
    answer = json.loads(out)
    assert (code, err, answer["status"]) == (0, "", "ok")
    kinds = [row["kind"] for row in answer["rows"]]
    assert (kinds, len(kinds)) == (sorted(kinds), 6)
    assert {"kind": "CLASS", "amount": 1} in answer["rows"]
    assert (answer["total"], answer["cut"], answer["more"], answer["notes"]) == (6, 0, None, [])
    assert [fresh["source_state"] for fresh in answer["freshness"]] == ["unchanged"] * 3
    lines = [f"{row['kind']},{row['amount']}" for row in answer["rows"]]
    code, out, err = run("sql", KINDS, "--lake", str(ask_lake), "--format", "csv")
    assert (code, out.splitlines()) == (0, ["kind,amount", *lines])
    assert err.splitlines()[0] == "6 rows"
    # A checkout in git has a commit, too.
    fresh = rf"depot: run {answer['run_id']}(, commit \w+)?; the source has not changed since"
    assert re.search(f"^{fresh}$", err, re.MULTILINE)
    code, out, _ = run("sql", KINDS, "--lake", str(ask_lake), "--format", "jsonl")
    assert [json.loads(line) for line in out.splitlines()] == answer["rows"]
    code, out, _ = run("sql", KINDS, "--lake", str(ask_lake), "--format", "table")
    assert [line.split() for line in out.splitlines()] == [["kind", "amount"], *(x.split(",") for x in lines)]
    code, out, _ = run("sql", KINDS, "--lake", str(ask_lake), "--format", "markdown")
    assert "| CLASS | 1 |" in out.splitlines()


def test_a_limit_says_that_there_is_more(run: RunCommand, ask_lake: Path) -> None:
    code, out, err = run(
        "sql", "SELECT * FROM symbols", "--limit", "2", "--lake", str(ask_lake), "--format", "jsonl"
    )
    assert (code, len(out.splitlines())) == (0, 2)
    assert re.match(r"[\d,]+ rows, [\d,]+ not shown \(--limit \d+\)\n", err)


def test_a_statement_from_standard_input(
    run: RunCommand, ask_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(KINDS))
    code, out, _ = run("sql", "-", "--lake", str(ask_lake))
    assert (code, json.loads(out)["subject"]) == (0, [KINDS])


def test_a_refusal_says_where(run: RunCommand, ask_lake: Path) -> None:
    code, out, err = run("sql", "SELECT knd FROM symbols", "--lake", str(ask_lake))
    (wrong,) = json.loads(out)["diagnostics"]
    assert (code, wrong["line"], wrong["column"], wrong["suggestion"]) == (2, 1, 8, "did you mean kind?")
    assert "CA015" in err
    code, out, _ = run("sql", "SELECT '\udcff'", "--lake", str(ask_lake))
    assert (code, json.loads(out)["diagnostics"][0]["message"]) == (2, "it is not UTF-8")
    code, out, _ = run("sql", "DROP TABLE symbols", "--lake", str(ask_lake), "--format", "table")
    assert (code, out) == (2, "")
