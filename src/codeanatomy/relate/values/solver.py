"""Propagate sets of abstract objects along the edges of a graph until nothing changes.

    solver = Solver()
    a, b = solver.new_node(), solver.new_node()
    solver.flow(a, b)
    solver.add(a, obj)
    solver.run()
    solver.objects_at(b)      # [obj]

This is the worklist algorithm of an inclusion-based points-to analysis. An object is an even number; with
its lowest bit set (`WEAK`) it is a hint, known from an annotation only, and stays one wherever it flows. The
set of a node keeps the order of arrival, and only new objects are passed on (difference propagation). A rule
that subscribes to a node is called with its new objects. A node takes at most `limit` objects, then it is
marked as truncated: an answer with a hundred candidates is useless.

Tests: `tests/unit/relate/test_solver.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

Object: TypeAlias = int
# A function to call and its arguments.
Rule: TypeAlias = tuple[Callable[..., None], tuple[Any, ...]]
# Objects per node.
MAX_OBJECTS = 48
# Bit of an object that is only a hint.
WEAK = 1


class Solver:
    """Nodes, edges, rules and the points-to set of each node."""

    def __init__(self, limit: int = MAX_OBJECTS) -> None:
        self.limit = limit
        self.points_to: list[dict[Object, None] | None] = []
        self._edges: list[dict[int, None] | None] = []
        self._weak_edges: dict[int, dict[int, None]] = {}
        self._rules: dict[int, dict[Rule, None]] = {}
        self._pending: dict[int, list[Object]] = {}
        self._queue: deque[int] = deque()
        # Deferred calls, among them rules with the objects that were there when they subscribed.
        self._tasks: deque[Rule] = deque()
        # Nodes that were given more objects than the limit.
        self.truncated: set[int] = set()

    def new_node(self) -> int:
        """Create an empty node."""
        self.points_to.append(None)
        self._edges.append(None)
        return len(self.points_to) - 1

    def reserve(self, count: int) -> int:
        """Create `count` consecutive empty nodes and return the first."""
        first = len(self.points_to)
        self.points_to.extend([None] * count)
        self._edges.extend([None] * count)
        return first

    def add(self, node: int, obj: Object) -> None:
        """Add an object to a node."""
        if node < 0:
            return
        present = self.points_to[node]
        if present is None:
            present = self.points_to[node] = {}
        elif obj in present:
            return
        if obj & WEAK and obj ^ WEAK in present:
            return
        if len(present) >= self.limit:
            self.truncated.add(node)
            return
        present[obj] = None
        if node in self._pending:
            self._pending[node].append(obj)
        else:
            self._pending[node] = [obj]
            self._queue.append(node)

    def flow(self, src: int, dst: int, weak: int = 0) -> None:
        """Add an edge: every object of src is in dst, as a hint if the edge is weak."""
        if src < 0 or dst < 0 or src == dst:
            return
        if weak:
            edges = self._weak_edges.setdefault(src, {})
        else:
            known = self._edges[src]
            if known is None:
                known = self._edges[src] = {}
            edges = known
        if dst in edges:
            return
        edges[dst] = None
        objects = self.points_to[src]
        if objects:
            self._propagate(dst, as_hints(objects) if weak else objects)

    def _propagate(self, node: int, objects: Iterable[Object]) -> None:
        """Add objects to a node: at least one, without duplicates, no hint after its own object.

        Most of the solver's time is spent here.
        """
        present = self.points_to[node]
        if not present:
            new = list(objects)
            self.points_to[node] = dict.fromkeys(new)
        else:
            if node in self.truncated:
                return
            # A loop, not a comprehension: mostly there is one object, or none that is new.
            new = []
            for obj in objects:
                if obj in present or (obj & WEAK and obj ^ WEAK in present):
                    continue
                new.append(obj)
            if not new:
                return
            free = self.limit - len(present)
            if free < len(new):
                self.truncated.add(node)
                if not free:
                    return
                del new[free:]
            present.update(dict.fromkeys(new))
        if node in self._pending:
            self._pending[node] += new
        else:
            self._pending[node] = new
            self._queue.append(node)

    def subscribe(self, node: int, rule: Callable[..., None], *data: Any) -> None:
        """Call rule(objects, *data) with the objects of a node, present and future."""
        if node < 0:
            return
        rules = self._rules.get(node)
        if rules is None:
            rules = self._rules[node] = {}
        elif (rule, data) in rules:
            # Otherwise a container that contains itself would be processed for ever.
            return
        rules[rule, data] = None
        present = self.points_to[node]
        if present:
            # Deferred: a chain of rules may be longer than the stack is deep.
            self._tasks.append((rule, (list(present), *data)))

    def defer(self, rule: Callable[..., None], *data: Any) -> None:
        """Call rule(*data) once, when the solver gets to it."""
        self._tasks.append((rule, data))

    def run(self) -> None:
        """Run deferred rules and propagate new objects until nothing changes."""
        tasks, queue, propagate = self._tasks, self._queue, self._propagate
        while tasks or queue:
            if tasks:
                rule, data = tasks.popleft()
                rule(*data)
                continue
            node = queue.popleft()
            new = self._pending.pop(node)
            for dst in self._edges[node] or ():
                propagate(dst, new)
            if node in self._weak_edges:
                hinted = as_hints(new)
                for dst in self._weak_edges[node]:
                    propagate(dst, hinted)
            for rule, data in list(self._rules.get(node, ())):
                rule(new, *data)

    def objects_at(self, node: int) -> Sequence[Object]:
        """Return the objects of a node; hints only if there is nothing else."""
        objects = self.points_to[node] if node >= 0 else None
        return prefer_strong(objects) if objects else ()


def as_hints(objects: Iterable[Object]) -> list[Object]:
    """Return the objects as hints, without duplicates.

    >>> as_hints([4, 7, 6])
    [5, 7]
    """
    return list(dict.fromkeys([obj | WEAK for obj in objects]))


def prefer_strong(objects: Iterable[Object]) -> list[Object]:
    """Return the objects that are no hints; if there are none, the hints.

    >>> prefer_strong([4, 7]), prefer_strong([7])
    ([4], [7])
    """
    listed = list(objects)
    strong = [obj for obj in listed if not obj & WEAK]
    return strong or listed
