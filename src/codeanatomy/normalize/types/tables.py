"""The types of a file: `type_exprs_norm_v1`, one row per annotation, and `type_nodes_v1`, one per part of it.

    from typing import Optional
    def f(x: Optional[int]): ...

    type_exprs_norm_v1      param x      Optional[int]      int | None
    type_nodes_v1           0 union      int | None         Optional[int]
                            1 name       int                int
                            2 none       None               (no place)

Both are made from `TypeExpr`s, so that a text is read once. Spans of parts are within that of the type, and
the text under a span is the part's, without quotes; the whole has its own span there too, which may be less
than the row's: in a comment `int  # noqa` it is that of `int`.

A comment that gives a function's whole signature becomes one row per parameter and one for the result. It is
matched with the parameters by their order; the first parameter of a method may be missing. If the numbers or
the stars do not fit, the parameters' rows have no name. `(...)` says nothing of parameters, and what CPython
does not take for a signature is one row with the role `signature`.

Kinds of parts and the normal form: `type_text`. Names: `type_names`. Tests: `tests/unit/normalize/test_type_tables.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from msgspec import Struct

from codeanatomy.ids import stable_id
from codeanatomy.normalize.file_view import Columns, File, columns_of
from codeanatomy.normalize.types.names import LISTS, Scope, Scopes, Span
from codeanatomy.normalize.types.text import Part, Piece, read_signature, read_type

# What is read of `libcst_files_v1`, by list.
LIBCST_LISTS: Mapping[str, tuple[str, ...]] = {
    **LISTS,
    "type_exprs": ("owner_bstart", "owner_bend", "kind", "role", "name", "text", "bstart", "bend", "line"),
    "defs": (*LISTS["defs"], "container_kind", "decorators"),
    "params": (*LISTS["params"], "kind", "index"),
}
STARS = {"vararg": 1, "kwarg": 2}


# Owner, kind, role, name, text, place and line of a type.
Annotation: TypeAlias = tuple[Span | None, str, str, str | None, str, int, int, int]


class TypeIds(dict[str, str]):
    """Ids of the types of a repository, by what makes them equal."""

    def __init__(self, repo_id: str) -> None:
        super().__init__()
        self._repo_id = repo_id

    def __missing__(self, identity: str) -> str:
        """Most types of a file are few, and hashing takes longer than to look them up."""
        self[identity] = stable_id("type", self._repo_id, identity)
        return self[identity]


class TypeExpr(Struct, frozen=True):
    """A type at its place in a file, as read."""

    expr_id: str
    kind: str
    role: str
    owner: Span | None
    name: str | None
    text: str
    bstart: int
    bend: int
    line: int
    type: Part
    type_ids: TypeIds


def type_expressions(file: File) -> list[TypeExpr]:
    """The annotations and type comments of a file, read; none where LibCST could not read the file."""
    if not (file.libcst.get("type_exprs") or {}).get("text"):
        return []
    scopes, type_ids = Scopes(file), TypeIds(file.repo_id)
    seen: Counter[tuple[object, ...]] = Counter()
    # By scope and text: the same few types are everywhere.
    read: dict[tuple[Scope, str], Part] = {}
    found: list[TypeExpr] = []
    for owner, kind, role, name, text, bstart, bend, line in _annotations(file):
        scope = scopes.body(owner) if role in {"variable", "attribute"} else scopes.header(owner)
        if (scope, text) not in read:
            read[scope, text] = read_type(text, scope)
        key = (bstart, bend, role)
        # No two have one place; if ever, they are told apart by their order.
        again = seen[key] or None
        seen[key] += 1
        expr_id = stable_id("type_expr", file.file_id, *key, again)
        part = read[scope, text]
        found.append(TypeExpr(expr_id, kind, role, owner, name, text, bstart, bend, line, part, type_ids))
    return found


def type_exprs_norm_v1(found: Sequence[TypeExpr]) -> Columns:
    """One row per annotation or type comment, with the type it means."""
    return {
        "expr_id": [expr.expr_id for expr in found],
        "expr_kind": [expr.kind for expr in found],
        "expr_role": [expr.role for expr in found],
        "owner_bstart": [expr.owner[0] if expr.owner else None for expr in found],
        "owner_bend": [expr.owner[1] if expr.owner else None for expr in found],
        "target_name": [expr.name for expr in found],
        "expr_text": [expr.text for expr in found],
        "type_id": [expr.type_ids[expr.type.identity] for expr in found],
        "type_repr": [expr.type.repr for expr in found],
        "bstart": [expr.bstart for expr in found],
        "bend": [expr.bend for expr in found],
        "line": [expr.line for expr in found],
    }


def type_nodes_v1(found: Sequence[TypeExpr]) -> Columns:
    """One row per part of a type, in preorder."""
    return columns_of("type_nodes_v1", [row for expr in found for row in _nodes(expr)])


def _nodes(expr: TypeExpr) -> Iterator[tuple[Any, ...]]:
    ahead: list[tuple[int | None, int | None, Part]] = [(None, None, expr.type)]
    index = 0
    while ahead:
        parent, arg_index, part = ahead.pop()
        start, end = part.span or (None, None)
        yield (
            expr.expr_id,
            index,
            parent,
            arg_index,
            expr.type_ids[part.identity],
            part.kind,
            part.name,
            part.is_qualified,
            part.repr,
            None if start is None else expr.bstart + start,
            None if end is None else expr.bstart + end,
        )
        ahead += [(index, number, arg) for number, arg in enumerate(part.args)][::-1]
        index += 1


# Annotations, with signatures taken apart.


def _annotations(file: File) -> Iterator[Annotation]:
    columns = file.libcst["type_exprs"]
    params: _Params | None = None
    rows = zip(*(columns[field] for field in LIBCST_LISTS["type_exprs"]), strict=True)
    for start, end, kind, role, name, text, bstart, bend, line in rows:
        row = (None if start is None else (start, end), kind, role, name, text, bstart, bend, line)
        if role == "signature":
            params = params or _Params(file)
            yield from _signature(row, params)
        else:
            yield row


def _signature(whole: Annotation, params: _Params) -> Iterator[Annotation]:
    owner, kind, _, _, text, bstart, _, line = whole
    signature = read_signature(text)
    if signature is None:
        yield whole
        return
    utf8 = text.encode()

    def annotation(role: str, name: str | None, piece: Piece) -> Annotation:
        inside = utf8[piece.start : piece.end].decode()
        # A comment has one line.
        return owner, kind, role, name, inside, bstart + piece.start, bstart + piece.end, line

    pieces = signature.params or ()
    for name, piece in zip_longest(params.named(owner, [piece.stars for piece in pieces]), pieces):
        yield annotation("param", name, piece)
    yield annotation("return", None, signature.result)


class _Params:
    """The parameters of the functions of a file."""

    def __init__(self, file: File) -> None:
        self._params: defaultdict[Span, list[tuple[int, str, int]]] = defaultdict(list)
        params, defs = file.libcst["params"], file.libcst["defs"]
        for start, end, name, _, kind, index in zip(
            *(params[field] for field in LIBCST_LISTS["params"]), strict=True
        ):
            self._params[start, end].append((index, name, STARS.get(kind, 0)))
        self._methods = {
            (start, end)
            for start, end, container, decorators in zip(
                defs["def_bstart"], defs["def_bend"], defs["container_kind"], defs["decorators"], strict=True
            )
            if container == "class" and "staticmethod" not in decorators
        }

    def named(self, owner: Span | None, stars: Sequence[int]) -> list[str]:
        """The parameters that types with so many stars are of; none if they do not fit."""
        if owner is None:
            return []
        params = sorted(self._params[owner])
        if len(params) == len(stars) + 1 and owner in self._methods:
            params = params[1:]
        fits = [star for _, _, star in params] == list(stars)
        return [name for _, name, _ in params] if fits else []
