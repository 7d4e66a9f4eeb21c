"""Strongly connected components of a directed graph, and the shortest way around in each.

    components({"a": ["b"], "b": ["a", "c"], "c": []})      # [["a", "b"]]: each of them reaches the others
    round_trip(["a", "b"], {"a": ["b"], "b": ["a"]}, rank)  # ["a", "b"]: from a to b, and from b back to a

Without recursion: a chain of imports may be longer than Python's stack. What comes out does not depend on the
order of the edges. Tests: `tests/unit/query/test_verb_cycles.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, TypeAlias

Graph: TypeAlias = Mapping[str, Iterable[str]]


def components(graph: Graph) -> list[list[str]]:
    """The sets of more than one node that reach each other, by Tarjan's algorithm, each sorted."""
    found: list[list[str]] = []
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    # Nodes whose component is not known yet, in the order in which they were met.
    open_nodes: dict[str, None] = {}
    for root in sorted(graph):
        if root in number:
            continue
        # From the root to the node that is being visited, and which successors of each are still to come.
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
                    found.append(_taken(open_nodes, node))
    return sorted(members for members in found if len(members) > 1)


def _taken(open_nodes: dict[str, None], first: str) -> list[str]:
    """The nodes from one on, which are open no more."""
    members = []
    while True:
        members.append(open_nodes.popitem()[0])
        if members[-1] == first:
            return sorted(members)


def round_trip(members: Collection[str], graph: Graph, rank: Mapping[str, Any]) -> list[str]:
    """The shortest closed walk through some nodes that all reach each other; of equals, the first by rank.

    Breadth first from the first node, no further than the best walk so far. Then the shortest walk through it
    is known, and what still goes in circles without it is looked at in the same way.
    """
    best: list[str] = []
    whole = set(members)
    steps = {node: sorted(whole.intersection(graph[node]) - {node}, key=rank.__getitem__) for node in whole}
    left = [(min(rank[node] for node in members), list(members))]
    while left and len(best) != 2:
        _, part = heappop(left)
        start = min(part, key=rank.__getitem__)
        inside = set(part)
        best = _back_to(start, steps, inside, len(best) - 1 if best else len(part)) or best
        inside.remove(start)
        for rest in components({node: inside.intersection(steps[node]) for node in inside}):
            heappush(left, (min(rank[node] for node in rest), rest))
    return best


def _back_to(start: str, steps: Mapping[str, list[str]], inside: set[str], longest: int) -> list[str]:
    """The shortest walk from a node back to it, of so many nodes at most; else nothing."""
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
