"""Define the struct types that node and edge kinds are written in.

>>> Prop("text", "string", "The comment.", required=True).type
'string'

Tests: `tests/unit/catalog/test_kinds.py`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Profile = Literal["default", "full"]
PropType = Literal["string", "int", "float", "bool", "json"]
# Scope of invalidation: a change of the file it is in, of any file of the repository, or either of them,
# depending on the node or edge.
Owner = Literal["file", "repository", "either"]
# Number of edges of a kind that a node may have at one end.
Count = Literal["one", "at most one", "many"]
ALL_PROFILES: tuple[Profile, ...] = ("default", "full")
FULL_ONLY: tuple[Profile, ...] = ("full",)


class Prop(Struct, frozen=True, omit_defaults=True):
    """A property: a row of `cpg_props`, for values without a column."""

    name: str
    type: PropType
    doc: str
    # True if every node or edge of the kind has it.
    required: bool = False


class Facts(Struct, frozen=True, omit_defaults=True):
    """The list of facts that nodes or edges of a kind are made from."""

    of: str
    # Field of the list by column or property name, where the names differ.
    fields: dict[str, str] = {}


class NodeKind(Struct, frozen=True, omit_defaults=True):
    """A kind of node."""

    name: str
    family: str
    doc: str
    # At most three lines of Python that contain such a node.
    example: str
    # Tables it is derived from.
    sources: tuple[str, ...]
    # Prefix of the node id, and what follows it: a definition key with a name or number, or a natural key.
    prefix: str
    key: tuple[str, ...]
    # List of facts; each row becomes a node.
    made_of: Facts
    # Meaning of the columns subkind, name and qualname; empty if they are null.
    subkind: str = ""
    named: str = ""
    qualified: str = ""
    # Whether qualified names begin with the name of the module, which other files decide.
    in_module: bool = False
    props: tuple[Prop, ...] = ()
    owner: Owner = "file"
    # Whether nodes have a span: always, sometimes or never.
    placed: Literal["always", "sometimes", "never"] = "always"
    profiles: tuple[Profile, ...] = ALL_PROFILES


class Ends(Struct, frozen=True):
    """Allowed node kinds at the ends of an edge: any of `src` with any of `dst`."""

    src: tuple[str, ...]
    dst: tuple[str, ...]


class EdgeKind(Struct, frozen=True, omit_defaults=True):
    """A kind of edge."""

    name: str
    family: str
    doc: str
    example: str
    sources: tuple[str, ...]
    ends: tuple[Ends, ...]
    # List of facts; each row with both ends becomes an edge.
    made_of: Facts
    # Values of `origin` (witness or rule family) and `rule_name`, unless the facts have them.
    origin: str = ""
    rule: str = ""
    # Cardinality: edges of this kind per source node and per target node.
    per_src: Count = "many"
    per_dst: Count = "many"
    # Meaning of the columns role and ordinal; empty if they are null.
    role: str = ""
    ordinal: str = ""
    props: tuple[Prop, ...] = ()
    owner: Owner = "file"
    profiles: tuple[Profile, ...] = ALL_PROFILES
