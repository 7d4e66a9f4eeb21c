"""Which columns statements filter and join by, on statements small enough to see it."""

from __future__ import annotations

import pytest

from codeanatomy.catalog.views import VIEWS
from codeanatomy.query.sql.check import check
from codeanatomy.query.sql.columns import columns_used, views_used

RELATIONS = {"n": ("id", "kind", "path", "line", "flag"), "e": ("src", "dst", "kind")}


def told(sql: str) -> dict[str, tuple[set[str], set[str]]]:
    return {name: (used.filters, used.joins) for name, used in columns_used(sql, RELATIONS).items()}


@pytest.mark.parametrize(
    ("sql", "filters", "joins"),
    [
        ("SELECT id FROM n", "", ""),
        ("SELECT id FROM n WHERE kind = 'x'", "kind", ""),
        (
            "SELECT id FROM n WHERE 'x' <= path AND (line BETWEEN 1 AND 2 OR kind IS NULL)",
            "path line kind",
            "",
        ),
        ("SELECT id FROM n WHERE NOT kind IN ('x', ?) AND path LIKE 'a%'", "kind path", ""),
        ("SELECT id FROM n WHERE flag AND line > 3", "flag line", ""),
        # What is computed of a column is not the column.
        ("SELECT id FROM n WHERE lower(kind) = 'x' AND line + 1 = 3", "", ""),
        ("SELECT id FROM n WHERE coalesce(path = 'x', flag)", "", ""),
        # Neither what is chosen, ordered or grouped by.
        ("SELECT kind = 'x' FROM n GROUP BY kind = 'x' ORDER BY path", "", ""),
        # Through names for tables and for columns, and through queries inside.
        ("SELECT x FROM (SELECT kind AS x FROM n m) WHERE x = 'a'", "kind", ""),
        (
            "WITH a AS (SELECT kind AS x FROM n), b AS (SELECT x AS y FROM a) SELECT 1 FROM b WHERE y > 'a'",
            "kind",
            "",
        ),
        ("SELECT x FROM (SELECT upper(kind) AS x FROM n) WHERE x = 'a'", "", ""),
        (
            "SELECT x FROM (SELECT kind AS x FROM n UNION ALL SELECT path FROM n) WHERE x = 'a'",
            "kind path",
            "",
        ),
        ("SELECT 1 FROM (SELECT * FROM n) WHERE line = 3", "line", ""),
        ("SELECT kind, count(*) AS c FROM n GROUP BY kind HAVING kind > 'a' AND c > 1", "kind", ""),
    ],
)
def test_of_one_relation(sql: str, filters: str, joins: str) -> None:
    assert told(sql).get("n", (set(), set())) == ({*filters.split()}, {*joins.split()})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM n JOIN e ON n.id = e.src WHERE e.kind = 'x' AND n.path = 'p'",
        "SELECT 1 FROM n, e WHERE e.src = n.id AND e.kind = 'x' AND n.path = 'p'",
        "SELECT 1 FROM n JOIN e ON n.id = e.src AND e.kind = 'x' AND n.path = 'p'",
        "SELECT 1 FROM n WHERE path = 'p' AND EXISTS (SELECT 1 FROM e WHERE e.src = n.id AND e.kind = 'x')",
        "SELECT 1 FROM (SELECT id a,path p FROM n), (SELECT src b,kind k FROM e) WHERE a=b AND k='' AND p=''",
    ],
)
def test_of_two_relations(sql: str) -> None:
    assert told(sql) == {"n": ({"path"}, {"id"}), "e": ({"kind"}, {"src"})}


def test_a_query_in_a_list() -> None:
    found = told("SELECT 1 FROM n WHERE id IN (SELECT src FROM e WHERE kind = 'x')")
    assert found == {"n": (set(), {"id"}), "e": ({"kind"}, set())}


def test_using_is_a_join() -> None:
    assert told("SELECT 1 FROM n JOIN e USING (kind)") == {"n": (set(), {"kind"}), "e": (set(), {"kind"})}


def test_two_of_one_relation() -> None:
    assert told("SELECT 1 FROM n a JOIN n b ON a.id = b.path") == {"n": (set(), {"id", "path"})}


@pytest.mark.parametrize("sql", ["", "DROP TABLE n", "SELECT 1 FROM n WHERE", "SELECT " + "(" * 3000, "WITH"])
def test_what_is_no_query_has_no_columns(sql: str) -> None:
    assert columns_used(sql, RELATIONS) == {}


def test_what_is_recursive_ends() -> None:
    sql = (
        "WITH RECURSIVE r AS (SELECT id AS x FROM n WHERE kind = 'a' UNION ALL"
        " SELECT e.dst AS x FROM e JOIN r ON r.x = e.src) SELECT x FROM r WHERE x > 'a'"
    )
    found = told(sql)
    assert found["n"][0] >= {"kind"}
    assert "src" in found["e"][1]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_the_columns_of_a_view_lead_to_its_tables(view: object) -> None:
    """Whoever filters a view by a column that is one of a table filters that table."""
    name, columns = view.name, view.column_names  # type: ignore[attr-defined]
    checked = check(f"SELECT * FROM {name}")
    tables = views_used(checked.tree, checked.views)
    assert set(tables) <= {table for table, _ in view.reads.values()}  # type: ignore[attr-defined]
    if "repo_id" in columns and tables:
        asked = check(f"SELECT 1 FROM {name} WHERE repo_id = 'x'")
        used = views_used(asked.tree, asked.views)
        assert any("repo_id" in each.filters for each in used.values())


def test_a_statement_of_a_user() -> None:
    asked = check(
        "SELECT c.caller FROM calls c JOIN symbols s ON s.symbol_id = c.callee_id"
        " WHERE c.path = 'a.py' AND c.line > 3 AND s.kind = 'CLASS' AND c.callee = 'x'"
    )
    used = views_used(asked.tree, asked.views)
    assert {"path", "line"} <= used["cpg_edges"].filters
    assert {"src_node_id", "dst_node_id"} <= used["cpg_edges"].joins
    assert "node_kind" in used["cpg_nodes"].filters
    assert "node_id" in used["cpg_nodes"].joins
    # What a callee is called is computed of two columns.
    assert not {"qualname", "callee"} & used["cpg_nodes"].filters
