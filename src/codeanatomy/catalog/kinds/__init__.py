"""The kinds of nodes and edges of the graph: what they mean, and what they are made of.

>>> NODE_KINDS["CALLSITE"].key
('file_id', 'bstart', 'bend')
>>> EDGE_KINDS["HAS_ARGUMENT"].ends
(Ends(src=('CALLSITE',), dst=('ARGUMENT',)),)

A kind is one literal (`node_kinds`, `edge_kinds`). The graph stage emits what is declared here and nothing
else, `codeanatomy verify` checks every built graph against it, and `docs/kinds.md` is made from it. `made_of`
names lists of facts about a file, which are gathered in `codeanatomy.graph`: a row of the list is a node or
an edge, and its fields have the names of the columns that they become, unless `fields` says otherwise.

Tests: `tests/unit/catalog/test_kinds.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codeanatomy.catalog.kinds.edges import EDGES
from codeanatomy.catalog.kinds.nodes import NODES
from codeanatomy.catalog.kinds.spec import EdgeKind, Ends, NodeKind, Profile, Prop
from codeanatomy.errors import UnknownName

__all__ = [
    "EDGE_KINDS",
    "KINDS",
    "NODE_KINDS",
    "PROFILES",
    "EdgeKind",
    "Ends",
    "NodeKind",
    "Profile",
    "Prop",
    "kind",
]

PROFILES: Mapping[Profile, str] = {
    "default": "Everything but the kinds that are large and seldom asked for.",
    "full": "Every kind.",
}
NODE_KINDS: Mapping[str, NodeKind] = {each.name: each for each in NODES}
EDGE_KINDS: Mapping[str, EdgeKind] = {each.name: each for each in EDGES}
KINDS: Mapping[str, NodeKind | EdgeKind] = {**NODE_KINDS, **EDGE_KINDS}


def kind(name: str) -> NodeKind | EdgeKind:
    """The kind of that name, or an error that lists what exists."""
    if name not in KINDS:
        raise UnknownName("kind", name, KINDS)
    return KINDS[name]
