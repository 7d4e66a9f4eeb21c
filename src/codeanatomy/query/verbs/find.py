"""`find NAME`: definitions by name, qualified name or pattern.

    find(reader, "Session")          # every class, function, module or variable called so
    find(reader, "sessions.*")       # * stands for anything, ? for one character
    find(reader, "requests.Session") # what a name means, through re-exports

Whole qualified names come before the ends of them. What only exists outside of the repositories, such as
`json.loads`, is found too. Tests: `tests/unit/query/test_verb_find.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.views import FIRST_LINE
from codeanatomy.errors import UsageError
from codeanatomy.query.engines.statements import Reader, edges, nodes
from codeanatomy.query.symbols import (
    DEFINITIONS,
    KINDS,
    OUTSIDE,
    as_row,
    cleaned,
    closest,
    symbols_like,
    with_lines,
)
from codeanatomy.query.verbs.result import Found, found, held

COLUMNS = ("symbol", "kind", "subkind", "path", "line", "confidence", "method", "repo_id", "symbol_id")
# The variables of modules and classes are found by a pattern, those of functions are not.
PATTERN_KINDS = (*DEFINITIONS, "BINDING", *OUTSIDE)


def find(reader: Reader, name: str, *, kind: str | None = None, repo_id: str | None = None) -> Found:
    """What is called like this, of any kind or of one."""
    wanted = kind.upper() if kind else None
    if wanted and wanted not in KINDS:
        raise UsageError(f"{kind!r} is no kind to be found", f"kinds: {', '.join(KINDS)}")
    typed = cleaned(name)
    if "*" in typed or "?" in typed:
        return _like(typed, wanted, repo_id)
    symbols = with_lines(reader, symbols_like(reader, typed, repo_id))
    near = () if symbols else closest(reader, typed, repo_id)
    notes = (f"closest: {', '.join(each.symbol for each in near)}",) if near else ()
    return held(COLUMNS, (as_row(each) for each in symbols if wanted in (None, each.kind)), notes)


def _like(pattern: str, kind: str | None, repo_id: str | None) -> Found:
    """Symbols whose name, or qualified name if the pattern has a dot, is like a pattern."""
    column = "qualname" if "." in pattern else "name"
    kinds = (kind,) if kind else PATTERN_KINDS
    # A dotted pattern may leave out the first parts.
    like = like_pattern(pattern)
    return found(
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
    """A pattern with * and ? as LIKE has it, in which ! makes the next character plain.

    >>> like_pattern("get_*"), like_pattern("100%")
    ('get!_%', '100!%')
    """
    plain = pattern.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return plain.replace("*", "%").replace("?", "_")
