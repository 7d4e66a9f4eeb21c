"""Where values come from: against hand-written expectations, and against the opposite direction."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Answer
from codeanatomy.query.engines.statements import Query, Reader, RepositoryReader, nodes
from codeanatomy.query.lake import Lake
from codeanatomy.query.walks.value_flow import ValueFlow, follow_flows, start_flows
from codeanatomy.query.walks.value_origin import follow_origins, start_origins
from support.commands import RunCommand, command_runner
from support.light_builds import clean_lake
from support.marks import quick

VALUES = "shop.paths.values"
KEEP = f"{VALUES}.keep"
SOURCE = """\
import asyncio


def price(item):
    if item:
        return item.cost
    fallback = 3
    return fallback


async def fetch(url):
    return url


def each(first):
    yield first
    return first


async def main(link):
    page = await fetch(link)
    pending = fetch(link)
    total = price(page)
    several = each(page)
    left = right = total
    for one in several:
        left = one
    return left, right, pending


class Basket:
    tax = 2

    def __init__(self, tax):
        self.tax = tax

    @property
    def rate(self):
        return self.tax

    def show(self):
        shown = self.rate
        return shown


def both(x=1):
    y = x
    if y:
        y = price(x)
    return y


def pick(first, other=None):
    chosen = first if other is None else (other or 5)
    if (kept := chosen) and first:
        price(kept and (again := chosen))
    return again
