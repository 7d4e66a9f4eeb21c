"""Find definitions by name, qualified name or pattern (`find NAME`).

    find(reader, "Session")          # every class, function, module or variable of this name
    find(reader, "sessions.*")       # * matches any text, ? one character
    find(reader, "requests.Session") # also through re-exports

Matches of the whole qualified name come before matches of its end. External names that the repositories use,
such as `json.loads`, are found too.

Tests: `tests/unit/query/test_verb_find.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.views import FIRST_LINE
from codeanatomy.errors import UnknownName
from codeanatomy.query.engines.statements import Reader, edges, nodes
from codeanatomy.query.symbols import (
    DEFINITIONS,
    EXTERNAL_KINDS,
    KINDS,
    closest_symbols,
    normalize_name,
    symbol_row,
    symbols_ending,
    with_binding_lines,
)
from codeanatomy.query.verbs.result import VerbResult, query_result, rows_result

COLUMNS = ("symbol", "kind", "subkind", "path", "line", "confidence", "method", "repo_id", "symbol_id")
# A pattern matches variables of modules and classes, not those of functions.
PATTERN_KINDS = (*DEFINITIONS, "BINDING", *EXTERNAL_KINDS)


def find(reader: Reader, name: str, *, kind: str | None = None, repo_id: str | None = None) -> VerbResult:
    """Find symbols by name or pattern, of any kind or of one."""
    wanted = kind.upper() if kind else None
    if wanted and wanted not in KINDS:
        raise UnknownName("kind", wanted, KINDS)
    typed = normalize_name(name)
    if "*" in typed or "?" in typed:
        return _find_pattern(typed, wanted, repo_id)
    symbols = with_binding_lines(reader, symbols_ending(reader, typed, repo_id))
    near = () if symbols else closest_symbols(reader, typed, repo_id)
    notes = (f"closest: {', '.join(each.symbol for each in near)}",) if near else ()
    return rows_result(COLUMNS, (symbol_row(each) for each in symbols if wanted in (None, each.kind)), notes)


def _find_pattern(pattern: str, kind: str | None, repo_id: str | None) -> VerbResult:
    """Match the name, or the qualified name if the pattern has a dot."""
    column = "qualname" if "." in pattern else "name"
    kinds = (kind,) if kind else PATTERN_KINDS
    # A dotted pattern may also match the end of the qualified name.
    like = like_pattern(pattern)
    return query_result(
        COLUMNS,
        "SELECT coalesce(n.qualname, n.name) AS symbol, n.node_kind AS kind, n.subkind, n.path,"
        f" coalesce(n.line, {FIRST_LINE}) AS line, CAST(1 AS DOUBLE) AS confidence, 'pattern' AS method,"
        " n.repo_id, n.node_id AS symbol_id FROM n"
        " LEFT JOIN o ON n.node_kind = 'BINDING' AND o.repo_id = n.repo_id"
        " AND o.qualname = left(n.qualname, length(n.qualname) - length(n.name) - 1)"
        " LEFT JOIN d ON n.node_kind = 'BINDING' AND d.repo_id = n.repo_id AND d.qualname = n.qualname"
        " LEFT JOIN e ON e.dst_node_id = n.node_id AND e.path = n.path"
        f" WHERE (n.{column} LIKE ? ESCAPE '!' OR n.{column} LIKE ? ESCAPE '!')"
        " AND (n.node_kind <> 'BINDING'"
        " OR (n.subkind NOT IN ('import', 'free', 'global') AND o.node_id IS NOT NULL AND d.node_id IS NULL))"
        " GROUP BY n.qualname, n.name, n.node_kind, n.subkind, n.path, n.line, n.repo_id, n.node_id",
        {
            "n": nodes(kinds, repo_id),
            "o": nodes(("CLASS", "MODULE"), repo_id),
            "d": nodes(DEFINITIONS, repo_id),
            "e": edges(("DEFINES_BINDING",), repo_id),
        },
        (like, f"%.{like}" if column == "qualname" else like),
        order=("symbol", "kind", "path", "line", "symbol_id"),
    )


def like_pattern(pattern: str) -> str:
    """Translate a pattern with * and ? to SQL LIKE, with ! as the escape character.

    >>> like_pattern("get_*"), like_pattern("100%")
    ('get!_%', '100!%')
    """
    plain = pattern.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return plain.replace("*", "%").replace("?", "_")
