"""Find definitions by name, qualified name or pattern (`find NAME`).

    find(reader, "Session")          # every class, function, module or variable of this name
    find(reader, "sessions.*")       # * matches any text, ? one character
    find(reader, "requests.Session") # also through re-exports
    find(reader, entry_points="http")   # what requests run; with a name or pattern only those

Matches of the whole qualified name come before matches of its end. External names that the repositories use,
such as `json.loads`, are found too.

Tests: `tests/unit/query/test_verb_find.py`.
"""

from __future__ import annotations

from typing import get_args

from codeanatomy.catalog.entry_points import ROOT_KINDS, Kind
from codeanatomy.catalog.views import ENTRY_POINTS, FIRST_LINE
from codeanatomy.errors import UnknownName, UnknownSymbol, UsageError
from codeanatomy.query.engines.statements import Reader, edges, nodes
from codeanatomy.query.symbols import (
    DEFINITIONS,
    EXTERNAL_KINDS,
    KINDS,
    normalize_name,
    symbol_row,
    symbols_ending,
    unknown_symbol,
    with_binding_lines,
)
from codeanatomy.query.verbs.result import VerbResult, query_result, rows_result
from codeanatomy.query.walks.entry_points import view_relations
from codeanatomy.syntax_tree import CLASS_CELLS

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "source",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
# A pattern matches variables of modules and classes, not those of functions.
PATTERN_KINDS = (*DEFINITIONS, "BINDING", *EXTERNAL_KINDS)
ENTRY_NOTE = (
    "what is registered by computed names, by configuration or with a framework without a rule is not seen"
)
ENTRY_COLUMNS = (COLUMNS[0], "entry", "name", "framework", *COLUMNS[1:6], "detail", *COLUMNS[6:])
# Entry points that are called from outside, such as requests, commands and tests; and those of any kind.
ROOT, ALL = "root", "all"


def find(
    reader: Reader,
    name: str | None = None,
    *,
    kind: str | None = None,
    entry_points: str | None = None,
    repo_id: str | None = None,
) -> VerbResult:
    """Find symbols by name or pattern, of any kind or of one, or only entry points."""
    wanted = kind.upper() if kind else None
    if wanted and wanted not in KINDS:
        raise UnknownName("kind", wanted, KINDS)
    if entry_points is not None:
        return _find_entry_points(entry_points, normalize_name(name or "*"), wanted, repo_id)
    if name is None:
        raise UsageError("find needs a name or --entry-points", "name a symbol, or a pattern: 'get_*'")
    typed = normalize_name(name)
    if "*" in typed or "?" in typed:
        return _find_pattern(typed, wanted, repo_id)
    symbols = with_binding_lines(reader, symbols_ending(reader, typed, repo_id))
    notes = () if symbols else _unknown_notes(unknown_symbol(reader, typed, repo_id))
    return rows_result(COLUMNS, (symbol_row(each) for each in symbols if wanted in (None, each.kind)), notes)


def _unknown_notes(problem: UnknownSymbol) -> tuple[str, ...]:
    """Return what the error of an unknown name reports: nothing found is no error here."""
    named = problem.candidates or problem.message.startswith("no symbol")
    notes = () if named else (problem.message,)
    return (*notes, problem.hint) if problem.hint.startswith("closest") else notes


def _find_pattern(pattern: str, kind: str | None, repo_id: str | None) -> VerbResult:
    """Match the name, or the qualified name if the pattern has a dot."""
    column = "qualname" if "." in pattern else "name"
    kinds = (kind,) if kind else PATTERN_KINDS
    # A dotted pattern may also match the end of the qualified name.
    like = like_pattern(pattern)
    return query_result(
        COLUMNS,
        "SELECT coalesce(n.qualname, n.name) AS symbol, n.node_kind AS kind, n.subkind, n.path,"
        f" coalesce(n.line, {FIRST_LINE}) AS line, CAST(NULL AS STRING) AS source,"
        " CAST(1 AS DOUBLE) AS confidence, 'pattern' AS method,"
        " n.repo_id, n.node_id AS symbol_id FROM n"
        " LEFT JOIN o ON n.node_kind = 'BINDING' AND o.repo_id = n.repo_id"
        " AND o.qualname = left(n.qualname, length(n.qualname) - length(n.name) - 1)"
        " LEFT JOIN d ON n.node_kind = 'BINDING' AND d.repo_id = n.repo_id AND d.qualname = n.qualname"
        " LEFT JOIN e ON e.dst_node_id = n.node_id AND e.path = n.path"
        f" WHERE (n.{column} LIKE ? ESCAPE '!' OR n.{column} LIKE ? ESCAPE '!')"
        " AND (n.node_kind <> 'BINDING'"
        " OR (n.subkind NOT IN ('import', 'free', 'global') AND o.node_id IS NOT NULL AND d.node_id IS NULL"
        f" AND (n.name NOT IN {CLASS_CELLS} OR e.dst_node_id IS NOT NULL)))"
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


def _find_entry_points(entry: str, pattern: str, kind: str | None, repo_id: str | None) -> VerbResult:
    """List entry points of a kind, of those called from outside, or all, by file and line."""
    kinds = {**{each: (each,) for each in get_args(Kind)}, ROOT: ROOT_KINDS, ALL: get_args(Kind)}
    if entry not in kinds:
        raise UnknownName("kind of entry point", entry, kinds)
    relations = view_relations(repo_id)
    relations["e"] = edges(("ENTRY_POINT",), repo_id, role=kinds[entry])
    if kind:
        relations["t"] = nodes((kind,), repo_id)
    like = like_pattern(pattern)
    return query_result(
        ENTRY_COLUMNS,
        "SELECT v.symbol, v.kind AS entry, v.name, v.framework, v.symbol_kind AS kind, v.subkind,"
        " v.defined_path AS path, v.defined_line AS line, CAST(NULL AS STRING) AS source,"
        " CASE WHEN v.method = 'call' THEN concat(v.evidence, ' in ', v.path, ':', v.line)"
        " ELSE v.evidence END AS detail, v.confidence, v.method, v.repo_id, v.symbol_id"
        f" FROM ({ENTRY_POINTS.sql}) AS v WHERE v.symbol LIKE ? ESCAPE '!' OR v.symbol LIKE ? ESCAPE '!'",
        relations,
        (like, f"%.{like}"),
        order=("repo_id", "path", "line", "symbol", "entry", "name", "detail"),
        notes=(ENTRY_NOTE,),
    )


def like_pattern(pattern: str) -> str:
    """Translate a pattern with * and ? to SQL LIKE, with ! as the escape character.

    >>> like_pattern("get_*"), like_pattern("100%")
    ('get!_%', '100!%')
    """
    plain = pattern.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return plain.replace("*", "%").replace("?", "_")
