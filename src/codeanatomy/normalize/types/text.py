r"""The text of a type as a tree, and the normal form of every part of it.

>>> from codeanatomy.normalize.types.names import Scope
>>> part = read_type("Optional[Dict[str, 'Foo']]", Scope("module", "a.py"))
>>> part.kind, part.repr
('union', 'Dict[str, Foo] | None')
>>> [(arg.kind, arg.repr, arg.span) for arg in part.args]
[('generic', 'Dict[str, Foo]', (9, 25)), ('none', 'None', None)]

The tree follows the source, the normal form the meaning. Parentheses and quotes are not parts: the place of
`'Foo'` is that of `Foo`. A chain of `|` is one union, and so are `Optional[...]` and `Union[...]`; the None
of an Optional has no place.

| kind | part | its arguments |
|---|---|---|
| name | `int`, `np.ndarray` | |
| generic | `list[int]`, `ClassVar[T]`, `tuple[()]` | what is in the brackets |
| union | `A \| B`, `Union[A, B]`, `Optional[A]` | the members as written |
| literal | `Literal["a", 1]` | the values |
| annotated | `Annotated[T, x]` | the type, and what follows as it is |
| callable | `Callable[[A], B]`, `Callable[..., B]` | parameters (a list, `...` or a type) and result |
| parameters | `[A, B]` | the types in the list |
| tuple | `A, B` without a name before it | the types |
| unpacked | `*Ts` | one type |
| none, ellipsis | `None`, `...` | |
| constant | `1`, and `"a"` in a Literal | |
| expression | any other Python, such as a call | none: its names are not looked up |
| unparsed | what is not Python, too long or too deep | |

Normal form: names are qualified; members of a union are flattened, each once, in the order of their texts
with None last, and a union of one is that one; values of a Literal are flattened, each once, in their own
order; Annotated in Annotated is one; constants and expressions are as `ast.unparse` writes them, those that
operators would tear apart in parentheses; what is unparsed has its white space collapsed, and quotes where it
is not the whole.

Texts come from strangers. The parser is CPython's and nothing is evaluated. What goes beyond the bounds below
is `unparsed`; they are lower than CPython's own, which depend on how deep its stack is at the time.

Tests: `tests/unit/normalize/test_type_text.py`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from codeanatomy.ids import stable_id
from codeanatomy.normalize.types.names import Name, Scope, Span

Kind: TypeAlias = Literal[
    "name",
    "generic",
    "union",
    "literal",
    "annotated",
    "callable",
    "parameters",
    "tuple",
    "unpacked",
    "none",
    "ellipsis",
    "constant",
    "expression",
    "unparsed",
]

MAX_CHARS = 10_000
# Of parts in parts, and of syntax in an expression.
MAX_DEPTH = 50
# Of terms joined by `|`, and of names joined by dots.
MAX_CHAIN = 500
# Of the normal forms of all parts together, which hold one another and have longer names than the text. The
# most in a hundred thousand real types was 1,103 characters.
MAX_REPR, MAX_REPR_PER_CHAR = 4_000, 16
# Longer identities are hashed: those of parts are in that of the whole, and with marks for all local names.
MAX_IDENTITY = 200

# Whatever CPython's parser and printer have been seen to raise.
UNREAD = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
PLAIN_LITERAL = re.compile(rb"""[uUrR]?(\"""|'''|"|')([^\\]*)\1""")
LINE_END = re.compile(rb"\r\n?|\n")
OPEN, CLOSE = "_[", "\n]"
TORN = (ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Compare)

# What a hashed identity begins with; it cannot stand in another.
HASHED = "\x03"
UNION = Name("typing.Union", True, "", "")
NONE = Name("None", True, "None", "None")
NAMELESS = Name("", False, "", "")


class Part(Struct, frozen=True):
    """A part of a type, with those in it."""

    kind: Kind
    # Name at its head; empty if it has none.
    name: str
    is_qualified: bool
    repr: str
    # The same for equal types of a repository, and for them only.
    identity: str
    # In bytes from the beginning of the text; null where it is not known.
    span: Span | None
    args: tuple[Part, ...] = ()
    # What its normal form is made of, where that is not the arguments.
    members: tuple[Part, ...] = ()


