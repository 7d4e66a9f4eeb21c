"""Describe a call of an external function to its model, with the verbs that a model needs.

    def map_(c: ModelCall) -> None:
        elements = [c.iterate(each) for each in c.positional[1:]]
        c.returns(c.container("generator", c.call(c.argument(0), elements, c.node())))

A model names nodes: those of the arguments, the one of the result, and new ones. NOTHING, the node of an
argument that is not passed, may be used everywhere: nothing flows from it or into it.

Tests: `tests/unit/relate/test_models.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import call_node, call_special_method
from codeanatomy.relate.values.rules.containers import container_kind, new_container, put
from codeanatomy.relate.values.rules.protocols import iterate
from codeanatomy.relate.values.solver import Object, hint_like
from codeanatomy.relate.values.state import Call, State, positional


class ModelCall:
    """A call of an external function, or of a method of a builtin container."""

    __slots__ = ("add", "callee", "field", "flow", "name", "object", "pending", "result", "state")

    def __init__(self, state: State, pending: Call, callee: Object, name: str) -> None:
        self.state = state
        self.pending = pending
        # The called object and its qualified name; of a method, the container and the name of the method.
        self.callee = callee
        self.name = name
        # Node of the result; NOTHING if it is not used.
        self.result = pending.dst
        # Add an object to a node, let the objects of a node flow into another; objects and nodes of fields.
        self.add, self.flow, self.object, self.field = state.add, state.flow, state.object, state.field

    # -- arguments

    def argument(self, position: int, keyword: str | None = None) -> int:
        """Return the node of an argument by keyword or position; NOTHING if it is not passed."""
        return self.pending.argument(position, keyword)

    @property
    def keywords(self) -> list[tuple[str, int]]:
        """The keyword arguments."""
        return [(keyword, node) for _, keyword, node in self.pending.args if keyword is not None]

    @property
    def positional(self) -> list[int]:
        """The nodes of the positional arguments."""
        return [node for how, _, node in self.pending.args if how == ir.POSITIONAL]

    def constant(self, position: int, keyword: str | None = None) -> str | None:
        """Return an argument by keyword or position as a Python literal; None if it is not constant."""
        file, site = self.pending.where
        texts = self.state.programs[file].constant_arguments.get(site, ()) if file >= 0 else ()
        names = [name for _, name, _ in self.pending.args]
        if keyword is not None and keyword in names:
            position = names.index(keyword)
        elif position >= len(self.positional):
            return None
        return texts[position] if 0 <= position < len(texts) else None

    def text(self, position: int, keyword: str | None = None) -> str | None:
        """Return a constant string argument; None if it is none."""
        literal = self.constant(position, keyword)
        return literal[1:-1] if literal and literal[0] in "'\"" else None

    # -- objects

    def node(self, obj: Object | None = None) -> int:
        """Return a new node, empty or with an object."""
        node = self.state.new_node()
        if obj is not None:
            self.add(node, obj)
        return node

    def instance(self, cls: str) -> Object:
        """Return an instance of an external class."""
        return self.object(ir.OBJ_EXTERNAL_INSTANCE, cls)

    def container(self, kind: str, *elements: int, mark: str = "", cls: str = "") -> Object:
        """Return the container that the call creates, with the objects of these nodes as elements.

        `mark` distinguishes several containers of one call, and `cls` names a class that is no builtin.
        """
        created = new_container(self.state, kind, self.pending.where, mark, cls)
        for node in elements:
            self.put(created, None, node)
        return created

    def put(self, container: Object, key: str | None, node: int) -> None:
        """Store an element at a constant key, or at an unknown key if None."""
        put(self.state, container, key, node)

    def is_container(self, obj: Object, *kinds: str) -> bool:
        """Whether an object is a builtin container of one of these kinds."""
        return self.state.kind[obj] == ir.OBJ_CONTAINER and container_kind(self.state, obj) in kinds

    # -- what the function does

    def call(self, function: int, args: Sequence[int], dst: int = ir.NOTHING) -> int:
        """Call the objects of a node with these arguments; put the results into dst, and return dst."""
        self.call_with(function, [positional(node) for node in args], dst)
        return dst

    def call_with(self, function: int, args: Sequence[ir.Arg], dst: int = ir.NOTHING) -> None:
        """Call the objects of a node with arguments of any form."""
        call_node(self.state, function, self.pending.with_args(args, dst, "callback"))

    def call_special(
        self, node: int, names: Sequence[str], args: Sequence[int] = (), dst: int = ir.NOTHING
    ) -> None:
        """Call the first of these special methods that the class of each object of a node has."""
        inner = self.pending.with_args([positional(each) for each in args], dst, "builtin")
        self.state.subscribe(node, call_special_method, tuple(names), inner)

    def iterate(self, node: int, dst: int | None = None) -> int:
        """Return a node with what iteration over the objects of a node yields."""
        element = self.node() if dst is None else dst
        self.state.subscribe(node, iterate, element, self.pending.where)
        return element

    def each(self, node: int, rule: Callable[..., None], *data: Any) -> None:
        """Call rule(c, object, *data) with each object of a node, present and future."""
        self.state.subscribe(node, _apply_each, self, rule, data)

    def returns(self, obj: Object, source: Object | None = None) -> None:
        """Return an object; as a hint if the source that it is derived from is one."""
        self.add(self.result, obj if source is None else hint_like(obj, source))


def _apply_each(
    _: State, obj: Object, call: ModelCall, rule: Callable[..., None], data: tuple[Any, ...]
) -> None:
    rule(call, obj, *data)
