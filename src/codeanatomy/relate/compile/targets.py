"""Compile targets of assignments and deletions, and the patterns of `match`.

    a, *b = xs          a is the first element, b a list of the others
    case Point(x=x)     x is the attribute of the subject, narrowed to Point

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.compile.builder import Builder
from codeanatomy.relate.compile.names import unbind, write_variable
from codeanatomy.relate.program import NOTHING, Node


def assign(b: Builder, target: int, value: Node) -> None:
    tree, kind = b.tree, b.tree.kind[target]
    if kind == "Name":
        write_variable(b, target, value)
    elif kind == "Attribute":
        receiver = b.value(tree.child(target, "value"))
        if receiver != NOTHING:
            attr, site = b.attribute_name(target), b.attribute_site(target)
            b.ops.append((ir.OP_STORE_ATTRIBUTE, receiver, attr, value, site))
            b.call_count += 1
    elif kind == "Subscript":
        receiver, index = b.value(tree.child(target, "value")), tree.child(target, "slice")
        key_value = b.value(index)
        if receiver != NOTHING:
            b.ops.append((ir.OP_STORE_ITEM, receiver, b.key(index), value, b.site(target, "subscript")))
            b.put_key(receiver, key_value)
            b.call_count += 1
    elif kind in ("Tuple", "List"):
        _unpack(b, tree.many(target, "elts"), value, target)
    elif kind == "Starred":
        assign(b, tree.child(target, "value"), value)
    else:
        b.value(target)


def _unpack(b: Builder, targets: Sequence[int], value: Node, node: int) -> None:
    if value != NOTHING and value not in b.const_nodes:
        b.call_count += 1
        b.ops.append((ir.OP_ITERATE, value, NOTHING, b.site(node, "iteration")))
    starred = len(targets)
    for at, target in enumerate(targets):
        after = len(targets) - at
        if b.tree.kind[target] == "Starred":
            starred = at
            rest = b.unpack(value, f"{at}:{after - 1}")
            inner = NOTHING if rest == NOTHING else b.container("list")
            b.put(inner, None, rest)
        else:
            inner = b.unpack(value, f"-{after}" if at > starred else str(at))
        assign(b, target, inner)


def delete(b: Builder, target: int) -> None:
    tree, kind = b.tree, b.tree.kind[target]
    if kind == "Name":
        unbind(b, tree.name[target] or "")
    elif kind == "Subscript":
        receiver = b.value(tree.child(target, "value"))
        b.value(tree.child(target, "slice"))
        b.special(target, receiver, ["__delitem__"], [], "subscript")
    elif kind == "Attribute":
        receiver = b.value(tree.child(target, "value"))
        if receiver != NOTHING:
            attr, site = b.attribute_name(target), b.attribute_site(target)
            b.ops.append((ir.OP_DELETE_ATTRIBUTE, receiver, attr, site))
    else:
        for item in tree.many(target, "elts"):
            delete(b, item)


def match_pattern(b: Builder, node: int, subject: Node) -> None:
    """Bind the names of a pattern to parts of the subject."""
    PATTERNS.get(b.tree.kind[node], _match_value)(b, node, subject)


def _match_value(b: Builder, node: int, _subject: Node) -> None:
    b.value(b.tree.one(node, "value"))


def _capture(b: Builder, node: int, subject: Node) -> None:
    inner = b.tree.one(node, "pattern")
    if inner is not None:
        subject = _narrow_to_class(b, inner, subject)
        match_pattern(b, inner, subject)
    write_variable(b, node, subject)


def _capture_rest(b: Builder, node: int, subject: Node) -> None:
    result = b.container("list")
    b.put(result, None, b.unpack(subject, None))
    write_variable(b, node, result)


def _match_sequence(b: Builder, node: int, subject: Node) -> None:
    for position, inner in enumerate(b.tree.many(node, "patterns")):
        is_rest = b.tree.kind[inner] == "MatchStar"
        match_pattern(b, inner, subject if is_rest else b.unpack(subject, str(position)))


def _match_mapping(b: Builder, node: int, subject: Node) -> None:
    tree, value = b.tree, NOTHING
    for key, inner in zip(tree.many(node, "keys"), tree.many(node, "patterns"), strict=False):
        if subject != NOTHING:
            value = b.load_item(subject, key, b.site(key, "subscript"), NOTHING)
        match_pattern(b, inner, value)
    write_variable(b, node, subject)


def _match_class(b: Builder, node: int, subject: Node) -> None:
    tree, subject, value = b.tree, _narrow_to_class(b, node, subject), NOTHING
    for inner in tree.many(node, "patterns"):
        match_pattern(b, inner, NOTHING)
    attrs = (tree.name[node] or "").split(", ")
    for attr, inner in zip(attrs, tree.many(node, "kwd_patterns"), strict=False):
        if subject != NOTHING:
            value = b.load_attribute(subject, attr, b.site(inner, "attribute"))
        match_pattern(b, inner, value)


def _match_any(b: Builder, node: int, subject: Node) -> None:
    for inner in b.tree.many(node, "patterns"):
        match_pattern(b, inner, subject)


PATTERNS = {
    "MatchAs": _capture,
    "MatchStar": _capture_rest,
    "MatchSequence": _match_sequence,
    "MatchMapping": _match_mapping,
    "MatchClass": _match_class,
    "MatchOr": _match_any,
}


def _narrow_to_class(b: Builder, pattern: int, subject: Node) -> Node:
    """Return the subject narrowed to the class that a pattern names, if it names one."""
    if b.tree.kind[pattern] != "MatchClass":
        return subject
    classes = b.value(b.tree.child(pattern, "cls"))
    if classes == NOTHING:
        return subject
    return b.narrow(b.new_node() if subject == NOTHING else subject, classes)