class Piece(Struct, frozen=True):
    """A type in the comment that gives the signature of a function; the stars before it."""

    stars: int
    start: int
    end: int


class Signature(Struct, frozen=True):
    """Types of the parameters, null for `...`, and of the result."""

    params: tuple[Piece, ...] | None
    result: Piece


def read_type(text: str, scope: Scope) -> Part:
    """The type that a text means in a scope."""
    with warnings.catch_warnings():
        # Of escapes in strings; they are the file's, and were recorded when it was compiled.
        warnings.simplefilter("ignore")
        try:
            return _Reader(scope, MAX_REPR + MAX_REPR_PER_CHAR * len(text)).whole(text)
        except _Unreadable:
            collapsed = _collapsed(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    return Part("unparsed", "", False, collapsed, _bounded(scope.unknown(f"?{collapsed}")), (0, size))


def read_signature(text: str) -> Signature | None:
    """The types in `(int, *str, **Any) -> bool`, by CPython's own grammar for it."""
    try:
        _refuse(len(text) > MAX_CHARS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="func_type")
    except (*UNREAD, _Unreadable):
        return None
    utf8, starts = text.encode(), _line_starts(text.encode(), 0)

    def piece(node: ast.expr) -> Piece:
        start, end = _place(node, starts)
        before = utf8[:start].rstrip(b" \t\f(")
        return Piece(len(before) - len(before.rstrip(b"*")), start, end)

    match tree.argtypes:
        case [ast.Constant(value=value)] if value is ...:
            return Signature(None, piece(tree.returns))
    return Signature(tuple(map(piece, tree.argtypes)), piece(tree.returns))


class _Unreadable(Exception):
    """A text that no type is made of."""


def _refuse(condition: bool) -> None:
    if condition:
        raise _Unreadable


class _Text(Struct, frozen=True):
    """A text that is being read, where its lines begin, and where it stands in the whole if that is known."""

    utf8: bytes
    line_starts: list[int]
    base: int | None


class _Reader:
    """Reads one type, with the strings in it."""

    def __init__(self, scope: Scope, budget: int) -> None:
        self._scope = scope
        self._budget = budget

    def whole(self, text: str, base: int | None = 0, depth: int = 0) -> Part:
        """The type that a text means; the text stands `base` bytes after the beginning of the whole."""
        return self._part(_parsed(text), _text(text, base), depth)

    # Parts by their syntax.

    def _part(self, node: ast.expr, text: _Text, depth: int) -> Part:
        _refuse(depth > MAX_DEPTH)
        match node:
            case ast.Name() | ast.Attribute():
                dotted = _dotted(node)
                return self._named(dotted, node, text) if dotted else self._expression(node, text)
            case ast.Subscript():
                return self._subscript(node, text, depth)
            case ast.Constant(value=str(value)):
                return self._quoted(value, node, text, depth)
            case ast.BinOp(op=ast.BitOr()):
                return self._union(node, text, self._parts(_terms(node), text, depth))
            case ast.List(elts=elts):
                return self._made("parameters", NAMELESS, node, text, self._parts(elts, text, depth), _listed)
            case ast.Tuple(elts=elts):
                return self._made("tuple", NAMELESS, node, text, self._parts(elts, text, depth), _tupled)
            case ast.Starred(value=value):
                return self._made(
                    "unpacked", NAMELESS, node, text, self._parts([value], text, depth), _starred
                )
        return self._opaque(node, text)

    def _parts(self, nodes: Iterable[ast.expr], text: _Text, depth: int) -> tuple[Part, ...]:
        return tuple(self._part(node, text, depth + 1) for node in nodes)

    def _named(self, dotted: str, node: ast.expr, text: _Text) -> Part:
        name = self._scope.resolve(dotted)
        if name.form == "none":
            return self._leaf("none", NONE, NONE.shown, node, text)
        return self._leaf("name", name, name.shown, node, text, name.identity)

    def _subscript(self, node: ast.Subscript, text: _Text, depth: int) -> Part:
        dotted = _dotted(node.value)
        if dotted is None:
            return self._expression(node, text)
        name = self._scope.resolve(dotted)
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match name.form, inside:
            case "literal", _:
                return self._literal(name, node, text, depth)
            case "annotated", [_, _, *_]:
                return self._annotated(name, node, text, depth)
        args = self._parts(inside, text, depth)
        are_types = not any(isinstance(each, ast.Starred | ast.Slice) for each in inside)
        match name.form, args:
            case "optional", [_] if are_types:
                none = Part("none", NONE.text, True, NONE.shown, NONE.identity, None)
                return self._union(node, text, (*args, none))
            case "union", [_, *_] if are_types:
                return self._union(node, text, args)
            case "callable", [_, _]:
                return self._made("callable", name, node, text, args, _bracketed)
        return self._made("generic", name, node, text, args, _bracketed)

    def _quoted(self, value: str, node: ast.expr, text: _Text, depth: int) -> Part:
        """A type in quotes, at its place if nothing in the literal moves the characters."""
        inside, base = value, None
        if text.base is not None:
            plain = PLAIN_LITERAL.fullmatch(text.utf8, *_place(node, text.line_starts))
            if plain and plain.group(1) not in plain.group(2):
                inside, base = plain.group(2).decode(), text.base + plain.start(2)
        try:
            return self.whole(inside, base, depth)
        except _Unreadable:
            collapsed = _collapsed(value)
            shown = collapsed if depth == 0 else repr(collapsed)
            return self._leaf("unparsed", NAMELESS, shown, node, text, self._scope.unknown(f"?{collapsed}"))

    def _literal(self, name: Name, node: ast.Subscript, text: _Text, depth: int) -> Part:
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        _refuse(depth >= MAX_DEPTH)
        values = tuple(self._value(each, text, depth + 1) for each in inside)
        flat = chain.from_iterable(v.members if v.kind == "literal" else (v,) for v in values)
        distinct = tuple({value.identity: value for value in flat}.values())
        return self._made("literal", name, node, text, values, _bracketed, distinct)

    def _value(self, node: ast.expr, text: _Text, depth: int) -> Part:
        """A value of a Literal: a constant, a member of an enumeration, or a Literal again."""
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            part = self._part(node, text, depth)
            if part.kind in {"name", "literal", "expression"}:
                return part
            return self._expression(node, text)
        return self._opaque(node, text)

    def _annotated(self, name: Name, node: ast.Subscript, text: _Text, depth: int) -> Part:
        first, *others = node.slice.elts  # type: ignore[attr-defined]
        annotated = self._part(first, text, depth + 1)
        notes = tuple(self._opaque(each, text) for each in others)
        whole = annotated.members if annotated.kind == "annotated" else (annotated,)
        return self._made("annotated", name, node, text, (annotated, *notes), _bracketed, (*whole, *notes))

    def _union(self, node: ast.expr, text: _Text, args: tuple[Part, ...]) -> Part:
        flat = chain.from_iterable(arg.members if arg.kind == "union" else (arg,) for arg in args)
        distinct = {member.identity: member for member in flat}.values()
        ordered = tuple(sorted(distinct, key=lambda m: (m.kind == "none", m.repr, m.identity)))
        return self._made("union", UNION, node, text, args, _joined, ordered)

    def _opaque(self, node: ast.expr, text: _Text) -> Part:
        """What is not looked into."""
        match node:
            case ast.Constant(value=None):
                return self._leaf("none", NONE, NONE.shown, node, text)
            case ast.Constant(value=value) if value is ...:
                return self._leaf("ellipsis", NAMELESS, "...", node, text)
            case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                return self._leaf("constant", NAMELESS, _printed(node), node, text)
        return self._expression(node, text)

    def _expression(self, node: ast.expr, text: _Text) -> Part:
        _refuse(_is_deep(node))
        printed = f"({_printed(node)})" if isinstance(node, TORN) else _printed(node)
        return self._leaf("expression", NAMELESS, printed, node, text, self._scope.unknown(printed))

    # Parts by their kinds.

    def _made(
        self,
        kind: Kind,
        name: Name,
        node: ast.expr,
        text: _Text,
        args: tuple[Part, ...],
        written: Callable[[str, Sequence[str], bool], str],
        members: tuple[Part, ...] = (),
    ) -> Part:
        """A part of several; its normal form and its identity are written in the same way."""
        of = members or args
        # Brackets would take a tuple that is alone in them for their own.
        lone_tuple = len(of) == 1 and of[0].kind == "tuple"
        shown = self._spent(written(name.shown, [part.repr for part in of], lone_tuple))
        identity = _bounded(written(name.identity, [part.identity for part in of], lone_tuple))
        return Part(kind, name.text, name.is_qualified, shown, identity, _span(node, text), args, members)

    def _leaf(
        self, kind: Kind, name: Name, shown: str, node: ast.expr, text: _Text, identity: str | None = None
    ) -> Part:
        """A part without parts; a constant is its own identity."""
        identity = _bounded(shown if identity is None else identity)
        return Part(kind, name.text, name.is_qualified, self._spent(shown), identity, _span(node, text))

    def _spent(self, shown: str) -> str:
        self._budget -= len(shown)
        _refuse(self._budget < 0)
        return shown


def _parsed(text: str) -> ast.expr:
    """The syntax of a type, read in brackets: there it may have several lines, and begin with a star."""
    _refuse(len(text) > MAX_CHARS)
    try:
        body = ast.parse(f"{OPEN}{text}{CLOSE}", mode="eval").body
    except UNREAD:
        raise _Unreadable from None
    match body:
        # Else the text itself closes the brackets.
        case ast.Subscript(value=ast.Name(), slice=inside):
            only = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            _refuse(any(isinstance(each, ast.Slice) for each in only))
            return only[0] if len(only) == 1 and isinstance(only[0], ast.Starred) else inside
    raise _Unreadable


def _text(text: str, base: int | None) -> _Text:
    utf8 = text.encode()
    return _Text(utf8, _line_starts(utf8, len(OPEN)), base)


def _line_starts(utf8: bytes, before: int) -> list[int]:
    """Where lines begin, if `before` bytes stand before the first."""
    return [-before, *(found.end() for found in LINE_END.finditer(utf8))]


def _place(node: ast.expr, line_starts: Sequence[int]) -> Span:
    # The parser always says where an expression ends.
    end_line, end_col = node.end_lineno or 0, node.end_col_offset or 0
    return line_starts[node.lineno - 1] + node.col_offset, line_starts[end_line - 1] + end_col


def _span(node: ast.expr, text: _Text) -> Span | None:
    if text.base is None:
        return None
    start, end = _place(node, text.line_starts)
    return text.base + start, text.base + end


def _dotted(node: ast.expr) -> str | None:
    """The expression, if it is names joined by dots."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    _refuse(len(parts) > MAX_CHAIN)
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else None


def _terms(node: ast.expr) -> list[ast.expr]:
    """What a chain of `|` joins, in source order."""
    terms: list[ast.expr] = []
    ahead = [node]
    while ahead:
        each = ahead.pop()
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.BitOr):
            ahead += (each.right, each.left)
        else:
            terms.append(each)
    _refuse(len(terms) > MAX_CHAIN)
    return terms


def _is_deep(node: ast.expr) -> bool:
    """Deeper than a printer that recurses may always go."""
    level: list[Any] = [node]
    for _ in range(MAX_DEPTH):
        level = [child for each in level for child in ast.iter_child_nodes(each)]
        if not level:
            return False
    return True


def _printed(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except UNREAD:
        raise _Unreadable from None


def _bounded(identity: str) -> str:
    return identity if len(identity) <= MAX_IDENTITY else f"{HASHED}{stable_id('part', identity)}"


def _collapsed(text: str) -> str:
    return " ".join(text.split())


# How parts are written; a comma is added after a tuple that is alone.


def _bracketed(head: str, texts: Sequence[str], lone_tuple: bool) -> str:
    return f"{head}[{', '.join(texts) or '()'}{',' if lone_tuple else ''}]"


def _listed(_head: str, texts: Sequence[str], _lone_tuple: bool) -> str:
    return f"[{', '.join(texts)}]"


def _tupled(_head: str, texts: Sequence[str], _lone_tuple: bool) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _starred(_head: str, texts: Sequence[str], _lone_tuple: bool) -> str:
    return f"*{texts[0]}"


def _joined(_head: str, texts: Sequence[str], _lone_tuple: bool) -> str:
    return " | ".join(texts)