"""


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("origins")
    (folder / "app").mkdir()
    (folder / "app" / "pay.py").write_text(SOURCE, encoding="utf-8")
    assert clean_lake(folder / "lake", {"app": folder / "app"}).status == "succeeded"
    return Lake.open(str(folder / "lake"))


@pytest.fixture
def run_command(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def rows(answer: Answer) -> list[tuple[int, int, str, str]]:
    return [(row["depth"], row["line"], row["relation"], row["symbol"]) for row in answer]


def test_a_parameter_gets_the_arguments_of_calls(lake: Lake) -> None:
    answer = lake.flows(f"{KEEP}.value", direction="from")
    assert rows(answer) == [
        # `keep(LIMIT)` in another module: the name that is imported there, and the variable itself.
        (1, 13, "PASSES_TO", "shop.paths.limits.LIMIT"),
        (1, 13, "PASSES_TO", f"{VALUES}.LIMIT"),
        (1, 15, "PASSES_TO", f"{VALUES}.take.two"),
        (1, 33, "PASSES_TO", f"{VALUES}.Shelf.item"),
        (1, 38, "PASSES_TO", f"{VALUES}.outer.x"),
        (1, 44, "PASSES_TO", f"{VALUES}.LIMIT"),
        # A constant: there is no variable behind it.
        (2, 5, "COPIES", f"{VALUES}.LIMIT"),
        (2, 10, "PASSES_TO", f"{VALUES}.give.amount"),
        (2, 30, "COPIES", f"{VALUES}.Shelf.__init__.item"),
    ]
    by_line = {(row["line"], row["relation"]): row for row in answer}
    assert by_line[10, "PASSES_TO"]["via"] == f"{VALUES}.take.two"
    assert by_line[10, "PASSES_TO"]["inside"] == f"{VALUES}.give"
    # A way is trusted as much as its least trusted step.
    assert by_line[30, "COPIES"]["confidence"] == 0.7


def test_an_attribute_gets_what_is_assigned_to_it(lake: Lake) -> None:
    assert rows(lake.flows("values.Shelf.item", direction="from")) == [
        (1, 30, "COPIES", f"{VALUES}.Shelf.__init__.item"),
    ]


def test_only_so_far(lake: Lake) -> None:
    depths = {row["depth"] for row in lake.flows(f"{KEEP}.value", direction="from", depth=1)}
    assert depths == {1}


def test_recursion_ends(lake: Lake) -> None:
    loop = "shop.paths.values.loop"
    assert rows(lake.flows(f"{loop}.n", direction="from", depth=50)) == [
        (1, 25, "PASSES_TO", f"{loop}.n"),
    ]


def test_calls_are_named_and_followed_if_wanted(app: Lake) -> None:
    assert rows(app.flows("pay.main.total", direction="from")) == [
        (1, 23, "COPIES", "pay.price"),
    ]
    assert rows(app.flows("pay.main.total", direction="from", returns=True)) == [
        (1, 23, "COPIES", "pay.price"),
        # `return item.cost` is an end.
        (2, 6, "RETURNED", "pay.price"),
        (2, 8, "RETURNED", "pay.price.fallback"),
        (3, 7, "COPIES", "pay.price.fallback"),
    ]


def test_a_coroutine_is_no_value_until_it_is_awaited(app: Lake) -> None:
    assert rows(app.flows("pay.main.page", direction="from", returns=True)) == [
        (1, 21, "COPIES", "pay.fetch"),
        (2, 12, "RETURNED", "pay.fetch.url"),
        (3, 21, "PASSES_TO", "pay.main.link"),
        (3, 22, "PASSES_TO", "pay.main.link"),
    ]
    assert rows(app.flows("pay.main.pending", direction="from", returns=True)) == [
        (1, 22, "COPIES", "pay.main.pending")
    ]
    assert "CALLS" not in {row["relation"] for row in app.flows("pay.each.first", returns=True)}
    assert rows(app.flows("pay.main.several", direction="from", returns=True)) == [
        (1, 24, "COPIES", "pay.main.several")
    ]


def test_both_assignments_of_a_variable_and_a_property(app: Lake) -> None:
    assert rows(app.flows("pay.both.y", direction="from", returns=True, depth=1)) == [
        (1, 47, "COPIES", "pay.both.x"),
        (1, 49, "COPIES", "pay.price"),
    ]
    found = rows(app.flows("Basket.show.shown", direction="from", returns=True))
    assert found == [
        (1, 42, "COPIES", "pay.Basket.rate"),
        (2, 39, "RETURNED", "pay.Basket.tax"),
        (3, 32, "COPIES", "pay.Basket.tax"),
        (3, 35, "COPIES", "pay.Basket.__init__.tax"),
    ]


def test_a_branch_and_an_operand_are_the_value(app: Lake) -> None:
    """The condition of a conditional is none; an operand that is a constant is an end."""
    pick, item = "pay.pick", "pay.price.item"
    assert rows(app.flows("pay.pick.other", depth=2)) == [
        (1, 54, "REACHES", f"{pick}.other"),
        (1, 54, "COPIES", f"{pick}.chosen"),
        (2, 55, "COPIES", f"{pick}.kept"),
        (2, 56, "COPIES", f"{pick}.again"),
        (2, 56, "PASSES_TO", item),
    ]
    assert rows(app.flows("pay.pick.chosen", direction="from")) == [
        (1, 54, "COPIES", f"{pick}.first"),
        (1, 54, "COPIES", f"{pick}.other"),
        (1, 54, "COPIES", f"{pick}.chosen"),
    ]


def test_the_command(ask_lake: Path, run_command: RunCommand) -> None:
    options = ("--lake", str(ask_lake), "--format", "json", "--depth", "1")
    code, out, _ = run_command("flows", f"{KEEP}.value", "--direction", "from", "--returns", *options)
    assert code == 0
    rows = json.loads(out)["rows"]
    assert {row["symbol"] for row in rows} >= {f"{VALUES}.take.two", f"{VALUES}.Shelf.item"}
    code, _, problem = run_command("flows", f"{KEEP}.value", "--direction", "up", *options)
    assert code == 2
    assert "--direction" in problem


def test_a_wrong_direction_is_refused(lake: Lake) -> None:
    with pytest.raises(UsageError, match="--direction must be to or from"):
        lake.ask("flows", f"{KEEP}.value", direction="up")


# Source variable, relation, path, first byte, end, target variable.
Step = tuple[str, str, str, int | None, int | None, str]


def forward_steps(reader: Reader, *, returns: bool) -> set[Step]:
    """Return every step of every variable, by following values."""
    level = all_states(reader, start_flows, returns=returns)
    names = {each.state: each.symbol_id for each in level}
    return {
        (names[flow.source], flow.relation, flow.path, flow.bstart, flow.bend, flow.symbol_id)
        for flow in follow_flows(reader, level, returns=returns)
        if flow.relation in ("COPIES", "PASSES_TO") or (returns and flow.relation == "RETURNED")
    }


def backward_steps(reader: Reader, *, returns: bool) -> set[Step]:
    """Return every step of every variable, by following values back."""
    level = all_states(reader, start_origins, returns=returns)
    steps = follow_origins(reader, level, returns=returns)
    gets = {
        (flow.source, flow.path, flow.bstart, flow.bend): flow for flow in steps if flow.edge_id is None
    } | {
        (flow.source, flow.path, flow.bstart, flow.bend): flow
        for flow in steps
        if flow.relation == "PASSES_TO"
    }
    return {
        (flow.symbol_id, get.relation, flow.path, flow.bstart, flow.bend, get.symbol_id)
        for flow in steps
        if flow.relation in ("REACHES", "REFERS_TO") or (returns and flow.relation == "CALLS")
        if (get := gets[flow.source, flow.path, flow.bstart, flow.bend])
    }


def all_states(reader: Reader, start: Callable[..., list[ValueFlow]], *, returns: bool) -> list[ValueFlow]:
    """Return all states; the one at the entry of a function belongs to the parameter, not to its binding."""
    states: dict[str | None, ValueFlow] = {}
    for kind in ("BINDING", "PARAMETER"):
        ids = [row[0] for row in reader.rows(Query("SELECT n.node_id FROM n", {"n": nodes((kind,))}))]
        states |= {each.state: each for each in start(reader, ids, kind)}
    functions = Query("SELECT n.node_id, n.repo_id FROM n", {"n": nodes(("FUNCTION",))})
    for node, repo_id in reader.rows(functions) if returns else ():
        states[node] = ValueFlow(
            "", "f", "FUNCTION", node, "", None, None, None, "f", 1.0, None, repo_id, node, ""
        )
    return list(states.values())


@pytest.mark.parametrize(
    ("repo_id", "least", "returns"),
    quick([("shop", 15, False), ("shop", 15, True), ("flask", 300, True), ("flask", 300, False)], 0, 1, 2),
)
def test_every_step_exists_in_both_directions(lake: Lake, repo_id: str, least: int, returns: bool) -> None:
    reader = RepositoryReader(lake.reader, (repo_id,))
    forward = forward_steps(reader, returns=returns)
    assert len(forward) >= least
    assert backward_steps(reader, returns=returns) == forward


@pytest.mark.parametrize("returns", [False, True])
def test_every_step_of_async_code_exists_in_both_directions(app: Lake, returns: bool) -> None:
    assert backward_steps(app.reader, returns=returns) == forward_steps(app.reader, returns=returns)


@pytest.mark.parametrize("walks", quick([4, 24], 0))
def test_what_is_reached_from_a_reaches_a(lake: Lake, walks: int) -> None:
    """Whole walks, of variables of flask drawn at random."""
    query = Query("SELECT n.qualname FROM n", {"n": nodes(("PARAMETER",), "flask")}, order=("qualname",))
    names = [name for (name,) in lake.reader.rows(query)]
    pairs = 0
    for name in Random(26).sample(names, walks):
        ends = {
            row["symbol"]
            for row in lake.flows(name, repo_id="flask", depth=20, limit=1000)
            if row["relation"] in ("COPIES", "PASSES_TO")
        }
        for end in sorted(ends)[:3]:
            origins = lake.flows(end, repo_id="flask", depth=20, limit=1000, direction="from")
            assert name in {row["symbol"] for row in origins}, (name, end)
            pairs += 1
    assert pairs > walks / 2
