"""Answers as a whole: of every verb, with totals, freshness and coverage, at any published run."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from codeanatomy.errors import UnknownName, UnknownSymbol, UsageError
from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.query.answers import COLUMNS
from codeanatomy.query.ask import VERBS, verb_function
from codeanatomy.query.lake import Lake, Verbs

# A question of each verb that has an answer.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "find": ("Cart",),
    "show": ("shop.cart.Cart",),
    "callers": ("shop.cart.total",),
    "callees": ("shop.cart.sell",),
    "refs": ("shop.cart.total",),
    "path": ("shop.cart.sell", "shop.cart.print_bill"),
    "impact": ("shop.cart.total",),
    "flows": ("shop.cart.print_bill.amount",),
    "explain": ("shop.cart.sell", "shop.cart.Cart.checkout"),
    "unused": (),
    "cycles": (),
    "unresolved": (),
    "errors": (),
    "stats": (),
}


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def test_there_is_a_question_for_every_verb() -> None:
    assert set(QUESTIONS) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_answer_has_the_same_frame(lake: Lake, verb: str) -> None:
    answer = lake.ask(verb, *QUESTIONS[verb])
    assert answer.verb == verb
    assert answer.subject == QUESTIONS[verb]
    assert answer.rows, verb
    assert set(answer.columns) <= set(COLUMNS)
    assert {"symbol", "kind", "path", "line", "confidence", "method", "repo_id"} <= set(answer.columns)
    assert all(tuple(row) == answer.columns for row in answer.rows)
    assert answer.total == len(answer.rows) + answer.cut
    assert answer.run_id == lake.snapshot.run_id
    assert answer.freshness
    assert answer.to_arrow().num_rows == len(answer.rows)


@pytest.mark.parametrize("verb", VERBS)
def test_every_answer_is_the_same_again(lake: Lake, verb: str) -> None:
    assert lake.ask(verb, *QUESTIONS[verb]).rows == lake.ask(verb, *QUESTIONS[verb]).rows


@pytest.mark.parametrize("verb", VERBS)
def test_a_limit_cuts_and_says_so(lake: Lake, verb: str) -> None:
    whole = lake.ask(verb, *QUESTIONS[verb], limit=100_000)
    first = lake.ask(verb, *QUESTIONS[verb], limit=1)
    assert first.rows == whole.rows[:1]
    assert (first.total, first.cut) == (whole.total, max(whole.total - 1, 0))
    assert first.more == (f"--limit {whole.total}" if whole.total > 1 else None)


def test_every_verb_is_a_method_and_a_function() -> None:
    for verb in VERBS:
        assert callable(getattr(Verbs, verb))
        assert inspect.getdoc(getattr(Verbs, verb))
        assert verb_function(verb).__name__ == verb


def test_methods_are_the_verbs(lake: Lake) -> None:
    assert lake.callers("shop.cart.total").rows == lake.ask("callers", "shop.cart.total", depth=1).rows
    assert lake.path("shop.cart.sell", "print_bill").rows == lake.ask("path", *QUESTIONS["path"]).rows
    assert lake.find("Cart", repo_id="shop").to_pandas()["symbol"].tolist() == ["shop.cart.Cart"]


def test_freshness_and_coverage(lake: Lake) -> None:
    answer = lake.find("total", repo_id="depot")
    (fresh,) = answer.freshness
    assert (fresh.repo_id, fresh.run_id, fresh.source_state) == ("depot", lake.snapshot.run_id, "unchanged")
    (covered,) = answer.coverage
    # broken.py cannot be parsed.
    assert (covered.repo_id, covered.files, covered.graph) == ("depot", 2, True)
    assert covered.failures > 0


def test_threads_may_ask_one_lake(lake: Lake) -> None:
    names = ("shop.cart.total", "shop.cart.sell", "shop.cart.Cart", "flask.Flask", "shop.money.TAX") * 4
    alone = {name: lake.refs(name) for name in set(names)}
    with ThreadPoolExecutor(6) as threads:
        for name, together in zip(names, threads.map(lake.refs, names), strict=True):
            assert together == alone[name]


def test_limits_without_sense(lake: Lake) -> None:
    with pytest.raises(UsageError, match="limit"):
        lake.find("Cart", limit=-1)


def test_as_of_an_older_run(ask_lake: Path, lake: Lake) -> None:
    runs = recorded_runs(str(ask_lake))
    before = Lake.open(str(ask_lake), runs[0].run_id)
    assert [row["path"] for row in before.find("retired")] == ["old.py"]
    # The symbol was deleted since.
    assert lake.find("retired").rows == ()
    with pytest.raises(UnknownSymbol):
        lake.callers("retired")
    assert before.callers("retired").run_id == runs[0].run_id


@pytest.mark.parametrize(
    ("verb", "names"),
    [
        ("callers", ()),
        ("callers", ("shop.cart.sell", "shop.cart.total")),
        ("path", ("shop.cart.sell",)),
        ("explain", ("shop.cart.sell",) * 3),
        ("unused", ("shop.cart.sell",)),
        ("unresolved", ("shop.cart.sell",) * 2),
        ("find", ("sell", "total")),
    ],
)
def test_too_many_or_too_few_names(lake: Lake, verb: str, names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="takes") as caught:
        lake.ask(verb, *names)
    assert "names" not in caught.value.message


def test_unknown_verbs_and_repositories(lake: Lake) -> None:
    with pytest.raises(UnknownName, match="frobnicate"):
        lake.ask("frobnicate")
    with pytest.raises(UnknownName, match="nowhere"):
        lake.find("Cart", repo_id="nowhere")


# Modules that take longer to import than a query takes, or that most answers do not need.
HEAVY = (
    "pyspark",
    "pyarrow",
    "pandas",
    "numpy",
    "deltalake",
    "sqlglot",
    "rich",
    "codeanatomy.catalog.kinds",
    "codeanatomy.catalog.validation",
    "codeanatomy.catalog.views",
    "codeanatomy.delta.write",
)


def test_an_answer_imports_no_heavy_module(ask_lake: Path) -> None:
    program = (
        "import sys; from codeanatomy.cli.main import run_command;"
        f"sys.argv = ['codeanatomy', 'callers', 'shop.cart.total', '--lake', {str(ask_lake)!r}];"
        f"run_command(); print(*set({HEAVY}) & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"]
    assert done.stderr.split() == []


def test_the_process_of_an_answer_ends_with_all_of_its_output_and_no_folder(
    ask_lake: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "codeanatomy", "callers", "shop.cart.total", "--lake", str(ask_lake)]
    done = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    rows = Lake.open(ask_lake).callers("shop.cart.total").rows
    assert (json.loads(done.stdout)["rows"], done.stderr) == (list(rows), "")
    assert list(tmp_path.iterdir()) == []
