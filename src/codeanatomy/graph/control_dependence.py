"""Compute control dependence of the basic blocks of a code unit, by post-dominators.

    if a:           block 0    branch_true -> 1, branch_false -> 2
        f()         block 1    next -> 2
    g()             block 2    next -> 3, the exit

    >>> edges = [(0, 1, "branch_true"), (0, 2, "branch_false"), (1, 2, "next"), (2, 3, "next")]
    >>> control_dependence(4, edges, exit_block=3, limit=100).rows
    [Dependence(dependent=1, controlling=0, role='branch_true')]

A block post-dominates another if every path from that one to the exit leads through it; the nearest such
block is the parent in a tree with the exit as root. Where a block has several successors, an edge makes its
target and the target's parents depend on the branching block, up to the first block that runs whichever edge
is taken (Ferrante, Ottenstein, Warren 1987). The role is the kind of the edge. A block that decides whether
it runs again depends on itself.

Exceptions. Any call may raise. If that were a branch like others, all code would depend on every call before
it, so the tree is built without `exception` edges; they only create dependents:

- A handler, and what runs only because of it, depends on the blocks that may raise into it.
- Code after a call does not depend on the call for not having raised.
- A block that can only raise does not branch: its `exception` edge is an edge of the tree, to the handler or
  to the exit. After `if a: raise E` the code depends on `a`, as it does after `if a: return`. The test of an
  `except E` is such an `if` as well, for what does not match is raised again, and so is the end of a `with`;
  what follows them depends on them by `branch_true`.

No path to the exit. `while True` without `break` has none, and such blocks would be in no tree. The one with
the greatest number is given an edge to the exit, until none is left. Such an edge is no branch.

Unreachable code neither depends nor is depended on.

Size. The tree takes O(edges * log(blocks)) time. The rows can be branches times blocks: n times `except E`
(or `with`) one after the other are n branches, each of which controls all code that follows, and so do n
operands of an `or` for the blocks under it. A chain of n `elif` or of n `if: return` is n rows. So there is
a `limit`: all edges are followed by one block in turn, and when the limit is reached, the rows so far are
kept, which are the dependents nearest to a branch.

Tests: `tests/unit/graph/test_control_dependence.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

EXCEPTION = "exception"
NONE = -1

Edge: TypeAlias = tuple[int, int, str]
# By block: its successors, or its predecessors.
Links: TypeAlias = list[list[int]]


class Dependence(NamedTuple):
    """Whether `dependent` runs is decided at the end of `controlling`, by an edge of the kind `role`."""

    dependent: int
    controlling: int
    role: str


class Dependences(NamedTuple):
    """The distinct rows of a unit in order; `is_cut` if there are more than the limit."""

    rows: list[Dependence]
    is_cut: bool


class PostDominatorTree(NamedTuple):
    """The post-dominator tree. By block: the parent (NONE for the root), the number in preorder, and the size
    of its subtree.
    """

    parent: list[int]
    preorder: list[int]
    size: list[int]

    def is_above(self, one: int, other: int) -> bool:
        """Return whether one block strictly post-dominates the other."""
        return self.preorder[one] < self.preorder[other] < self.preorder[one] + self.size[one]


def control_dependence(size: int, edges: Sequence[Edge], exit_block: int, limit: int) -> Dependences:
    """Return the control dependences of blocks `0..size-1`, from edges (source, destination, kind).

    Block 0 is the entry. No edge leaves the exit.
    """
    reachable = _reachable_edges(size, edges)
    successors = _normal_successors(size, reachable)
    branches = [
        Dependence(to, source, role)
        for source, to, role in reachable
        if any(other != to for other in successors[source])
    ]
    if not branches:
        # Code in a straight line: the tree is not needed.
        return Dependences([], is_cut=False)
    tree = _post_dominators(_connect_to_exit(successors, exit_block), exit_block)
    return _follow_branches(branches, tree, limit)


def _follow_branches(branches: list[Dependence], tree: PostDominatorTree, limit: int) -> Dependences:
    """Return the branches and their parents in the tree, up to post-dominators of the branching block."""
    rows: set[Dependence] = set()
    while branches:
        parents = []
        for branch in branches:
            dependent, controlling, role = branch
            # Two edges of one role that have met continue as one.
            if branch in rows or tree.is_above(dependent, controlling):
                continue
            if len(rows) == limit:
                return Dependences(sorted(rows), is_cut=True)
            rows.add(branch)
            parents.append(Dependence(tree.parent[dependent], controlling, role))
        branches = parents
    return Dependences(sorted(rows), is_cut=False)


def _reachable_edges(size: int, edges: Sequence[Edge]) -> list[Edge]:
    """Return the distinct edges that are reachable from the entry, in order."""
    leaving: Links = [[] for _ in range(size)]
    for source, to, _ in edges:
        leaving[source].append(to)
    seen = [False] * size
    _mark_reachable(leaving, 0, seen)
    return sorted({edge for edge in edges if seen[edge[0]]})


def _mark_reachable(links: Links, start: int, seen: list[bool]) -> None:
    """Mark a block and all blocks reachable from it that are not marked yet."""
    seen[start] = True
    waiting = [start]
    while waiting:
        for other in links[waiting.pop()]:
            if not seen[other]:
                seen[other] = True
                waiting.append(other)


def _normal_successors(size: int, edges: list[Edge]) -> Links:
    """Return the successors of blocks that do not raise; the handlers of blocks that can only raise."""
    leaving: Links = [[] for _ in range(size)]
    raising: Links = [[] for _ in range(size)]
    for source, to, kind in edges:
        (raising if kind == EXCEPTION else leaving)[source].append(to)
    return [plain or raised for plain, raised in zip(leaving, raising, strict=True)]


def _connect_to_exit(leaving: Links, exit_block: int) -> Links:
    """Add an edge to the exit for the last block that does not reach it, until all do."""
    entering = _reverse(leaving)
    seen = [False] * len(leaving)
    _mark_reachable(entering, exit_block, seen)
    added = set()
    for block in reversed(range(len(leaving))):
        if not seen[block]:
            added.add(block)
            _mark_reachable(entering, block, seen)
    return [[*links, exit_block] if block in added else links for block, links in enumerate(leaving)]


def _reverse(links: Links) -> Links:
    reversed_links: Links = [[] for _ in links]
    for block, others in enumerate(links):
        for other in others:
            reversed_links[other].append(block)
    return reversed_links


def _post_dominators(leaving: Links, exit_block: int) -> PostDominatorTree:
    """Build the tree of blocks that all reach the exit (Lengauer, Tarjan 1979, with path compression).

    Blocks are numbered by a depth-first search from the exit against the edges.
    """
    order, above = _depth_first(_reverse(leaving), exit_block)
    size = len(order)
    number = [0] * size
    for index, block in enumerate(order):
        number[block] = index
    forest = Forest(list(range(size)), list(range(size)), [NONE] * size)
    lowest = forest.lowest
    parent = [0] * size
    waiting: Links = [[] for _ in range(size)]
    for index in range(size - 1, 0, -1):
        lowest[index] = min(lowest[forest.best(number[to])] for to in leaving[order[index]])
        waiting[lowest[index]].append(index)
        forest.above[index] = above[index]
        for other in waiting[above[index]]:
            best = forest.best(other)
            parent[other] = best if lowest[best] < lowest[other] else above[index]
        waiting[above[index]].clear()
    for index in range(1, size):
        if parent[index] != lowest[index]:
            parent[index] = parent[parent[index]]
    return _tree(order, parent)


class Forest(NamedTuple):
    """The processed part of the search tree, by number: `lowest` is the semidominator; `above` an ancestor,
    compressed past visited blocks; `label` the block with the lowest semidominator among those skipped.
    """

    lowest: list[int]
    label: list[int]
    above: list[int]

    def best(self, number: int) -> int:
        """Return the block with the lowest semidominator from here up, without the root."""
        lowest, label, above = self
        path = []
        current = number
        while above[current] != NONE and above[above[current]] != NONE:
            path.append(current)
            current = above[current]
        for step in reversed(path):
            if lowest[label[above[step]]] < lowest[label[step]]:
                label[step] = label[above[step]]
            above[step] = above[above[step]]
        return label[number]


def _depth_first(links: Links, root: int) -> tuple[list[int], list[int]]:
    """Return the blocks in preorder, and the number of the block that each was reached from."""
    order, above = [root], [NONE]
    seen = [False] * len(links)
    seen[root] = True
    stack = [(0, iter(links[root]))]
    while stack:
        parent, others = stack[-1]
        for other in others:
            if not seen[other]:
                seen[other] = True
                stack.append((len(order), iter(links[other])))
                order.append(other)
                above.append(parent)
                break
        else:
            stack.pop()
    return order, above


def _tree(order: list[int], parents: list[int]) -> PostDominatorTree:
    """Return the tree by blocks; a parent has a smaller number than its children."""
    size = len(order)
    sizes = [1] * size
    for number in range(size - 1, 0, -1):
        sizes[parents[number]] += sizes[number]
    preorder, free = [0] * size, [1] * size
    for number in range(1, size):
        above = parents[number]
        preorder[number] = free[above]
        free[above] += sizes[number]
        free[number] = preorder[number] + 1
    tree = PostDominatorTree([NONE] * size, [0] * size, [0] * size)
    for number, block in enumerate(order):
        tree.parent[block] = order[parents[number]] if number else NONE
        tree.preorder[block] = preorder[number]
        tree.size[block] = sizes[number]
    return tree
