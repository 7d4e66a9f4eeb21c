"""Which blocks of a code unit decide whether others run: control dependence, by post-dominators.

    if a:           block 0    branch_true -> 1, branch_false -> 2
        f()         block 1    next -> 2
    g()             block 2    next -> 3, the exit

    >>> edges = [(0, 1, "branch_true"), (0, 2, "branch_false"), (1, 2, "next"), (2, 3, "next")]
    >>> control_dependence(4, edges, exit_block=3, limit=100).rows
    [Dependence(dependent=1, controlling=0, role='branch_true')]

A block post-dominates another if every way from that one to the exit leads through it; the nearest such block
is the parent in a tree whose root is the exit. Where a block may as well go elsewhere, a way makes its first
block and that one's parents depend on the block that chose, up to the first block that runs whatever is
chosen (Ferrante, Ottenstein, Warren 1987). The role is the kind of the edge. A block that chooses whether it
runs again depends on itself.

Exceptions. Any call may raise. If that were a choice like others, all code would depend on every call before
it, so the tree is made without `exception` edges; they only make dependents:

- A handler, and what runs only because of it, depends on the blocks that may raise into it.
- Code after a call does not depend on the call for not having raised.
- A block that can only raise makes no choice: its `exception` edge is an edge of the tree, to the handler or
  to the exit. After `if a: raise E` the code depends on `a`, as it does after `if a: return`. The test of an
  `except E` is such an `if` as well, for what does not match is raised again, and so is the end of a `with`;
  what follows them depends on them by `branch_true`.

No way to the exit. `while True` without `break` has none, and such blocks would be in no tree. The one with
the greatest number is given an edge to the exit, until none is left. No choice is made by such an edge.

Code that nothing leads to neither depends nor is depended on.

Size. The tree takes O(edges * log(blocks)) time. The rows are as many as there are, and that may be choices
times blocks: n times `except E` (or `with`) one after the other are n choices, each of them about all code
that follows, and so are n operands of an `or` about the blocks under it. A chain of n `elif` or of n
`if: return` is n rows. So there is a `limit`: all ways are followed by one block in turn, and when the limit
is reached, the rows that there are stay, the dependents that are nearest to a choice.

Tests: `tests/unit/graph/test_control_dependence.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

EXCEPTION = "exception"
NONE = -1

Edge: TypeAlias = tuple[int, int, str]
# By block: the blocks it leads to, or those that lead to it.
Links: TypeAlias = list[list[int]]


class Dependence(NamedTuple):
    """Whether `dependent` runs is decided at the end of `controlling`, by a way of the kind `role`."""

    dependent: int
    controlling: int
    role: str


class Dependences(NamedTuple):
    """The rows of a unit in order, each once; `is_cut` if there are more than the limit."""

    rows: list[Dependence]
    is_cut: bool


class Tree(NamedTuple):
    """The post-dominator tree. By block: the parent, which the root has not; the place in preorder; how many
    blocks the tree below has, itself included.
    """

    parent: list[int]
    place: list[int]
    weight: list[int]

    def is_above(self, one: int, other: int) -> bool:
        """Whether one block strictly post-dominates the other."""
        return self.place[one] < self.place[other] < self.place[one] + self.weight[one]


def control_dependence(size: int, edges: Sequence[Edge], exit_block: int, limit: int) -> Dependences:
    """The control dependences of blocks `0..size-1`, from edges (source, destination, kind).

    Block 0 is the entry. Nothing leaves the exit.
    """
    ways = _alive(size, edges)
    certain = _certain(size, ways)
    tree = _post_dominators(_to_the_exit(certain, exit_block), exit_block)
    choices = [
        Dependence(to, source, role)
        for source, to, role in ways
        if any(other != to for other in certain[source])
    ]
    return _followed(choices, tree, limit)


def _followed(choices: list[Dependence], tree: Tree, limit: int) -> Dependences:
    """All choices and their parents in the tree, as far as these are not above the block that chose."""
    found: set[Dependence] = set()
    while choices:
        further = []
        for choice in choices:
            dependent, controlling, role = choice
            # Two ways of one role that have met go on as one.
            if choice in found or tree.is_above(dependent, controlling):
                continue
            if len(found) == limit:
                return Dependences(sorted(found), is_cut=True)
            found.add(choice)
            further.append(Dependence(tree.parent[dependent], controlling, role))
        choices = further
    return Dependences(sorted(found), is_cut=False)


def _alive(size: int, edges: Sequence[Edge]) -> list[Edge]:
    """The edges that the entry leads to, in order and each once."""
    leaving: Links = [[] for _ in range(size)]
    for source, to, _ in edges:
        leaving[source].append(to)
    seen = [False] * size
    _flood(leaving, 0, seen)
    return sorted({edge for edge in edges if seen[edge[0]]})


def _flood(links: Links, start: int, seen: list[bool]) -> None:
    """Mark a block and all that it leads to, as far as they are not marked yet."""
    seen[start] = True
    waiting = [start]
    while waiting:
        for other in links[waiting.pop()]:
            if not seen[other]:
                seen[other] = True
                waiting.append(other)


def _certain(size: int, ways: list[Edge]) -> Links:
    """Where blocks go if they do not raise, unless they can do nothing else."""
    leaving: Links = [[] for _ in range(size)]
    raising: Links = [[] for _ in range(size)]
    for source, to, kind in ways:
        (raising if kind == EXCEPTION else leaving)[source].append(to)
    return [plain or raised for plain, raised in zip(leaving, raising, strict=True)]


def _to_the_exit(leaving: Links, exit_block: int) -> Links:
    """The links, and one to the exit for the last block that does not reach it, until all do."""
    entering = _turned(leaving)
    seen = [False] * len(leaving)
    _flood(entering, exit_block, seen)
    added = set()
    for block in reversed(range(len(leaving))):
        if not seen[block]:
            added.add(block)
            _flood(entering, block, seen)
    return [[*links, exit_block] if block in added else links for block, links in enumerate(leaving)]


def _turned(links: Links) -> Links:
    turned: Links = [[] for _ in links]
    for block, others in enumerate(links):
        for other in others:
            turned[other].append(block)
    return turned


def _post_dominators(leaving: Links, exit_block: int) -> Tree:
    """The tree of blocks that all reach the exit (Lengauer, Tarjan 1979, with path compression).

    Blocks go by their numbers in a depth-first search from the exit against the edges.
    """
    order, above = _deep_first(_turned(leaving), exit_block)
    size = len(order)
    number = [0] * size
    for place, block in enumerate(order):
        number[block] = place
    forest = Forest(list(range(size)), list(range(size)), [NONE] * size)
    lowest = forest.lowest
    parent = [0] * size
    waiting: Links = [[] for _ in range(size)]
    for place in range(size - 1, 0, -1):
        lowest[place] = min(lowest[forest.best(number[to])] for to in leaving[order[place]])
        waiting[lowest[place]].append(place)
        forest.above[place] = above[place]
        for other in waiting[above[place]]:
            best = forest.best(other)
            parent[other] = best if lowest[best] < lowest[other] else above[place]
        waiting[above[place]].clear()
    for place in range(1, size):
        if parent[place] != lowest[place]:
            parent[place] = parent[parent[place]]
    return _tree(order, parent)


class Forest(NamedTuple):
    """The part of the search tree that is done, by number: `lowest` is the semidominator; `above` is on the
    way up, and skips what has been looked at; `label` has the lowest semidominator of what was skipped.
    """

    lowest: list[int]
    label: list[int]
    above: list[int]

    def best(self, place: int) -> int:
        """The block with the lowest semidominator from here up, the top left out."""
        lowest, label, above = self
        way = []
        here = place
        while above[here] != NONE and above[above[here]] != NONE:
            way.append(here)
            here = above[here]
        for step in reversed(way):
            if lowest[label[above[step]]] < lowest[label[step]]:
                label[step] = label[above[step]]
            above[step] = above[above[step]]
        return label[place]


def _deep_first(links: Links, root: int) -> tuple[list[int], list[int]]:
    """The blocks in preorder, and the number of the one that each was found from."""
    order, above = [root], [NONE]
    seen = [False] * len(links)
    seen[root] = True
    open_blocks = [(0, iter(links[root]))]
    while open_blocks:
        place, others = open_blocks[-1]
        for other in others:
            if not seen[other]:
                seen[other] = True
                open_blocks.append((len(order), iter(links[other])))
                order.append(other)
                above.append(place)
                break
        else:
            open_blocks.pop()
    return order, above


def _tree(order: list[int], parents: list[int]) -> Tree:
    """The tree by blocks; a parent has a smaller number than its children."""
    size = len(order)
    weights = [1] * size
    for number in range(size - 1, 0, -1):
        weights[parents[number]] += weights[number]
    places, free = [0] * size, [1] * size
    for number in range(1, size):
        above = parents[number]
        places[number] = free[above]
        free[above] += weights[number]
        free[number] = places[number] + 1
    tree = Tree([NONE] * size, [0] * size, [0] * size)
    for number, block in enumerate(order):
        tree.parent[block] = order[parents[number]] if number else NONE
        tree.place[block] = places[number]
        tree.weight[block] = weights[number]
    return tree
