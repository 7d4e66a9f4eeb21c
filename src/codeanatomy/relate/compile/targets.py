"""Targets of assignments: names, attributes, elements, tuples, and the patterns of `match`.

    a, *b = xs          a is the first element, b a list of the others
    case Point(x=x)     x is the attribute of what is left of the subject

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate.compile.expressions import Expressions
from codeanatomy.relate.program import NOTHING, VARIABLE, Node


class Targets(Expressions):
    """The part of the walk that binds and unbinds."""

    def assign(self, target: int | None, value: Node) -> None:
        if target is None:
            return
        tree, kind = self.tree, self.tree.kind[target]
        if kind == "Name":
            self.write_at(target, value)
        elif kind == "Attribute":
            received = self.value(tree.one(target, "value"))
            if received != NOTHING:
                attr = self.mangled(tree.name[target] or "")
                self.ops.append((":", received, attr, value, self.attribute_site(target)))
                self.events += 1
        elif kind == "Subscript":
            received = self.value(tree.one(target, "value"))
            index = tree.one(target, "slice")
            key_value = self.value(index)
            if received != NOTHING:
                self.ops.append(("]", received, self.key(index), value, self.site(target, "subscript")))
                if key_value != NOTHING:
                    self.ops.append(("k", received, key_value))
                self.events += 1
        elif kind in ("Tuple", "List"):
            self._unpack(tree.many(target, "elts"), value, target)
        elif kind == "Starred":
            self.assign(tree.one(target, "value"), value)
        else:
            self.value(target)

    def write_at(self, target: int, value: Node) -> None:
        """A name at a place gets a value."""
        name = self.tree.name[target] or ""
        self.write(name, value, self.define(VARIABLE, -1, self.place(target), name))

    def _unpack(self, targets: Sequence[int], value: Node, node: int) -> None:
        if value != NOTHING and value not in self.const_nodes:
            self.events += 1
            self.ops.append(("*", value, NOTHING, self.site(node, "iteration")))
        starred = [at for at, target in enumerate(targets) if self.tree.kind[target] == "Starred"]
        for at, target in enumerate(targets):
            inner = NOTHING
            if value != NOTHING:
                inner = self.new()
                after = len(targets) - at
                place = (
                    f"{at}:{after - 1}"
                    if at in starred
                    else f"-{after}"
                    if starred and at > starred[0]
                    else str(at)
                )
                self.ops.append((",", value, place, inner))
                if at in starred:
                    each, inner = inner, self.container("list")
                    self.ops.append(("]", inner, None, each, NOTHING))
            self.assign(target, inner)

    def _delete(self, target: int) -> None:
        tree, kind = self.tree, self.tree.kind[target]
        if kind == "Name":
            self.unbind(tree.name[target] or "")
        elif kind == "Subscript":
            received = self.value(tree.one(target, "value"))
            self.value(tree.one(target, "slice"))
            self.special(target, received, ["__delitem__"], [], "subscript")
        elif kind == "Attribute":
            received = self.value(tree.one(target, "value"))
            if received != NOTHING:
                self.ops.append(
                    ("x", received, self.mangled(tree.name[target] or ""), self.attribute_site(target))
                )
        else:
            for item in tree.many(target, "elts"):
                self._delete(item)

    def pattern(self, node: int, subject: Node) -> None:
        """The names that a pattern binds, of what it is laid on."""
        kind = self.tree.kind[node]
        if kind == "MatchAs":
            self._capture(node, subject)
        elif kind == "MatchStar":
            self._rest(node, subject)
        elif kind == "MatchSequence":
            for place, inner in enumerate(self.tree.many(node, "patterns")):
                self.pattern(inner, self._item(subject, place, self.tree.kind[inner]))
        elif kind == "MatchMapping":
            self._mapping(node, subject)
        elif kind == "MatchClass":
            self._members(node, self._narrowed(node, subject))
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
        self._named(node, subject)

    def _named(self, node: int, value: Node) -> None:
        name = self.tree.name[node]
        if name is not None:
            self.write(name, value, self.define(VARIABLE, -1, self.place(node), name))

    def _rest(self, node: int, subject: Node) -> None:
        made = self.container("list")
        if subject != NOTHING:
            each = self.new()
            self.ops.append((",", subject, None, each))
            self.ops.append(("]", made, None, each, NOTHING))
        self._named(node, made)

    def _mapping(self, node: int, subject: Node) -> None:
        tree = self.tree
        for key, inner in zip(tree.many(node, "keys"), tree.many(node, "patterns"), strict=False):
            value = NOTHING
            if subject != NOTHING:
                value = self.new()
                site = self.site(key, "subscript")
                self.ops.append(("[", subject, self.key(key), value, site, NOTHING))
            self.pattern(inner, value)
        self._named(node, subject)

    def _members(self, node: int, subject: Node) -> None:
        tree = self.tree
        for inner in tree.many(node, "patterns"):
            self.pattern(inner, NOTHING)
        attrs = (tree.name[node] or "").split(", ")
        for attr, inner in zip(attrs, tree.many(node, "kwd_patterns"), strict=False):
            value = NOTHING
            if subject != NOTHING:
                value = self.new()
                self.ops.append((".", subject, attr, value, self.site(inner, "attribute")))
            self.pattern(inner, value)

    def _item(self, subject: Node, place: int, kind: str) -> Node:
        if subject == NOTHING or kind == "MatchStar":
            return subject
        made = self.new()
        self.ops.append((",", subject, str(place), made))
        return made

    def _narrowed(self, pattern: int, subject: Node) -> Node:
        """What is left of the subject if a pattern names its class."""
        cls = self.tree.one(pattern, "cls")
        if cls is None or self.tree.kind[pattern] != "MatchClass":
            return subject
        classes = self.value(cls)
        if classes == NOTHING:
            return subject
        made = self.new()
        self.ops.append(("i", self.new() if subject == NOTHING else subject, classes, made))
        return made
