"""Sets of objects that flow along edges until nothing changes.

    values = Solver()
    a, b = values.node(), values.node()
    values.flow(a, b)
    values.add(a, thing)
    values.run()
    values.found(b)           # [thing]

Every object is a number; its lowest bit says that it is only hinted at, by an annotation, and stays with it
wherever it flows. Objects arrive in the order in which they are found, and only those that are new go on
(difference propagation). A rule waits at a node and is told the new ones. A node that has too many objects
takes no more and is noted as cut: no answer with a hundred candidates is of use to anybody.

Tests: `tests/unit/relate/test_solver.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

Object: TypeAlias = int
# What to call, and with what.
Rule: TypeAlias = tuple[Callable[..., None], tuple[Any, ...]]
MAX_OBJECTS = 48
WEAK = 1


class Solver:
    """The nodes, their edges and what is in them."""

    def __init__(self, limit: int = MAX_OBJECTS) -> None:
        self.limit = limit
        self.points_to: list[dict[Object, None] | None] = []
        self._edges: list[dict[int, None] | None] = []
        self._weak_edges: dict[int, dict[int, None]] = {}
        self._rules: dict[int, dict[Rule, None]] = {}
        self._pending: dict[int, list[Object]] = {}
        self._queue: deque[int] = deque()
        # Rules that are still to be told what was there when they came.
        self._tasks: deque[Rule] = deque()
        self.truncated: set[int] = set()

    def new_node(self) -> int:
        """A node with nothing in it."""
        self.points_to.append(None)
        self._edges.append(None)
        return len(self.points_to) - 1

    def reserve(self, count: int) -> int:
        """So many nodes; the number of the first."""
        first = len(self.points_to)
        self.points_to.extend([None] * count)
        self._edges.extend([None] * count)
        return first

    def add(self, node: int, obj: Object) -> None:
        """An object is in a node."""
        if node < 0:
            return
        found = self.points_to[node]
        if found is None:
            found = self.points_to[node] = {}
        elif obj in found:
            return
        if obj & WEAK and obj ^ WEAK in found:
            return
        if len(found) >= self.limit:
            self.truncated.add(node)
            return
        found[obj] = None
        if node in self._pending:
            self._pending[node].append(obj)
        else:
            self._pending[node] = [obj]
            self._queue.append(node)

    def flow(self, src: int, dst: int, weak: int = 0) -> None:
        """What is in one node is in the other; along a weak edge as a hint."""
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
        """Add objects, at least one and each once, no hint behind its object: here the time is spent."""
        found = self.points_to[node]
        if not found:
            new = list(objects)
            self.points_to[node] = dict.fromkeys(new)
        else:
            if node in self.truncated:
                return
            # Not in brackets: most are one thing, or none that is new.
            new = []
            for obj in objects:
                if obj in found or (obj & WEAK and obj ^ WEAK in found):
                    continue
                new.append(obj)
            if not new:
                return
            free = self.limit - len(found)
            if free < len(new):
                self.truncated.add(node)
                if not free:
                    return
                del new[free:]
            found.update(dict.fromkeys(new))
        if node in self._pending:
            self._pending[node] += new
        else:
            self._pending[node] = new
            self._queue.append(node)

    def subscribe(self, node: int, rule: Callable[..., None], *data: Any) -> None:
        """Tell a rule all objects of a node, now and later."""
        if node < 0:
            return
        rules = self._rules.get(node)
        if rules is None:
            rules = self._rules[node] = {}
        elif (rule, data) in rules:
            # A container that holds itself would be asked for ever.
            return
        rules[rule, data] = None
        found = self.points_to[node]
        if found:
            # Later, not here: a chain of rules may be longer than the stack is deep.
            self._tasks.append((rule, (list(found), *data)))

    def defer(self, rule: Callable[..., None], *data: Any) -> None:
        """Run a rule once."""
        self._tasks.append((rule, data))

    def run(self) -> None:
        """Until nothing changes."""
        tasks, queue, pour = self._tasks, self._queue, self._propagate
        while tasks or queue:
            if tasks:
                rule, told = tasks.popleft()
                rule(*told)
                continue
            node = queue.popleft()
            new = self._pending.pop(node)
            for dst in self._edges[node] or ():
                pour(dst, new)
            if node in self._weak_edges:
                hinted = as_hints(new)
                for dst in self._weak_edges[node]:
                    pour(dst, hinted)
            for rule, data in list(self._rules.get(node, ())):
                rule(new, *data)

    def objects_at(self, node: int) -> Sequence[Object]:
        """The objects in a node, those that are no hints if there are any."""
        objects = self.points_to[node] if node >= 0 else None
        return prefer_strong(objects) if objects else ()


def as_hints(objects: Iterable[Object]) -> list[Object]:
    """The objects as hints, each once.

    >>> hints([4, 7, 6])
    [5, 7]
    """
    return list(dict.fromkeys([obj | WEAK for obj in objects]))


def prefer_strong(objects: Iterable[Object]) -> list[Object]:
    """The objects that are no hints; if there are none, the hints.

    >>> best([4, 7]), best([7])
    ([4], [7])
    """
    listed = list(objects)
    strong = [obj for obj in listed if not obj & WEAK]
    return strong or listed
