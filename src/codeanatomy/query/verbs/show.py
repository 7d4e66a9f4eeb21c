"""Show a symbol: kind, location, signature, docstring, and how much it is used (`show SYMBOL`).

    show(reader, resolve(reader, "requests.get"))
    # signature "def get(url: UriType, params: ParamsType=None, **kwargs) -> Response", callers 2, ...

One row per definition; each overload has its own. The signature is parsed from the source text in the lake;
if this interpreter cannot parse it, it is the first line.

Tests: `tests/unit/query/test_verb_show.py`.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Slice, nodes
from codeanatomy.query.verbs.calls import callee_hops, caller_hops
from codeanatomy.query.verbs.refs import count_refs
from codeanatomy.query.verbs.result import VerbResult, rows_result
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
SIGNATURE_KINDS = ("CLASS", "FUNCTION", "TYPE_ALIAS")
# Definitions shown of one symbol.
MAX_DEFINITIONS = 500
# A longer signature is cut.
SIGNATURE_CHARS = 2000


def show(reader: Reader, symbol: Symbol) -> VerbResult:
    """Show each definition of a symbol."""
    query = Query(
        "SELECT n.node_id, n.node_kind, n.subkind, n.path, n.line, n.file_id, n.bstart, n.bend FROM n",
        {"n": nodes((symbol.kind,), symbol.repo_id, node_id=symbol.ids)},
        order=("path", "line", "node_id"),
    )
    definitions = reader.rows(query, MAX_DEFINITIONS)
    total = definitions[0][-1] if definitions else 0
    notes = (f"the first {MAX_DEFINITIONS:,} of {total:,} definitions",) if total > MAX_DEFINITIONS else ()
    texts = _texts(reader, symbol, sorted({row[5] for row in definitions if row[1] in SIGNATURE_KINDS}))
    docs = docstrings(reader, [row[0] for row in definitions])
    counts = _counts(reader, symbol)
    return rows_result(
        COLUMNS,
        (
            {
                "symbol": symbol.symbol,
                "kind": kind,
                "subkind": subkind,
                "path": path,
                "line": line or symbol.line,
                "signature": signature(texts.get(file_id), start, end) if kind in SIGNATURE_KINDS else None,
                "docstring": docs.get(node),
                **counts,
                "confidence": 1.0,
                "method": symbol.method,
                "repo_id": symbol.repo_id,
                "symbol_id": node,
            }
            for node, kind, subkind, path, line, file_id, start, end, _ in definitions
        ),
        notes,
    )


def signature(text: bytes | None, start: int | None, end: int | None) -> str | None:
    """Return the signature of a definition, from the text of its file and its byte span.

    >>> signature(b"def f(x:int=1, *, y) -> str: return g(x)", 0, 40)
    'def f(x: int=1, *, y) -> str'
    """
    if text is None or start is None or end is None:
        return None
    source = text[start:end].decode(errors="replace")
    try:
        with warnings.catch_warnings():
            # Invalid escapes in the analysed source would warn on the user's terminal.
            warnings.simplefilter("ignore")
            parsed = ast.parse(textwrap.dedent(source)).body[0]
            head = _head(parsed)
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        head = None
    first = source.partition("\n")[0].strip().removesuffix(":")
    return (head or first)[:SIGNATURE_CHARS] or None


def _head(parsed: ast.stmt) -> str | None:
    """Return a definition without its body and decorators."""
    if isinstance(parsed, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        parsed.body = [ast.Pass()]
        parsed.decorator_list = []
        return ast.unparse(parsed).rsplit(":\n", 1)[0]
    return None


def _texts(reader: Reader, symbol: Symbol, files: Sequence[str]) -> dict[str, bytes]:
    """Return the texts of files, by file id."""
    if not files:
        return {}
    query = Query(
        "SELECT b.file_id, b.text FROM b",
        {"b": Slice("repo_file_blobs_v1", file_id=files, repo_id=(symbol.repo_id,))},
    )
    return {file: text.encode() for file, text in reader.rows(query) if text is not None}


def _counts(reader: Reader, symbol: Symbol) -> dict[str, Any]:
    """Count callers, callees, references and members of a symbol, as the verbs list them."""
    members = Query(
        "SELECT count(DISTINCT e.dst_node_id) FROM e",
        {"e": edges_at(symbol.ids, ("CONTAINS",), "src")},
    )
    ((inside,),) = reader.rows(members)
    return {
        "callers": len(caller_hops(reader, symbol)[0]),
        "callees": len(callee_hops(reader, symbol)[0]),
        "refs": count_refs(reader, symbol),
        "members": inside,
    }
