"""Declare the node and edge kinds of the graph: meaning, identity, allowed ends and inputs.

    edges  edge kind literals, by family
    nodes  node kind literals, by family
    spec   struct types that kinds are written in

>>> NODE_KINDS["CALLSITE"].key
('definition', 'number')
>>> EDGE_KINDS["HAS_ARGUMENT"].ends
(Ends(src=('CALLSITE',), dst=('ARGUMENT',)),)

A kind is one literal. The graph stage emits only declared kinds, `codeanatomy verify` checks every built
graph against the declarations, and `docs/kinds.md` is generated from them. `made_of` names a list of facts
about a file, which `codeanatomy.graph` collects: each row of the list becomes a node or an edge, and its
fields have the names of the graph columns unless `Facts.fields` maps them.

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
    "default": "All kinds except those that are large and rarely queried.",
    "full": "All kinds.",
}
NODE_KINDS: Mapping[str, NodeKind] = {each.name: each for each in NODES}
EDGE_KINDS: Mapping[str, EdgeKind] = {each.name: each for each in EDGES}
KINDS: Mapping[str, NodeKind | EdgeKind] = {**NODE_KINDS, **EDGE_KINDS}


def kind(name: str) -> NodeKind | EdgeKind:
    """Return the kind called `name`; raise UnknownName, which lists the known kinds."""
    if name not in KINDS:
        raise UnknownName("kind", name, KINDS)
    return KINDS[name]
