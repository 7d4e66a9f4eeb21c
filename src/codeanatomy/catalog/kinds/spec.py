"""What a kind of the graph is: frozen structs, and nothing that runs.

>>> Prop("text", "string", "The comment.", required=True).type
'string'

Tests: `tests/unit/catalog/test_kinds.py`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Profile = Literal["default", "full"]
PropType = Literal["string", "int", "float", "bool", "json"]
# Whose change invalidates it: the file it stands in, any file of the repository, or for some the one and for
# others the other.
Owner = Literal["file", "repository", "either"]
# How many edges of a kind a node may have at this end.
Count = Literal["one", "at most one", "many"]
EVERYWHERE: tuple[Profile, ...] = ("default", "full")
FULL: tuple[Profile, ...] = ("full",)


class Prop(Struct, frozen=True, omit_defaults=True):
    """A property: a row of `cpg_props`, for what is no column."""

    name: str
    type: PropType
    doc: str
    # Every node or edge of the kind has it.
    required: bool = False


class Facts(Struct, frozen=True, omit_defaults=True):
    """A list of facts that a kind is made of."""

    of: str
    # Column or property -> field of the list, where the names differ.
    fields: dict[str, str] = {}


class NodeKind(Struct, frozen=True, omit_defaults=True):
    """A kind of node."""

    name: str
    family: str
    doc: str
    # Three lines of Python or fewer, in which such a node is.
    example: str
    # Tables it comes from.
    sources: tuple[str, ...]
    # The node's id: its prefix, and what is hashed.
    prefix: str
    key: tuple[str, ...]
    # The list of facts; each row is a node.
    made_of: Facts
    # What the columns say, where they say something.
    subkind: str = ""
    named: str = ""
    qualified: str = ""
    props: tuple[Prop, ...] = ()
    owner: Owner = "file"
    # Whether it has a span: always, sometimes or never.
    placed: Literal["always", "sometimes", "never"] = "always"
    profiles: tuple[Profile, ...] = EVERYWHERE


class Ends(Struct, frozen=True):
    """Kinds that an edge may lead from and to: every one of `src` with every one of `dst`."""

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
    # The list of facts; each row with both ends is an edge.
    made_of: Facts
    # Witness or rule family, and rule, where the facts do not say.
    origin: str = ""
    rule: str = ""
    # How many of them leave a node, and arrive at one, of the kinds above.
    per_src: Count = "many"
    per_dst: Count = "many"
    role: str = ""
    ordinal: str = ""
    props: tuple[Prop, ...] = ()
    owner: Owner = "file"
    profiles: tuple[Profile, ...] = EVERYWHERE
