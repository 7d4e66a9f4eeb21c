"""Keep what the rows of resolution need of a file, so that its evidence is read only once.

    facts = collect_facts(context, lists)     # where the file is parsed
    FileFacts.unpack(facts.pack())            # where the relations of its repository are known

Most rows of a file's graph are made where it is parsed. What is left depends on other files: edges of
resolution, entry points, names that begin with that of the module (`graph.resolution`). These facts are a
hundredth of the evidence. Tests: `tests/unit/graph/test_resolution.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, msgpack

from codeanatomy.file_view import Columns, iter_rows
from codeanatomy.graph import types
from codeanatomy.graph.context import Context
from codeanatomy.graph.reads import SPAN
from codeanatomy.node_ids import UNPLACED

TYPING_ONLY, MAIN = "TYPE_CHECKING", "__name__"
# Lists of nodes that relations may have further ones of, by kind.
USES = {"NAME_REF": "names", "ATTRIBUTE_REF": "attributes", "CALLSITE": "calls"}


class Definition(NamedTuple):
    """A function or class, without lambdas, that has a span."""

    node_id: str
    kind: str
    name: str
    container_id: str
    bstart: int
    bend: int
    line: int | None


class Site(NamedTuple):
    """A call or a decorator, with the definition that it decorates."""

    node_id: str
    written: str | None
    bstart: int | None
    bend: int | None
    line: int | None
    owner_id: str | None = None


class Argument(NamedTuple):
    """An argument of a call; `text` if it is a string."""

    call_id: str
    # Among the arguments of the call.
    number: int
    keyword: str | None
    bstart: int
    bend: int
    text: str | None


class Block(NamedTuple):
    """The body of an `if` statement that tests `name`."""

    name: str
    bstart: int
    bend: int
    line: int | None


class GenericArgument(NamedTuple):
    """A type variable in brackets after a base class: `T` in `class Box(Generic[T])`."""

    # Reference that must lead to `Generic` or `Protocol`.
    base_id: str
    variable_id: str
    class_id: str | None
    ordinal: int
    bstart: int | None
    bend: int | None
    line: int | None


class FileFacts(Struct, frozen=True, array_like=True):
    """What the rows of resolution need of a file."""

    repo_id: str
    file_id: str
    path: str
    has_module: bool = False
    # Classes with their number of bases.
    classes: list[tuple[str, int | None]] = []
    # Uses at places that have an id and no node, and nodes whose ids are not numbers in their definition.
    unlisted: list[str] = []
    unnumbered: list[str] = []
    definitions: list[Definition] = []
    calls: list[Site] = []
    decorators: list[Site] = []
    # Encoded: few files register anything by arguments.
    arguments: msgspec.Raw = msgspec.Raw(b"\x90")
    blocks: list[Block] = []
    # Labels of strings such as `'web = shop.web:run'`, with the spans of these.
    labels: list[tuple[int, int, str]] = []
    generics: list[GenericArgument] = []
    # Lists about the repository, by name.
    shared: dict[str, dict[str, list[Any]]] = {}
    # Number of lists that failed.
    failures: int = 0

    def pack(self) -> bytes:
        """Encode the facts."""
        return msgpack.encode(self)

    @staticmethod
    def unpack(data: bytes | memoryview) -> FileFacts:
        """Decode facts."""
        return DECODER.decode(data)

    def call_arguments(self) -> list[Argument]:
        """Decode the arguments of calls."""
        return msgpack.decode(self.arguments, type=list[Argument])


DECODER = msgpack.Decoder(FileFacts)


def collect_facts(context: Context, lists: Mapping[str, Columns], shared: Mapping[str, Columns]) -> FileFacts:
    """Collect what resolution needs from the lists of a file, and from its syntax tree."""
    file = context.file
    made = {kind: set(lists.get(name, {}).get("node_id", ())) for kind, name in USES.items()}
    unnumbered = [each for ids in made.values() for each in ids if is_unnumbered(each)]
    unlisted = [each for kind, ids in made.items() for each in context.ids.of_kind(kind) if each not in ids]
    calls = [Site(*row) for row in iter_rows(lists.get("calls"), "node_id", "name", *SPAN)]
    decorators = [
        Site(*row) for row in iter_rows(lists.get("decorators"), "node_id", "name", *SPAN, "owner_id")
    ]
    return FileFacts(
        file.repo_id,
        file.file_id,
        file.path,
        context.has_module,
        list(iter_rows(lists.get("classes"), "node_id", "base_count")),
        unlisted,
        unnumbered,
        _definitions(context),
        calls,
        decorators,
        msgspec.Raw(msgpack.encode(_arguments(lists))),
        _if_blocks(context),
        _labels(context),
        [GenericArgument(*row) for row in types.generic_arguments(context)],
        {name: {key: list(cells) for key, cells in rows.items()} for name, rows in shared.items() if rows},
        len(context.failures),
    )


def is_unnumbered(node: str) -> bool:
    """Return whether an id is that of a node without a place in the source, or at one that no list has."""
    return "@" in node or node.endswith(UNPLACED)


def _definitions(context: Context) -> list[Definition]:
    unique = {each.node_id: each for each in context.definitions.values()}
    return [
        Definition(
            each.node_id, each.kind, each.name, each.container_id, each.bstart, each.bend or 0, each.line
        )
        for each in unique.values()
        if each.bstart is not None and each.subkind != "lambda"
    ]


def _arguments(lists: Mapping[str, Columns]) -> list[Argument]:
    texts = {
        (start, end): text
        for text, subkind, start, end in iter_rows(lists.get("literals"), "name", "subkind", "bstart", "bend")
        if subkind == "str"
    }
    columns = ("call_id", "index", "name", "bstart", "bend")
    rows = iter_rows(lists.get("arguments"), *columns)
    return [Argument._make((*row, texts.get((row[3], row[4])))) for row in rows]


def _if_blocks(context: Context) -> list[Block]:
    """Return the bodies of `if` statements that test `TYPE_CHECKING` or `__name__`."""
    syntax, blocks = context.syntax, []
    for node, name in enumerate(syntax.name):
        if name not in (TYPING_ONLY, MAIN) or syntax.kind[node] not in ("Name", "Attribute"):
            continue
        test, parent = node, syntax.parent[node]
        while parent is not None and syntax.kind[parent] in ("Compare", "BoolOp"):
            test, parent = parent, syntax.parent[parent]
        if parent is None or syntax.kind[parent] != "If" or syntax.slot[test] != "test":
            continue
        start, end = syntax.bstart[parent], syntax.bend[parent]
        for other in syntax.children(parent, "orelse")[:1]:
            end = syntax.bstart[other]
        if start is not None and end is not None:
            blocks.append(Block(name, start, end, syntax.line[node]))
    return blocks


def _labels(context: Context) -> list[tuple[int, int, str]]:
    """Return what stands before `=` in strings, with their spans: `web = shop.web:run` declares `web`."""
    syntax, labels = context.syntax, []
    for text, start, end in zip(syntax.value, syntax.bstart, syntax.bend, strict=True):
        if text is None or start is None or end is None or "=" not in text:
            continue
        label, _, target = text[1:-1].rpartition("=")
        if re.sub("[.:]", "_", target.strip()).isidentifier():
            labels.append((start, end, label.strip()))
    return labels
