"""Propagate sets of abstract objects along the edges of a graph until nothing changes.

    solver = Solver()
    a, b = solver.new_node(), solver.new_node()
    solver.flow(a, b)
    solver.add(a, obj)
    solver.run()
    solver.objects_at(b)      # [obj]

This is the worklist algorithm of an inclusion-based points-to analysis. An object is an even number; the
number after it (`as_hint`) is its hint, known from an annotation only, and stays one wherever it flows. The
set of a node keeps the order of arrival, and only new objects are passed on (difference propagation). A rule
that subscribes to a node is called with the context of the solver and each new object of the node. A node
takes at most `limit` objects, then it is marked as truncated: an answer with a hundred candidates is useless.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

Object: TypeAlias = int
# A function to call and its arguments.
Rule: TypeAlias = tuple[Callable[..., None], tuple[Any, ...]]
# Objects per node.
MAX_OBJECTS = 48
# Bit of an object that is only a hint.
WEAK = 1
# Nodes to make room for at a time.
GROWTH = 10_000


class Solver:
    """Nodes, edges, rules and the points-to set of each node.

    Most nodes have one object, one edge or one rule, and then need no container of their own: this saves a
    third of the memory of a large repository.
    """

    def __init__(self, context: Any = None, limit: int = MAX_OBJECTS) -> None:
        # First argument of every rule.
        self.context = context
        self.limit = limit
        # By node. A set of one object is shared by all nodes that have only this object, and never changes.
        self.points_to: list[dict[Object, None] | None] = []
        # By node: the target, or the targets if there are several; of a weak edge its complement (`~dst`).
        self._edges: list[int | dict[int, None] | None] = []
        # By node: the rule, or the rules if there are several.
        self._rules: list[Rule | dict[Rule, None] | None] = []
        # By queued node, the objects to pass on.
        self._pending: list[tuple[Object, ...] | None] = []
        self._queue: deque[int] = deque()
        # Sets and tuples of one object.
        self._singles: dict[Object, tuple[dict[Object, None], tuple[Object]]] = {}
        # Deferred calls, among them rules with the objects that were there when they subscribed.
        self._tasks: deque[Rule] = deque()
        # Nodes that were given more objects than the limit.
        self.truncated: set[int] = set()
        self._count = 0

    def new_node(self) -> int:
        """Create an empty node."""
        node = self._count
        if node == len(self.points_to):
            self._grow(node + GROWTH)
        self._count = node + 1
        return node

    def reserve(self, count: int) -> int:
        """Create `count` consecutive empty nodes and return the first."""
        first = self._count
        self._count = first + count
        self._grow(self._count)
        return first

    def _grow(self, size: int) -> None:
        """Make room for so many nodes."""
        more = [None] * (size - len(self.points_to))
        self.points_to += more
        self._edges += more
        self._rules += more
        self._pending += more

    def add(self, node: int, obj: Object) -> None:
        """Add an object to a node."""
        if node < 0:
            return
        present = self.points_to[node]
        if present is None:
            self._put_first(node, obj)
        elif obj not in present and not (obj & WEAK and obj ^ WEAK in present):
            self._put_more(node, present, (obj,))

    def flow(self, src: int, dst: int, weak: bool = False) -> None:
        """Add an edge: every object of src is in dst, as a hint if the edge is weak."""
        if src < 0 or dst < 0 or src == dst:
            return
        edge = ~dst if weak else dst
        edges = self._edges[src]
        if edges is None:
            self._edges[src] = edge
        elif isinstance(edges, int):
            if edges == edge:
                return
            self._edges[src] = {edges: None, edge: None}
        elif edge in edges:
            return
        else:
            edges[edge] = None
        objects = self.points_to[src]
        if objects is not None:
            self._propagate(dst, dict.fromkeys([obj | WEAK for obj in objects]) if weak else objects)

    def _propagate(self, node: int, objects: Collection[Object]) -> None:
        """Add objects to a node: at least one, without duplicates, no hint after its own object."""
        present = self.points_to[node]
        if present is not None:
            if node in self.truncated:
                return
            new = [
                obj for obj in objects if obj not in present and not (obj & WEAK and obj ^ WEAK in present)
            ]
            if new:
                self._put_more(node, present, new)
        elif len(objects) == 1:
            (obj,) = objects
            self._put_first(node, obj)
        else:
            self.points_to[node], self._pending[node] = dict.fromkeys(objects), tuple(objects)
            self._queue.append(node)

    def _put_first(self, node: int, obj: Object) -> None:
        """Add an object to an empty node."""
        single = self._singles.get(obj)
        if single is None:
            single = self._singles[obj] = ({obj: None}, (obj,))
        self.points_to[node], self._pending[node] = single
        self._queue.append(node)

    def _put_more(self, node: int, present: dict[Object, None], new: Sequence[Object]) -> None:
        """Add new objects to a node that has some, as far as the limit allows."""
        free = self.limit - len(present)
        if free < len(new):
            self.truncated.add(node)
            if free <= 0:
                return
            new = new[:free]
        if len(present) == 1:
            present = self.points_to[node] = present.copy()
        for obj in new:
            present[obj] = None
        waiting = self._pending[node]
        if waiting is None:
            self._pending[node] = tuple(new)
            self._queue.append(node)
        else:
            self._pending[node] = (*waiting, *new)

    def subscribe(self, node: int, rule: Callable[..., None], *data: Any) -> None:
        """Call rule(context, object, *data) with each object of a node, present and future."""
        if node < 0:
            return
        # A rule is not added twice: a container that contains itself would be processed for ever.
        added, known = (rule, data), self._rules[node]
        if known is None:
            self._rules[node] = added
        elif isinstance(known, tuple):
            if known == added:
                return
            self._rules[node] = {known: None, added: None}
        elif added in known:
            return
        else:
            known[added] = None
        present = self.points_to[node]
        if present is not None:
            # Deferred: a chain of rules may be longer than the stack is deep.
            self._tasks += [(rule, (obj, *data)) for obj in present]

    def defer(self, rule: Callable[..., None], *data: Any) -> None:
        """Call rule(context, *data) once, when the solver gets to it."""
        self._tasks.append((rule, data))

    def run(self) -> None:
        """Run deferred rules and propagate new objects until nothing changes."""
        tasks, queue, pending, context = self._tasks, self._queue, self._pending, self.context
        while tasks or queue:
            if tasks:
                rule, data = tasks.popleft()
                rule(context, *data)
                continue
            node = queue.popleft()
            new = pending[node]
            pending[node] = None
            if new is not None:
                self._pass_on(node, new)

    def _pass_on(self, node: int, new: tuple[Object, ...]) -> None:
        """Pass new objects of a node along its edges and to its rules."""
        edges = self._edges[node]
        if isinstance(edges, int) and edges >= 0:
            self._propagate(edges, new)
        elif isinstance(edges, int):
            self._pass_along((edges,), new)
        elif edges is not None:
            self._pass_along(edges, new)
        rules, context = self._rules[node], self.context
        if isinstance(rules, tuple):
            rule, data = rules
            for obj in new:
                rule(context, obj, *data)
        elif rules is not None:
            for rule, data in list(rules):
                for obj in new:
                    rule(context, obj, *data)

    def _pass_along(self, edges: Iterable[int], new: tuple[Object, ...]) -> None:
        """Pass new objects along several edges, the weak ones last."""
        weak = []
        for edge in edges:
            if edge >= 0:
                self._propagate(edge, new)
            else:
                weak.append(~edge)
        hints = dict.fromkeys([obj | WEAK for obj in new]) if weak else {}
        for dst in weak:
            self._propagate(dst, hints)

    def objects_at(self, node: int) -> Sequence[Object]:
        """Return the objects of a node; hints only if there is nothing else."""
        objects = self.points_to[node] if node >= 0 else None
        return prefer_strong(objects) if objects else ()


def is_hint(obj: Object) -> bool:
    """Whether an object is only a hint.

    >>> is_hint(4), is_hint(5)
    (False, True)
    """
    return obj & WEAK == WEAK


def strong(obj: Object) -> Object:
    """Return the object that a hint hints at; an object that is no hint as it is.

    >>> strong(4), strong(5)
    (4, 4)
    """
    return obj & ~WEAK


def as_hint(obj: Object, weak: bool = True) -> Object:
    """Return the object as a hint, or as it is if not `weak`.

    >>> as_hint(4), as_hint(4, False), as_hint(5, False)
    (5, 4, 5)
    """
    return obj | weak


def hint_like(obj: Object, other: Object) -> Object:
    """Return an object derived from another: as a hint if the other is one.

    >>> hint_like(4, 7), hint_like(4, 6)
    (5, 4)
    """
    return obj | other & WEAK


def prefer_strong(objects: Iterable[Object]) -> list[Object]:
    """Return the objects that are no hints; if there are none, the hints.

    >>> prefer_strong([4, 7]), prefer_strong([7])
    ([4], [7])
    """
    listed = list(objects)
    strong = [obj for obj in listed if not obj & WEAK]
    return strong or listed
