"""Rows of relations in Arrow: one per relation; those of a file in one order, whatever order they came in."""

from __future__ import annotations

import random

import pytest

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.file_ids import PackedIds
from codeanatomy.relate.program import Program
from codeanatomy.relate.relation_rows import FIELDS, NOWHERE, RELATIONS, Evidence, Relation, RelationRows
from codeanatomy.relate.repository import FileRelations, tables_of


def made() -> RelationRows:
    return RelationRows("repo", "file:a", "a.py")


def add(rows: RelationRows, src: str, dst: str | None, start: int = 0, role: str | None = None) -> None:
    reason = "unknown" if dst is None else None
    kind = None if dst is None else "FUNCTION"
    place = (start, start + 1, 1)
    rows.add(
        Relation(
            "CALLS",
            "CALLSITE",
            src,
            kind,
            dst,
            *place,
            "values",
            "call",
            role=role,
            reason=reason,
        )
    )


def test_no_rows_are_an_empty_batch_of_the_table() -> None:
    batch = made().batch()
    assert batch.num_rows == 0
    assert batch.schema == arrow_schema(catalog.table(RELATIONS))


def test_a_row_has_its_cells_and_what_all_share() -> None:
    rows = made()
    rows.add(Relation(
        "PASSES_TO", "ARGUMENT", "argument:1", "PARAMETER", "parameter:2",
        4, 9, 2, origin="values", rule_name="argument", resolution_method="values", confidence=0.7, score=0.5,
        src_qname="a.f", dst_qname="b.g.x", role="x", ordinal=3, ambiguity_group_id="ambig:1", symbol_roles=8,
        evidence=[Evidence("values", "callsite:1"), Evidence("scip", "occ:2", agrees=False)],
        reason="contradicted",
    ))  # fmt: skip
    [row] = rows.batch().to_pylist()
    assert row == {
        "repo_id": "repo",
        "relation_kind": "PASSES_TO",
        "src_id": "argument:1",
        "src_kind": "ARGUMENT",
        "src_qname": "a.f",
        "dst_id": "parameter:2",
        "dst_kind": "PARAMETER",
        "dst_qname": "b.g.x",
        "role": "x",
        "ordinal": 3,
        "owner_file_id": "file:a",
        "path": "a.py",
        "bstart": 4,
        "bend": 9,
        "line": 2,
        "origin": "values",
        "resolution_method": "values",
        "confidence": 0.7,
        "score": 0.5,
        "symbol_roles": 8,
        "ambiguity_group_id": "ambig:1",
        "rule_name": "argument",
        "evidence": [
            {"witness": "values", "key": "callsite:1", "agrees": True},
            {"witness": "scip", "key": "occ:2", "agrees": False},
        ],
        "reason": "contradicted",
    }


def test_the_fields_are_the_columns_of_the_table() -> None:
    shared = {"repo_id", "owner_file_id", "path"}
    assert {*FIELDS, *shared} == set(catalog.table(RELATIONS).column_names)


def test_what_is_equal_but_for_its_evidence_is_one_row() -> None:
    rows = made()
    for key in ("a", "b"):
        rows.add(
            Relation(
                "READS",
                "NAME_REF",
                "n",
                "BINDING",
                "b",
                *NOWHERE,
                "o",
                "r",
                evidence=[Evidence("w", key)],
            )
        )
    assert len(rows) == 1
    assert rows.rows()[0]["evidence"] == {"witness": ["w"], "key": ["a"], "agrees": [True]}


@pytest.mark.parametrize(
    "second",
    [("s", "e", 0, None), ("t", "d", 0, None), ("s", "d", 1, None), ("s", "d", 0, "k"), ("s", None, 0, None)],
)
def test_what_differs_in_ends_place_or_role_are_two_rows(
    second: tuple[str, str | None, int, str | None],
) -> None:
    rows = made()
    add(rows, "s", "d")
    add(rows, *second)
    key = catalog.table(RELATIONS).primary_key
    assert len({tuple(row[name] for name in key) for row in rows.rows()}) == len(rows) == 2


def test_the_order_of_a_files_rows_does_not_depend_on_how_they_came() -> None:
    program = Program("repo", "file:a", "a.py", PackedIds.of_definitions("repo", "a.py", {}))
    wanted = [(f"src:{number % 7}", f"dst:{number}" if number % 3 else None, number) for number in range(60)]
    batches = []
    for seed in range(3):
        random.Random(seed).shuffle(wanted)
        rows = made()
        for each in wanted:
            add(rows, *each)
        assert [row["bstart"] for row in rows.batch().to_pylist()] == [start for _, _, start in wanted]
        batches.append(tables_of([FileRelations(program, rows)])[RELATIONS])
    assert batches[0].equals(batches[1])
    assert batches[0].equals(batches[2])
    sources = [row["src_id"] for row in batches[0].to_pylist()]
    assert sources == sorted(sources)


def test_text_that_utf8_cannot_spell_is_still_a_row() -> None:
    rows = made()
    add(rows, "s", "d", role="\ud800")
    assert rows.batch().to_pylist()[0]["role"] == r"\ud800"


def test_bytes_are_the_same_for_the_same_rows_only() -> None:
    cells = [("call:1", "function:1", 0, None), ("call:2", None, 4, None), ("call:3", "function:1", 8, "x")]
    one, other, fewer, longer = made(), made(), made(), made()
    for cell in cells:
        add(one, *cell)
    for cell in reversed(cells):
        add(other, *cell)
    for cell in cells[:2]:
        add(fewer, *cell)
        add(longer, *cell)
    add(longer, "call:3", "function:1", 8, "y")
    assert one.packed() == other.packed()
    assert len({rows.packed() for rows in (one, fewer, longer)}) == 3
    surer = made()
    for rows, agrees in ((one, True), (surer, False)):
        rows.add(Relation(
            "READS", "NAME_REF", "ref:1", None, None, *NOWHERE, "scip", "scope", reason="x",
            evidence=[Evidence("scip", "occ:1", agrees)],
        ))  # fmt: skip
    for cell in cells:
        add(surer, *cell)
    assert one.packed() != surer.packed()
