"""Compare `callers` and `refs` of all functions and classes of a lake.

    callers_without_reference(lake)    # [("flask.app.Flask.run", "flask.cli.run_command"), ...]: should be []

A caller is a function or module; a reference in the body of a class counts for the one around the class.

Tests: `tests/unit/query/test_verb_refs.py`.
"""

from __future__ import annotations

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, nodes
from codeanatomy.query.lake import Lake
from codeanatomy.query.verbs.calls import caller_hops
from codeanatomy.query.verbs.refs import refs


def callers_without_reference(lake: Lake, every: int = 1) -> list[tuple[str, str]]:
    """Return pairs of a symbol, of all or of every n-th, and a caller that no reference is inside of."""
    reader = LightReader(lake.snapshot)
    definitions = nodes(("FUNCTION", "CLASS", "MODULE"))
    rows = reader.rows(
        Query(
            "SELECT d.node_id, d.node_kind, d.qualname, d.path, d.line, d.repo_id FROM d",
            {"d": definitions},
            order=("node_id",),
        )
    )
    names = {node: name for node, _, name, *_ in rows}
    classes = {name for _, kind, name, *_ in rows if kind == "CLASS"}
    functions = [row for row in rows if row[1] != "MODULE"]
    missing = []
    for node, kind, name, path, line, repo_id in functions[::every]:
        symbol = Symbol(name, kind, None, path, line, repo_id, "id", (node,))
        hops, _ = caller_hops(reader, symbol)
        if not hops:
            continue
        result = refs(reader, symbol)
        inside = {dict(zip(result.columns, row, strict=False))["inside"] for row in reader.rows(result.query)}
        around = {_without_classes(each, classes) for each in inside if each is not None}
        missing += [(name, names[hop.node_id]) for hop in hops if names[hop.node_id] not in around]
    return missing


def _without_classes(name: str, classes: set[str]) -> str:
    while name in classes:
        name = name.rpartition(".")[0]
    return name
