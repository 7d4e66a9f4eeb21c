"""Explain why a value is followed no further: what is done with it there, or what made it.

    use_ends(reader, [("shop/waste/trucks.py", 425, 430)])
    # {(...): FlowEnd("unresolved", "argument of a call that is not resolved: unknown_receiver")}
    origin_ends(reader, [("shop/paths/values.py", 78, 79)])
    # {(...): FlowEnd("constant", "a constant")}
    definition_ends(reader, [("shop/app.py", 40, 44)])
    # {(...): FlowEnd("container", "set to an element of what a loop iterates")}

An end is described by the syntax around it, and for calls by what the graph knows about the call: its targets
inside or outside of the repository, or the reason why it is not resolved.

Tests: `tests/unit/query/test_flow_ends.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from codeanatomy.catalog.spec import Column
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, Row, Slice, edges, nodes
from codeanatomy.query.walks.reachability import CALLS

# Path, first byte and end of an expression.
Span: TypeAlias = tuple[str, int, int]
EndKind = Literal["unresolved", "external", "container", "constant", "expression", "unknown"]
CONTAINERS = ("List", "Tuple", "Set", "Dict", "ListComp", "SetComp", "DictComp", "GeneratorExp", "Starred")
SPAN_COLUMNS = (
    Column("n", "bigint", "Number of the span.", nullable=False),
    Column("path", "string", "Path."),
    Column("bstart", "bigint", "First byte."),
    Column("bend", "bigint", "Byte after the last."),
)
AT_SPAN = "{0}.path = h.path AND {0}.bstart = h.bstart AND {0}.bend = h.bend"
# What is done with a value, by the kind of syntax node around it and its role there; None is any role.
USES: dict[tuple[str, str | None], tuple[EndKind, str]] = {
    ("Attribute", None): ("expression", "an attribute of it is used"),
    ("Subscript", "value"): ("container", "an element of it is used"),
    ("Subscript", "slice"): ("expression", "it is an index"),
    ("Call", "func"): ("expression", "it is called"),
    ("Assign", None): ("container", "it is stored in an element of a container, or unpacked"),
    ("AnnAssign", None): ("container", "it is stored in an element of a container"),
    ("AugAssign", None): ("expression", "it is combined with another value"),
    ("For", "iter"): ("container", "its elements are iterated"),
    ("AsyncFor", "iter"): ("container", "its elements are iterated"),
    ("comprehension", "iter"): ("container", "its elements are iterated"),
    ("Return", None): ("unknown", "it is returned; no call of the function is known"),
    ("Yield", None): ("unknown", "it is yielded to an iterator"),
    ("YieldFrom", None): ("container", "its elements are yielded to an iterator"),
    ("Raise", None): ("expression", "it is raised"),
    ("withitem", None): ("expression", "it is a context manager"),
    ("FormattedValue", None): ("expression", "it is formatted into a string"),
    ("Compare", None): ("expression", "it is compared"),
    ("If", None): ("expression", "it is a condition"),
    ("While", None): ("expression", "it is a condition"),
    ("IfExp", "test"): ("expression", "it is a condition"),
    ("Assert", None): ("expression", "it is a condition"),
    ("Expr", None): ("expression", "its value is not used"),
    ("Delete", None): ("expression", "it is deleted"),
    ("Await", None): ("expression", "it is awaited"),
    ("arguments", None): ("unknown", "it is the default of a parameter"),
    ("FunctionDef", None): ("expression", "it decorates or annotates a function"),
    ("AsyncFunctionDef", None): ("expression", "it decorates or annotates a function"),
    ("ClassDef", None): ("expression", "it is a base or a decorator of a class"),
    ("ExceptHandler", None): ("expression", "it is a class of exceptions that are caught"),
}
# What made a value, by the kind of its syntax node.
ORIGINS: dict[str, tuple[EndKind, str]] = {
    "Constant": ("constant", "a constant"),
    "JoinedStr": ("expression", "a formatted string"),
    "Lambda": ("expression", "a function made here"),
    "Attribute": ("unresolved", "an attribute that is not resolved to a variable"),
    "Subscript": ("container", "an element of a container"),
    "Name": ("unknown", "a name without a value that is followed: a class, function, module or builtin"),
    "Await": ("unresolved", "an awaited value that is not followed"),
    "Yield": ("unknown", "a value that a caller sends"),
    "Starred": ("container", "elements of a container"),
}


# What sets a variable that no assignment of a whole value does, by the kind of the syntax node around it.
DEFINITIONS: dict[str, tuple[EndKind, str]] = {
    "For": ("container", "set to an element of what a loop iterates"),
    "AsyncFor": ("container", "set to an element of what a loop iterates"),
    "comprehension": ("container", "set to an element of what a comprehension iterates"),
    "withitem": ("expression", "set to what a context manager returns"),
    "AugAssign": ("expression", "combined with another value"),
    "Tuple": ("container", "set to a part of an unpacked value"),
    "List": ("container", "set to a part of an unpacked value"),
    "Starred": ("container", "set to a part of an unpacked value"),
    "ExceptHandler": ("expression", "set to the exception that is caught"),
    "Import": ("external", "imported"),
    "ImportFrom": ("external", "imported"),
    "arguments": ("unknown", "a parameter; no call that passes a value for it is known"),
}


class FlowEnd(Struct, frozen=True):
    """Why a value is followed no further."""

    kind: EndKind
    text: str


def use_ends(reader: Reader, spans: Collection[Span]) -> dict[Span, FlowEnd]:
    """Return what is done with values at uses that lead to no variable."""
    numbered = list(dict.fromkeys(spans))
    if not numbered:
        return {}
    paths = sorted({path for path, _, _ in numbered})
    query = Query(
        "SELECT h.n, k.subkind, p.role FROM h JOIN p ON"
        f" {AT_SPAN.format('p')} JOIN k ON k.node_id = p.src_node_id",
        {
            "h": _relation(numbered),
            "p": edges(("AST_PARENT_OF",), path=paths),
            "k": nodes(("AST_NODE",), path=paths),
        },
        order=("n", "subkind", "role"),
    )
    ends = {numbered[at]: _use_end(kind, role) for at, kind, role in reader.rows(query)}
    arguments = Query(
        f"SELECT h.n, e.src_node_id, e.owner_file_id FROM h JOIN e ON {AT_SPAN.format('e')}",
        {"h": _relation(numbered), "e": edges(("HAS_ARGUMENT",), path=paths)},
    )
    rows = reader.rows(arguments)
    calls = _described_calls(reader, rows, paths)
    ends |= {numbered[at]: _argument_end(*calls[site]) for at, site, _ in rows if site in calls}
    return ends


def origin_ends(reader: Reader, spans: Collection[Span]) -> dict[Span, FlowEnd]:
    """Return what made the values of expressions that no variable or known function provides."""
    numbered = list(dict.fromkeys(spans))
    if not numbered:
        return {}
    paths = sorted({path for path, _, _ in numbered})
    syntax = Query(
        f"SELECT h.n, k.subkind FROM h JOIN k ON {AT_SPAN.format('k')}",
        {"h": _relation(numbered), "k": nodes(("AST_NODE",), path=paths)},
        order=("n", "subkind"),
    )
    ends = {numbered[at]: _origin_end(kind) for at, kind in reader.rows(syntax)}
    sites = Query(
        f"SELECT h.n, c.node_id, c.file_id FROM h JOIN c ON {AT_SPAN.format('c')}",
        {"h": _relation(numbered), "c": nodes(("CALLSITE",), path=paths)},
    )
    rows = reader.rows(sites)
    calls = _described_calls(reader, rows, paths)
    ends |= {numbered[at]: _call_end(*calls[site]) for at, site, _ in rows if site in calls}
    return ends


def definition_ends(reader: Reader, spans: Collection[Span]) -> dict[Span, FlowEnd]:
    """Return what sets variables at definitions that are no assignments of a whole value."""
    numbered = list(dict.fromkeys(spans))
    if not numbered:
        return {}
    paths = sorted({path for path, _, _ in numbered})
    query = Query(
        # An alias of an import and a parameter begin with the name, but may be longer.
        "SELECT h.n, k.subkind FROM h JOIN p ON p.path = h.path AND p.bstart = h.bstart AND p.bend >= h.bend"
        " JOIN k ON k.node_id = p.src_node_id",
        {
            "h": _relation(numbered),
            "p": edges(("AST_PARENT_OF",), path=paths),
            "k": nodes(("AST_NODE",), subkind=tuple(DEFINITIONS), path=paths),
        },
        order=("n", "subkind"),
    )
    return {numbered[at]: FlowEnd(*DEFINITIONS[kind]) for at, kind in reader.rows(query)}


def _use_end(kind: str, role: str | None) -> FlowEnd:
    if kind in CONTAINERS:
        return FlowEnd("container", "it is stored in a container")
    described = USES.get((kind, role)) or USES.get((kind, None))
    return (
        FlowEnd(*described) if described else FlowEnd("expression", f"it is a part of an expression ({kind})")
    )


def _origin_end(kind: str) -> FlowEnd:
    if kind in CONTAINERS and kind not in ORIGINS:
        return FlowEnd("container", f"a container made here ({kind})")
    return FlowEnd(*ORIGINS.get(kind, ("expression", f"computed by an expression ({kind})")))


def _argument_end(kind: str, name: str) -> FlowEnd:
    if kind == "unresolved":
        return FlowEnd("unresolved", f"argument of a call that is not resolved: {name}")
    if kind == "external":
        return FlowEnd("external", f"argument of {name}, which is outside of the repository")
    return FlowEnd("unresolved", f"argument of {name}; the parameter that receives it is not known")


def _call_end(kind: str, name: str) -> FlowEnd:
    if kind == "unresolved":
        return FlowEnd("unresolved", f"returned by a call that is not resolved: {name}")
    if kind == "external":
        return FlowEnd("external", f"returned by {name}, which is outside of the repository")
    if kind == "INSTANTIATES":
        return FlowEnd("expression", f"a new instance of {name}")
    return FlowEnd("unknown", f"returned by {name}, which is not followed")


def _described_calls(reader: Reader, rows: Iterable[Row], paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return what is known about calls: `unresolved` with the reason, else the kind and name of a target."""
    files = sorted({row[2] for row in rows})
    sites = sorted({row[1] for row in rows})
    if not sites:
        return {}
    targets = Query(
        "SELECT e.src_node_id, e.edge_kind, coalesce(t.qualname, t.name) AS name FROM e"
        " JOIN t ON t.node_id = e.dst_node_id",
        {
            "e": edges(CALLS, src_node_id=sites, path=paths),
            "t": nodes(("FUNCTION", "CLASS", "QUALIFIED_NAME")),
        },
        order=("src_node_id", "edge_kind DESC", "name DESC"),
    )
    reasons = Query(
        "SELECT r.src_id, r.reason FROM r WHERE r.dst_id IS NULL AND r.reason IS NOT NULL",
        {"r": Slice("relations_v1", owner_file_id=files, src_id=sites, relation_kind=("CALLS",))},
        order=("src_id", "reason"),
    )
    described = {site: ("unresolved", reason) for site, reason in reader.rows(reasons)}
    # Of several targets the first by kind and name; one of the repository hides that others are unknown.
    for site, kind, name in reader.rows(targets):
        described[site] = ("external" if kind == "CALLS_NAME" else kind, name)
    return described


def _relation(spans: Sequence[Span]) -> InlineRows:
    return InlineRows(SPAN_COLUMNS, [(at, *span) for at, span in enumerate(spans)])
