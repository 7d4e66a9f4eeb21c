"""Compile targets of assignments and deletions, and the patterns of `match`.

    a, *b = xs          a is the first element, b a list of the others
    case Point(x=x)     x is the attribute of the subject, narrowed to Point

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate.compile.expressions import ExpressionCompiler
from codeanatomy.relate.program import (
    NOTHING,
    OP_DELETE_ATTRIBUTE,
    OP_ISINSTANCE,
    OP_ITERATE,
    OP_LOAD_ATTRIBUTE,
    OP_LOAD_ITEM,
    OP_STORE_ATTRIBUTE,
    OP_STORE_ITEM,
    OP_STORE_KEY,
    OP_UNPACK,
    VARIABLE,
    Node,
)


class TargetCompiler(ExpressionCompiler):
    """Compiles assignment targets, deletions and patterns."""

    def assign(self, target: int | None, value: Node) -> None:
        """Assign a value to the target of an assignment."""
        if target is None:
            return
        tree, kind = self.tree, self.tree.kind[target]
        if kind == "Name":
            self.write_at(target, value)
        elif kind == "Attribute":
            receiver = self.value(tree.one(target, "value"))
            if receiver != NOTHING:
                attr = self.mangled(tree.name[target] or "")
                self.ops.append((OP_STORE_ATTRIBUTE, receiver, attr, value, self.attribute_site(target)))
                self.call_count += 1
        elif kind == "Subscript":
            receiver = self.value(tree.one(target, "value"))
            index = tree.one(target, "slice")
            key_value = self.value(index)
            if receiver != NOTHING:
                site = self.site(target, "subscript")
                self.ops.append((OP_STORE_ITEM, receiver, self.key(index), value, site))
                if key_value != NOTHING:
                    self.ops.append((OP_STORE_KEY, receiver, key_value))
                self.call_count += 1
        elif kind in ("Tuple", "List"):
            self._unpack(tree.many(target, "elts"), value, target)
        elif kind == "Starred":
            self.assign(tree.one(target, "value"), value)
        else:
            self.value(target)

    def write_at(self, target: int, value: Node) -> None:
        """Assign a value to a name, with a definition at its place."""
        name = self.tree.name[target] or ""
        self.write(name, value, self.define(VARIABLE, -1, self.place(target), name))

    def _unpack(self, targets: Sequence[int], value: Node, node: int) -> None:
        if value != NOTHING and value not in self.const_nodes:
            self.call_count += 1
            self.ops.append((OP_ITERATE, value, NOTHING, self.site(node, "iteration")))
        starred = [at for at, target in enumerate(targets) if self.tree.kind[target] == "Starred"]
        for at, target in enumerate(targets):
            inner = NOTHING
            if value != NOTHING:
                inner = self.new_node()
                after = len(targets) - at
                position = (
                    f"{at}:{after - 1}"
                    if at in starred
                    else f"-{after}"
                    if starred and at > starred[0]
                    else str(at)
                )
                self.ops.append((OP_UNPACK, value, position, inner))
                if at in starred:
                    each, inner = inner, self.container("list")
                    self.ops.append((OP_STORE_ITEM, inner, None, each, NOTHING))
            self.assign(target, inner)

    def _delete(self, target: int) -> None:
        tree, kind = self.tree, self.tree.kind[target]
        if kind == "Name":
            self.unbind(tree.name[target] or "")
        elif kind == "Subscript":
            receiver = self.value(tree.one(target, "value"))
            self.value(tree.one(target, "slice"))
            self.special(target, receiver, ["__delitem__"], [], "subscript")
        elif kind == "Attribute":
            receiver = self.value(tree.one(target, "value"))
            if receiver != NOTHING:
                attr = self.mangled(tree.name[target] or "")
                self.ops.append((OP_DELETE_ATTRIBUTE, receiver, attr, self.attribute_site(target)))
        else:
            for item in tree.many(target, "elts"):
                self._delete(item)

    def pattern(self, node: int, subject: Node) -> None:
        """Bind the names of a pattern to parts of the subject."""
        kind = self.tree.kind[node]
        if kind == "MatchAs":
            self._capture(node, subject)
        elif kind == "MatchStar":
            self._capture_rest(node, subject)
        elif kind == "MatchSequence":
            for position, inner in enumerate(self.tree.many(node, "patterns")):
                self.pattern(inner, self._item(subject, position, self.tree.kind[inner]))
        elif kind == "MatchMapping":
            self._mapping_pattern(node, subject)
        elif kind == "MatchClass":
            self._class_pattern(node, self._narrowed(node, subject))
        elif kind == "MatchOr":
            for inner in self.tree.many(node, "patterns"):
                self.pattern(inner, subject)
        else:
            self.value(self.tree.one(node, "value"))

    def _capture(self, node: int, subject: Node) -> None:
        inner = self.tree.one(node, "pattern")
        if inner is not None:
            subject = self._narrowed(inner, subject)
            self.pattern(inner, subject)
        self._bind_name(node, subject)

    def _bind_name(self, node: int, value: Node) -> None:
        name = self.tree.name[node]
        if name is not None:
            self.write(name, value, self.define(VARIABLE, -1, self.place(node), name))

    def _capture_rest(self, node: int, subject: Node) -> None:
        result = self.container("list")
        if subject != NOTHING:
            each = self.new_node()
            self.ops.append((OP_UNPACK, subject, None, each))
            self.ops.append((OP_STORE_ITEM, result, None, each, NOTHING))
        self._bind_name(node, result)

    def _mapping_pattern(self, node: int, subject: Node) -> None:
        tree = self.tree
        for key, inner in zip(tree.many(node, "keys"), tree.many(node, "patterns"), strict=False):
            value = NOTHING
            if subject != NOTHING:
                value = self.new_node()
                site = self.site(key, "subscript")
                self.ops.append((OP_LOAD_ITEM, subject, self.key(key), value, site, NOTHING))
            self.pattern(inner, value)
        self._bind_name(node, subject)

    def _class_pattern(self, node: int, subject: Node) -> None:
        tree = self.tree
        for inner in tree.many(node, "patterns"):
            self.pattern(inner, NOTHING)
        attrs = (tree.name[node] or "").split(", ")
        for attr, inner in zip(attrs, tree.many(node, "kwd_patterns"), strict=False):
            value = NOTHING
            if subject != NOTHING:
                value = self.new_node()
                self.ops.append((OP_LOAD_ATTRIBUTE, subject, attr, value, self.site(inner, "attribute")))
            self.pattern(inner, value)

    def _item(self, subject: Node, position: int, kind: str) -> Node:
        if subject == NOTHING or kind == "MatchStar":
            return subject
        result = self.new_node()
        self.ops.append((OP_UNPACK, subject, str(position), result))
        return result

    def _narrowed(self, pattern: int, subject: Node) -> Node:
        """Return the subject narrowed to the class that a pattern names, if it names one."""
        cls = self.tree.one(pattern, "cls")
        if cls is None or self.tree.kind[pattern] != "MatchClass":
            return subject
        classes = self.value(cls)
        if classes == NOTHING:
            return subject
        result = self.new_node()
        source = self.new_node() if subject == NOTHING else subject
        self.ops.append((OP_ISINSTANCE, source, classes, result))
        return result
