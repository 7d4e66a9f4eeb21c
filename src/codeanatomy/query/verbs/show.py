"""`show SYMBOL`: what it is, where, how it is written, what it says of itself, and how much it is used.

    show(reader, resolve(reader, "requests.get"))
    # signature "def get(url: UriType, params: ParamsType=None, **kwargs) -> Response", callers 2, ...

One row for each definition: overloads have their own. The signature is taken from the source that the lake
keeps; where this interpreter cannot parse it, from its first line. Tests: `tests/unit/query/test_verb_show.py`.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Slice, nodes
from codeanatomy.query.verbs.calls import called, calling
from codeanatomy.query.verbs.refs import count_refs
from codeanatomy.query.verbs.result import Found, held
from codeanatomy.query.walks.docstrings import docstrings
from codeanatomy.query.walks.reachability import edges_at

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "signature",
    "docstring",
    "callers",
    "callees",
    "refs",
    "members",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
WRITTEN = ("CLASS", "FUNCTION", "TYPE_ALIAS")
# Of one name; who has more of them does not read them all.
DEFINITIONS = 500
# A signature of more characters is cut: it is for people.
SIGNATURE_CHARS = 2000


def show(reader: Reader, symbol: Symbol) -> Found:
    """A symbol, each definition of it."""
    query = Query(
        "SELECT n.node_id, n.node_kind, n.subkind, n.path, n.line, n.file_id, n.bstart, n.bend FROM n",
        {"n": nodes((symbol.kind,), symbol.repo_id, node_id=symbol.ids)},
        order=("path", "line", "node_id"),
    )
    found = reader.rows(query, DEFINITIONS)
    total = found[0][-1] if found else 0
    notes = (f"the first {DEFINITIONS:,} of {total:,} definitions",) if total > DEFINITIONS else ()
    texts = _texts(reader, symbol, sorted({row[5] for row in found if row[1] in WRITTEN}))
    said = docstrings(reader, [row[0] for row in found])
    counts = _counts(reader, symbol)
    return held(
        COLUMNS,
        (
            {
                "symbol": symbol.symbol,
                "kind": kind,
                "subkind": subkind,
                "path": path,
                "line": line or symbol.line,
                "signature": signature(texts.get(file_id), start, end) if kind in WRITTEN else None,
                "docstring": said.get(node),
                **counts,
                "confidence": 1.0,
                "method": symbol.method,
                "repo_id": symbol.repo_id,
                "symbol_id": node,
            }
            for node, kind, subkind, path, line, file_id, start, end, _ in found
        ),
        notes,
    )


def signature(text: bytes | None, start: int | None, end: int | None) -> str | None:
    """The head of a definition, from the text of its file and its bytes there.

    >>> signature(b"def f(x:int=1, *, y) -> str: return g(x)", 0, 40)
    'def f(x: int=1, *, y) -> str'
    """
    if text is None or start is None or end is None:
        return None
    source = text[start:end].decode(errors="replace")
    try:
        with warnings.catch_warnings():
            # Odd escapes in somebody's source are not our user's concern.
            warnings.simplefilter("ignore")
            parsed = ast.parse(textwrap.dedent(source)).body[0]
            head = _head(parsed)
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        head = None
    first = source.partition("\n")[0].strip().removesuffix(":")
    return (head or first)[:SIGNATURE_CHARS] or None


def _head(parsed: ast.stmt) -> str | None:
    """A definition without what it does."""
    if isinstance(parsed, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        parsed.body = [ast.Pass()]
        parsed.decorator_list = []
        return ast.unparse(parsed).rsplit(":\n", 1)[0]
    return None


def _texts(reader: Reader, symbol: Symbol, files: Sequence[str]) -> dict[str, bytes]:
    """The texts of some files."""
    if not files:
        return {}
    query = Query(
        "SELECT b.file_id, b.text FROM b",
        {"b": Slice("repo_file_blobs_v1", file_id=files, repo_id=(symbol.repo_id,))},
    )
    return {file: text.encode() for file, text in reader.rows(query) if text is not None}


def _counts(reader: Reader, symbol: Symbol) -> dict[str, Any]:
    """How many call it, what it calls, which places mean it, what is directly inside: as the verbs say."""
    members = Query(
        "SELECT count(DISTINCT e.dst_node_id) FROM e",
        {"e": edges_at(symbol.ids, ("CONTAINS",), "src")},
    )
    ((inside,),) = reader.rows(members)
    return {
        "callers": len(calling(reader, symbol)[0]),
        "callees": len(called(reader, symbol)[0]),
        "refs": count_refs(reader, symbol),
        "members": inside,
    }
