"""Compute strongly connected components of a directed graph, and the shortest cycle in each.

    components({"a": ["b"], "b": ["a", "c"], "c": []})          # [["a", "b"]]: each reaches the others
    shortest_cycle(["a", "b"], {"a": ["b"], "b": ["a"]}, rank)  # ["a", "b"]: from a to b and back to a

Iterative, since a chain of imports may be longer than Python's stack. The result does not depend on the order
of the edges.

Tests: `tests/unit/query/test_verb_cycles.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, TypeAlias

Graph: TypeAlias = Mapping[str, Iterable[str]]


def components(graph: Graph) -> list[list[str]]:
    """Return the components of more than one node, each sorted, by Tarjan's algorithm."""
    groups: list[list[str]] = []
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    # Tarjan's stack: nodes whose component is not complete, in the order of discovery.
    open_nodes: dict[str, None] = {}
    for root in sorted(graph):
        if root in number:
            continue
        # The path from the root to the current node, each with the iterator over its remaining successors.
        path = [(root, iter(sorted(graph[root])))]
        number[root] = lowest[root] = len(number)
        open_nodes[root] = None
        while path:
            node, successors = path[-1]
            for to in successors:
                if to not in number:
                    path.append((to, iter(sorted(graph.get(to, ())))))
                    number[to] = lowest[to] = len(number)
                    open_nodes[to] = None
                    break
                if to in open_nodes:
                    lowest[node] = min(lowest[node], number[to])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == number[node]:
                    groups.append(_pop_component(open_nodes, node))
    return sorted(members for members in groups if len(members) > 1)


def _pop_component(open_nodes: dict[str, None], first: str) -> list[str]:
    """Remove the nodes from `first` to the top of the stack and return them sorted."""
    members = []
    while True:
        members.append(open_nodes.popitem()[0])
        if members[-1] == first:
            return sorted(members)


def shortest_cycle(members: Collection[str], graph: Graph, rank: Mapping[str, Any]) -> list[str]:
    """Return the shortest cycle within one component; of equally long ones the first by rank.

    Search breadth first from the node of the lowest rank, no deeper than the best cycle so far. That gives
    the shortest cycle through the node; then remove the node and repeat with the components that remain.
    """
    best: list[str] = []
    whole = set(members)
    steps = {node: sorted(whole.intersection(graph[node]) - {node}, key=rank.__getitem__) for node in whole}
    remaining = [(min(rank[node] for node in members), list(members))]
    while remaining and len(best) != 2:
        _, part = heappop(remaining)
        start = min(part, key=rank.__getitem__)
        inside = set(part)
        best = _cycle_through(start, steps, inside, len(best) - 1 if best else len(part)) or best
        inside.remove(start)
        for rest in components({node: inside.intersection(steps[node]) for node in inside}):
            heappush(remaining, (min(rank[node] for node in rest), rest))
    return best


def _cycle_through(start: str, steps: Mapping[str, list[str]], inside: set[str], longest: int) -> list[str]:
    """Return the shortest cycle through a node, of at most `longest` nodes; empty if there is none."""
    before: dict[str, str] = {}
    level = [start]
    for _ in range(longest):
        following = []
        for node in level:
            for to in steps[node]:
                if to == start:
                    walk = [node]
                    while walk[-1] != start:
                        walk.append(before[walk[-1]])
                    return walk[::-1]
                if to in inside and to not in before:
                    before[to] = node
                    following.append(to)
        level = following
    return []
