"""Read which modules of a repository import each other, and when.

    module_imports(reader, "shop")
    # [Link("module:3f...", "module:9a...", "IMPORTS_MODULE", "shop/plan.py", 3, 1.0, "module level"), ...]

An import runs when its module is imported or, inside of a function, when that is called, or never, below `if
TYPE_CHECKING:`; `method` distinguishes them. An import targets the module it names: `from pkg import mod`
targets `pkg.mod`, not `pkg`.

Tests: `tests/unit/query/test_verb_cycles.py`.
"""

from __future__ import annotations

from msgspec import Struct

from codeanatomy.query.engines.statements import Query, Reader, edges, nodes
from codeanatomy.query.walks.enclosing import PLACE, equal_sql
from codeanatomy.query.walks.reachability import edges_at

AT_ONCE = "module level"
LATER = "inside a function"
NEVER = "type checking"
# Most harmful first.
RANK = {AT_ONCE: 0, LATER: 1, NEVER: 2}


class Link(Struct, frozen=True):
    """An edge of the import graph or the call graph."""

    start: str
    end: str
    relation: str
    path: str | None
    line: int | None
    confidence: float
    method: str | None


def module_imports(reader: Reader, repo_id: str | None) -> list[Link]:
    """Return the imports between modules of a repository, those at module level first."""
    query = Query(
        "SELECT s.node_id AS src_id, t.node_id AS dst_id, e.edge_kind, e.path, e.line, e.confidence,"
        " e.bstart, e.owner_file_id, f.bstart AS within, e.src_node_id, e.repeat FROM e"
        " JOIN s ON s.file_id = e.owner_file_id JOIN t ON t.node_id = e.dst_node_id"
        # `from pkg import mod` targets pkg.mod.
        " LEFT JOIN (SELECT DISTINCT e.src_node_id FROM e JOIN t ON t.node_id = e.dst_node_id"
        " WHERE e.edge_kind = 'IMPORTS_NAME') AS m"
        " ON m.src_node_id = e.src_node_id AND e.edge_kind = 'IMPORTS_MODULE'"
        " LEFT JOIN (SELECT DISTINCT e.owner_file_id, e.bstart, e.bend FROM e"
        " JOIN d ON d.file_id = e.owner_file_id AND d.bstart <= e.bstart AND d.bend >= e.bend) AS f"
        f" ON {equal_sql('f', 'e', *PLACE)}"
        " WHERE m.src_node_id IS NULL",
        {
            "e": edges(("IMPORTS_MODULE", "IMPORTS_NAME"), repo_id),
            "s": nodes(("MODULE",), repo_id),
            "t": nodes(("MODULE",), repo_id),
            "d": nodes(("FUNCTION",), repo_id),
        },
        order=("src_id", "dst_id", "line", "bstart", "edge_kind", "src_node_id", "repeat"),
    )
    never = _type_checking_blocks(reader, repo_id)
    links = []
    for start, end, relation, path, line, confidence, bstart, file_id, within, *_ in reader.rows(query):
        skipped = any(first <= bstart < last for first, last in never.get(file_id, ()))
        when = NEVER if skipped else AT_ONCE if within is None else LATER
        links.append(Link(start, end, relation, path, line, confidence, when))
    return sorted(links, key=lambda link: RANK[link.method or ""])


def _type_checking_blocks(reader: Reader, repo_id: str | None) -> dict[str, list[tuple[int, int]]]:
    """Return, by file, the spans of the statements directly below `if TYPE_CHECKING:`.

    The whole test is the name, or an attribute of that name: `if not TYPE_CHECKING` and
    `if TYPE_CHECKING or DEBUG` do not count.
    """
    references = Query(
        "SELECT r.node_id, r.path FROM r WHERE r.subkind = 'load'",
        {"r": nodes(("NAME_REF", "ATTRIBUTE_REF"), repo_id, name=("TYPE_CHECKING",))},
    )
    names = reader.rows(references)
    if not names:
        return {}
    paths = sorted({path for _, path in names})
    tests = Query(
        "SELECT DISTINCT t.src_node_id FROM s JOIN t ON t.dst_node_id = s.dst_node_id",
        {
            "s": edges(("SYNTAX_OF",), repo_id, path=paths, src_node_id=[node for node, _ in names]),
            "t": edges(("AST_PARENT_OF",), repo_id, path=paths, role=("test",)),
        },
    )
    ifs = [row[0] for row in reader.rows(tests)]
    if not ifs:
        return {}
    body = Query(
        "SELECT e.owner_file_id, e.bstart, e.bend FROM e WHERE e.role = 'body' AND e.bstart IS NOT NULL",
        {"e": edges_at(ifs, ("AST_PARENT_OF",), "src")},
    )
    blocks: dict[str, list[tuple[int, int]]] = {}
    for file_id, start, end in reader.rows(body):
        blocks.setdefault(file_id, []).append((start, end))
    return blocks
