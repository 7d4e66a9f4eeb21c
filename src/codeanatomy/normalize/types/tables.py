"""Build the type tables of a file: `type_exprs_norm_v1` per annotation, `type_nodes_v1` per part of a type.

    from typing import Optional
    def f(x: Optional[int]): ...

    type_exprs_norm_v1      param x      Optional[int]      int | None
    type_nodes_v1           0 union      int | None         Optional[int]
                            1 name       int                int
                            2 none       None               (no span)

Both are made from `TypeExpr`s, so that a text is parsed once. Spans of parts are within that of the type, and
the text under a span is the part's, without quotes; the whole has its own span there too, which may be less
than the row's: in a comment `int  # noqa` it is that of `int`.

A comment with a function's whole signature becomes one row per parameter and one for the result. Its types
are matched with the parameters by order; the first parameter of a method may be missing. If the numbers or
the stars do not match, the rows of parameters have no name. `(...)` gives no types of parameters, and a
comment that CPython does not accept as a signature is one row with the role `signature`.

Kinds of parts and the normal form: `text`. Names: `names`. Tests: `tests/unit/normalize/test_type_tables.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from msgspec import Struct

from codeanatomy.file_view import LIBCST, Columns, FileView, iter_rows
from codeanatomy.node_ids import natural_id
from codeanatomy.normalize.table_rows import table_columns
from codeanatomy.normalize.types.names import LISTS, Span, TypeScope, TypeScopes
from codeanatomy.normalize.types.text import SignatureType, TypePart, read_signature, read_type

# The fields read of `libcst_files_v1`, by list.
LIBCST_LISTS: Mapping[str, tuple[str, ...]] = {
    **LISTS,
    "type_exprs": ("owner_bstart", "owner_bend", "kind", "role", "name", "text", "bstart", "bend", "line"),
    "defs": (*LISTS["defs"], "line", "container_kind", "decorators"),
    "params": (*LISTS["params"], "kind", "index"),
}
# Stars before the type of a parameter in a signature comment, by kind of parameter.
STARS = {"vararg": 1, "kwarg": 2}

# Owner, kind, role, name, text, span and line of a type.
Annotation: TypeAlias = tuple[Span | None, str, str, str | None, str, int, int, int]


# Marks in identities (`names.LOCAL`, `names.RELATIVE`, `text.HASHED`) as they are written in ids.
MARKS = {mark: f"%{mark:02}" for mark in (1, 2, 3)}


class TypeIds(dict[str, str]):
    """Cache of the ids of the types of a repository, by their identity."""

    def __init__(self, repo_id: str) -> None:
        super().__init__()
        self._repo_id = repo_id

    def __missing__(self, identity: str) -> str:
        """Make the id of a type once: the same few types are used again and again in a file."""
        self[identity] = natural_id("TYPE", self._repo_id, identity).translate(MARKS)
        return self[identity]


class TypeExpr(Struct, frozen=True):
    """An annotation or type comment of a file, parsed."""

    expr_id: str
    kind: str
    role: str
    owner: Span | None
    name: str | None
    text: str
    bstart: int
    bend: int
    line: int
    type: TypePart
    type_ids: TypeIds


def type_expressions(file: FileView) -> list[TypeExpr]:
    """Parse the annotations and type comments of a file; none if LibCST could not read the file."""
    if not file.list(LIBCST, "type_exprs").get("text"):
        return []
    scopes, type_ids = TypeScopes(file), TypeIds(file.repo_id)
    # By scope and text: the same few types are used everywhere.
    parsed: dict[tuple[TypeScope, str], TypePart] = {}
    exprs: list[TypeExpr] = []
    annotations = list(_annotations(file))
    ids = file.ids.numbered("TYPE_EXPR", [annotation[5:7] for annotation in annotations])
    for expr_id, annotation in zip(ids, annotations, strict=True):
        owner, kind, role, name, text, bstart, bend, line = annotation
        scope = scopes.body(owner) if role in {"variable", "attribute"} else scopes.header(owner)
        if (scope, text) not in parsed:
            parsed[scope, text] = read_type(text, scope)
        part = parsed[scope, text]
        exprs.append(TypeExpr(expr_id, kind, role, owner, name, text, bstart, bend, line, part, type_ids))
    return exprs


def type_exprs_norm_v1(exprs: Sequence[TypeExpr]) -> Columns:
    """Return one row per annotation or type comment, with the type it denotes."""
    return {
        "expr_id": [expr.expr_id for expr in exprs],
        "expr_kind": [expr.kind for expr in exprs],
        "expr_role": [expr.role for expr in exprs],
        "owner_bstart": [expr.owner[0] if expr.owner else None for expr in exprs],
        "owner_bend": [expr.owner[1] if expr.owner else None for expr in exprs],
        "target_name": [expr.name for expr in exprs],
        "expr_text": [expr.text for expr in exprs],
        "type_id": [expr.type_ids[expr.type.identity] for expr in exprs],
        "type_repr": [expr.type.repr for expr in exprs],
        "bstart": [expr.bstart for expr in exprs],
        "bend": [expr.bend for expr in exprs],
        "line": [expr.line for expr in exprs],
    }


def type_nodes_v1(exprs: Sequence[TypeExpr]) -> Columns:
    """Return one row per part of a type, in preorder."""
    return table_columns("type_nodes_v1", [row for expr in exprs for row in _nodes(expr)])


def _nodes(expr: TypeExpr) -> Iterator[tuple[Any, ...]]:
    stack: list[tuple[int | None, int | None, TypePart]] = [(None, None, expr.type)]
    index = 0
    while stack:
        parent, arg_index, part = stack.pop()
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
        stack += [(index, number, arg) for number, arg in enumerate(part.args)][::-1]
        index += 1


# Annotations, with signature comments split into their types.


def _annotations(file: FileView) -> Iterator[Annotation]:
    params: _Params | None = None
    rows = iter_rows(file.list(LIBCST, "type_exprs"), *LIBCST_LISTS["type_exprs"])
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

    def annotation(role: str, name: str | None, part: SignatureType) -> Annotation:
        part_text = utf8[part.start : part.end].decode()
        # A comment has one line.
        return owner, kind, role, name, part_text, bstart + part.start, bstart + part.end, line

    types = signature.params or ()
    names = params.matching(owner, [each.stars for each in types])
    for name, part in zip_longest(names, types):
        yield annotation("param", name, part)
    yield annotation("return", None, signature.result)


class _Params:
    """The parameters of the functions of a file, by span of the function."""

    def __init__(self, file: FileView) -> None:
        self._params: defaultdict[Span, list[tuple[int, str, int]]] = defaultdict(list)
        params, defs = (file.list(LIBCST, name) for name in ("params", "defs"))
        for start, end, name, _, kind, index in iter_rows(params, *LIBCST_LISTS["params"]):
            self._params[start, end].append((index, name, STARS.get(kind, 0)))
        self._methods = {
            (start, end)
            for start, end, container, decorators in iter_rows(
                defs, "def_bstart", "def_bend", "container_kind", "decorators"
            )
            if container == "class" and "staticmethod" not in decorators
        }

    def matching(self, owner: Span | None, stars: Sequence[int]) -> list[str]:
        """Return the names of a function's parameters if they match types with these stars, else nothing."""
        if owner is None:
            return []
        params = sorted(self._params[owner])
        if len(params) == len(stars) + 1 and owner in self._methods:
            params = params[1:]
        matches = [star for _, _, star in params] == list(stars)
        return [name for _, name, _ in params] if matches else []
