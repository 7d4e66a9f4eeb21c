"""What a change reaches, as a value: every step returns the next frontier, and the earlier one stays."""

from __future__ import annotations

from codeanatomy.lake.manifest import ChangeWindow
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.frontier import FileOutcome, Frontier
from codeanatomy.plan.changes import FILES, Impact, SourceChange
from codeanatomy.plan.steps import GRAPH, RELATE
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS

CART, ORDER, OLD, SHOP = (file_id("shop", f"shop/{name}.py") for name in ("cart", "order", "old", "shop"))
EDITS = [
    SourceChange("shop/cart.py", CART, "changed"),
    SourceChange("shop/old.py", OLD, "removed"),
]


def edited() -> Frontier:
    return Frontier.of("shop", EDITS)


def followed() -> Frontier:
    feed = {FILES: frozenset({CART, OLD})}
    return edited().with_feed(RELATE, feed, [ChangeWindow(FILES, 3, 4)], {})


def test_edits_are_the_first_reasons() -> None:
    frontier = edited()
    assert (frontier.edited, frontier.paths) == ({CART, OLD}, {"shop/cart.py"})
    assert frontier.impact == (Impact("shop/cart.py", "changed"), Impact("shop/old.py", "removed"))


def test_a_step_redoes_what_its_feeds_have() -> None:
    before = edited()
    after = before.with_feed(
        RELATE,
        {FILES: frozenset({CART, ORDER}), "type_checker_files_v1": frozenset({SHOP})},
        [ChangeWindow(FILES, 3, 5)],
        {"shop/cart.py": "changed", "shop/order.py": "added"},
    )
    assert after.files_in(RELATE) == {CART, ORDER, SHOP}
    assert after.files_in(RELATE, FILES) == {CART, ORDER}
    assert after.files_in(GRAPH) == before.files_in(RELATE) == frozenset()
    # What an earlier run has extracted is a reason of its own; an edit is listed once.
    assert after.impact == (*before.impact, Impact("shop/order.py", "added"))
    assert after.windows == (ChangeWindow(FILES, 3, 5),)
    assert after.with_feed(GRAPH, {}, [ChangeWindow(FILES, 3, 5)], {}).windows == after.windows


def test_dependents_are_files_with_other_relations_that_were_not_edited() -> None:
    outcome = [
        FileOutcome(CART, "shop/cart.py", is_same=False),
        FileOutcome(ORDER, "shop/order.py", is_same=False),
        FileOutcome(SHOP, "shop/shop.py", is_same=True),
    ]
    frontier = followed().with_solution(outcome, [OLD], version=7)
    assert (frontier.solved, frontier.dependents, frontier.removed) == ({CART, ORDER, SHOP}, {ORDER}, {OLD})
    for name in (RELATIONS, DIAGNOSTICS):
        assert frontier.differing_in(name) == {CART, ORDER, OLD}
    assert frontier.relations_version == 7


def test_reasons_follow_edits_and_pending_files_come_last() -> None:
    lost = Impact("shop/a.py", "lost", "shop.old.f", 2)
    frontier = followed().with_reasons([lost]).with_pending(["shop/a.py", "shop/z.py"])
    assert frontier.impact == (*edited().impact, lost, Impact("shop/z.py", "pending"))


def test_tools_add_tables_that_differ() -> None:
    frontier = edited().with_tools({"type_checker_files_v1": [SHOP], "scip_index_v1": []}, [ORDER])
    assert frontier.differing_in("type_checker_files_v1", "scip_index_v1") == {SHOP}
    assert frontier.unlisted == {ORDER}
    assert edited().differing_in("type_checker_files_v1") == frozenset()
