"""`codeanatomy sql`, on both engines."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from asked import Ran, asking
from codeanatomy.errors import SqlRefused
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.spark import run_spark_sql

KINDS = "SELECT kind, count(*) AS amount FROM symbols WHERE repo_id = 'depot' GROUP BY kind ORDER BY kind"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ran:
    return asking(capfd, monkeypatch, tmp_path)


def test_rows_in_every_format(run: Ran, ask_lake: Path) -> None:
    code, out, err = run("sql", KINDS, "--lake", str(ask_lake))
    answer = json.loads(out)
    assert (code, err, answer["status"]) == (0, "", "ok")
    assert {"kind": "CLASS", "amount": 1} in answer["rows"]
    assert answer["total"] == len(answer["rows"])
    code, out, err = run("sql", KINDS, "--lake", str(ask_lake), "--format", "csv")
    assert out.splitlines()[:2] == ["kind,amount", "BINDING,1"] or out.startswith("kind,amount\n")
    assert "rows; run " in err
    for form in ("jsonl", "table", "markdown"):
        code, out, _ = run("sql", KINDS, "--lake", str(ask_lake), "--format", form)
        assert (code, "CLASS" in out) == (0, True)


def test_a_limit_says_that_there_is_more(run: Ran, ask_lake: Path) -> None:
    code, out, err = run(
        "sql", "SELECT * FROM symbols", "--limit", "2", "--lake", str(ask_lake), "--format", "jsonl"
    )
    assert (code, len(out.splitlines())) == (0, 2)
    assert "2 shown (--limit)" in err


def test_a_statement_from_standard_input(run: Ran, ask_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(KINDS))
    assert run("sql", "-", "--lake", str(ask_lake))[0] == 0


def test_a_refusal_says_where(run: Ran, ask_lake: Path) -> None:
    code, out, err = run("sql", "SELECT knd FROM symbols", "--lake", str(ask_lake))
    (wrong,) = json.loads(out)["diagnostics"]
    assert (code, wrong["line"], wrong["column"], wrong["suggestion"]) == (2, 1, 8, "did you mean kind?")
    assert "CA015" in err
    code, out, _ = run("sql", "DROP TABLE symbols", "--lake", str(ask_lake), "--format", "table")
    assert (code, out) == (2, "")


def test_the_same_by_spark(spark: SparkSession, ask_lake: Path) -> None:
    lake = Lake.open(str(ask_lake), spark=spark)
    by_spark = run_spark_sql(lake, KINDS, limit=100, seconds=120)
    light = Lake.open(str(ask_lake)).sql(KINDS)
    assert (by_spark.columns, by_spark.rows, by_spark.total) == (light.columns, light.rows, light.total)
    few = run_spark_sql(lake, KINDS, limit=1, seconds=120)
    assert (len(few.rows), few.truncated, few.total) == (1, True, None)
    with pytest.raises(SqlRefused):
        run_spark_sql(lake, "SELECT reflect('java.lang.System', 'exit')", limit=1, seconds=1)
    with pytest.raises(SqlRefused, match="no answer in"):
        run_spark_sql(
            lake, "SELECT count(*) FROM nodes a CROSS JOIN nodes b CROSS JOIN nodes c", limit=1, seconds=0.5
        )
