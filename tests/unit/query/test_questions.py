"""The verbs as commands: formats, exit codes, what is told on stderr."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.cli.ask import COMMANDS, PARAMETERS
from codeanatomy.cli.printing import answer_notes
from codeanatomy.query.answers import COLUMNS
from codeanatomy.query.ask import VERBS
from codeanatomy.query.lake import Lake
from support.commands import RunCommand, command_runner

CALLERS = ("callers", "shop.cart.Cart.total", "--depth", "2", "--repo", "shop")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def test_every_verb_is_a_command_with_the_same_options() -> None:
    verbs = {name: command for name, command in COMMANDS.items() if name != "sql"}
    assert set(verbs) == set(PARAMETERS) == set(VERBS)
    for command in verbs.values():
        names = {option for parameter in command.params for option in parameter.opts}
        assert {"--lake", "--repo-id", "--as-of", "--limit", "--format"} <= names
        assert command.help


def test_json_by_default_where_it_is_piped(run: RunCommand, ask_lake: Path) -> None:
    code, out, err = run(*CALLERS, "--lake", str(ask_lake))
    answer: dict[str, Any] = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["status"] == "ok"
    assert answer["total"] == len(answer["rows"]) >= 2
    assert list(answer["rows"][0]) == answer["columns"]
    assert answer["rows"][0]["path"] == "shop/cart.py"
    assert {"verb", "subject", "symbols", "cut", "more", "notes", "run_id", "freshness", "coverage"} < set(
        answer
    )


def test_lines_of_json(run: RunCommand, ask_lake: Path) -> None:
    code, out, err = run(*CALLERS, "--lake", str(ask_lake), "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert rows == list(Lake.open(str(ask_lake)).callers("shop.cart.Cart.total", depth=2))
    assert "rows" in err
    assert "run " in err


def test_csv(run: RunCommand, ask_lake: Path) -> None:
    _, out, _ = run("show", "shop.money.Price", "--lake", str(ask_lake), "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert row["docstring"].splitlines()[2] == '<script>alert("not markup")</script>'


def test_markdown_has_no_markup_of_others(run: RunCommand, ask_lake: Path) -> None:
    _, out, err = run("show", "shop.money.Price", "--lake", str(ask_lake), "--format", "markdown")
    assert "<script>" not in out
    assert "&lt;script&gt;" in out
    # It is sent on: what is to be known is part of it.
    assert "the source has" in out
    assert err == ""


def test_a_table_has_places(run: RunCommand, ask_lake: Path) -> None:
    code, out, err = run(*CALLERS, "--lake", str(ask_lake), "--format", "table", "--limit", "1")
    assert code == 0
    header, row = out.splitlines()
    assert header.split()[:2] == ["symbol", "place"]
    assert "shop/cart.py:32" in row
    assert row.endswith("  charged = self.total()")
    assert "not shown (--limit" in err


def table_of(run: RunCommand, lake: Path, *question: str) -> tuple[list[str], list[str], str]:
    """Return the header and lines of a table, and what is on stderr."""
    code, out, err = run(*question, "--lake", str(lake), "--format", "table")
    assert code == 0
    header, *lines = out.splitlines()
    return header.split(), lines, err


def test_a_table_has_the_columns_that_fit(
    run: RunCommand, ask_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    narrow, _, err = table_of(run, ask_lake, *CALLERS)
    monkeypatch.setenv("COLUMNS", "200")
    broad, _, _ = table_of(run, ask_lake, *CALLERS)
    every, _, told = table_of(run, ask_lake, *CALLERS, "--wide")
    assert narrow[:2] == ["symbol", "place"]
    assert set(narrow) < set(broad) < set(every)
    assert "columns left out: subkind," in err
    assert "columns left out" not in told
    assert set(every) == {*Lake.open(str(ask_lake)).callers("shop.cart.total").columns, "place"} - {
        "path",
        "line",
        "repo_id",
        "symbol_id",
    }


def test_a_column_of_one_value_is_left_out(run: RunCommand, ask_lake: Path) -> None:
    header, _, err = table_of(run, ask_lake, "callees", "shop.cart.sell")
    assert "depth" not in header
    assert "depth" in err
    # These are shown, though all rows have the same.
    assert {"symbol", "place", "confidence", "sites", "source"} <= set(header)


@pytest.mark.parametrize("question", [("find", "Cart"), ("unused",)])
def test_the_place_of_a_definition_is_where_it_is_defined(
    run: RunCommand, ask_lake: Path, question: tuple[str, ...]
) -> None:
    header, _, _ = table_of(run, ask_lake, *question)
    assert "defined" in header
    assert "place" not in header


def test_source_lines_are_below_the_symbols_of_a_narrow_terminal(
    run: RunCommand, ask_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    header, lines, _ = table_of(run, ask_lake, *CALLERS)
    assert "source" not in header
    assert lines[1].strip() == "charged = self.total()"
    assert max(map(len, lines)) <= 70


def test_show_is_a_list_of_facts(run: RunCommand, ask_lake: Path) -> None:
    _, out, _ = run("show", "with_tax", "--repo", "shop", "--lake", str(ask_lake), "--format", "table")
    assert out.startswith("shop.money.Price.with_tax  shop/money.py:22\n")
    assert "\n    The price with tax on it.\n" in out


def test_ambiguous_and_unknown_names(run: RunCommand, ask_lake: Path) -> None:
    code, out, err = run("callers", "total", "--lake", str(ask_lake))
    assert code == 2
    answer = json.loads(out)
    assert (answer["status"], len(answer["candidates"])) == ("ambiguous", 3)
    # What happened comes first, then what may be meant.
    assert err.splitlines() == [
        "error [CA014] 3 symbols are called 'total'",
        "    depot.total  FUNCTION  depot.py:11  depot",
        "    shop.cart.Cart.total  FUNCTION  shop/cart.py:28  shop",
        "    shop.cart.total  FUNCTION  shop/cart.py:11  shop",
        "  next: select one by its qualified name, by file:line, or with --repo-id",
    ]
    code, out, err = run("callers", "chekout", "--lake", str(ask_lake), "--format", "table")
    assert (code, out) == (2, "")
    assert err == ("error [CA013] no symbol is called 'chekout'\n  next: closest: shop.cart.Cart.checkout\n")
    assert json.loads(run("refs", "chekout", "--lake", str(ask_lake))[1])["status"] == "unknown"


def test_an_error_is_json_too(run: RunCommand, ask_lake: Path) -> None:
    code, out, _ = run("find", "Cart", "--kind", "thing", "--lake", str(ask_lake))
    told = json.loads(out)
    assert (code, told["status"], told["code"]) == (2, "error", "CA010")
    assert "known: " in told["hint"]


def test_no_answer_is_none_and_no_error(run: RunCommand, ask_lake: Path) -> None:
    code, out, err = run("callers", "shop.cart.größe", "--lake", str(ask_lake), "--format", "table")
    assert (code, out) == (0, "")
    assert err.startswith("0 rows\n")


def test_the_lake_may_be_named_by_the_environment(
    run: RunCommand, ask_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEANATOMY_LAKE", str(ask_lake))
    assert run("find", "Cart")[0] == 0
    monkeypatch.delenv("CODEANATOMY_LAKE")
    assert run("find", "Cart")[0] == 2


def test_as_of(run: RunCommand, ask_lake: Path) -> None:
    code, _, err = run("find", "Cart", "--lake", str(ask_lake), "--as-of", "2001-01-01")
    assert code == 6
    assert "nothing was published" in err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--format", "../../etc/passwd"),
        ("--format", "html"),
        ("--limit", "0"),
        ("--limit", "-1"),
        ("--limit", "many"),
        ("--depth", "0"),
        ("--depth", "101"),
    ],
)
def test_wrong_use(run: RunCommand, ask_lake: Path, wrong: tuple[str, str]) -> None:
    code, out, err = run("callers", "Cart", "--lake", str(ask_lake), *wrong)
    assert (code, out) == (2, "")
    assert "Error" in err


def test_what_is_told_of_an_answer(ask_lake: Path) -> None:
    lines = list(answer_notes(Lake.open(str(ask_lake)).find("total", repo_id="depot")))
    assert lines[0] == "1 row"
    # `broken.py` alone; four extractors have failed on it.
    failures = [line for line in lines if line.endswith("(codeanatomy errors)")]
    assert failures == ["depot: 1 of 2 files have failures, 4 in all (codeanatomy errors)"]


def test_columns_of_answers_are_documented() -> None:
    assert set(COLUMNS) >= {"symbol", "kind", "path", "line", "confidence", "method"}
