r"""Parse the text of a type into a tree, with the normal form of every part.

>>> from codeanatomy.normalize.types.names import TypeScope
>>> part = read_type("Optional[Dict[str, 'Foo']]", TypeScope("module", "a.py"))
>>> part.kind, part.repr
('union', 'Dict[str, Foo] | None')
>>> [(arg.kind, arg.repr, arg.span) for arg in part.args]
[('generic', 'Dict[str, Foo]', (9, 25)), ('none', 'None', None)]

The tree follows the source, the normal form the meaning. Parentheses and quotes are not parts: the span of
`'Foo'` is that of `Foo`. A chain of `|` is one union, and so are `Optional[...]` and `Union[...]`; the None
of an Optional has no span.

| kind | part | its arguments |
|---|---|---|
| name | `int`, `np.ndarray` | |
| generic | `list[int]`, `ClassVar[T]`, `tuple[()]` | the types in the brackets |
| union | `A \| B`, `Union[A, B]`, `Optional[A]` | the members as written |
| literal | `Literal["a", 1]` | the values |
| annotated | `Annotated[T, x]` | the type, and the metadata unparsed |
| callable | `Callable[[A], B]`, `Callable[..., B]` | parameters (a list, `...` or a type) and result |
| parameters | `[A, B]` | the types in the list |
| tuple | `A, B` without a name before it | the types |
| unpacked | `*Ts` | one type |
| none, ellipsis | `None`, `...` | |
| constant | `1`, and `"a"` in a Literal | |
| expression | any other Python, such as a call | none: its names are not resolved |
| unparsed | what is not Python, too long or too deep | |

Normal form: names are qualified; members of a union are flattened, distinct, in the order of their texts
with None last, and a union of one is that one; values of a Literal are flattened, distinct, in their own
order; Annotated in Annotated is one; constants and expressions are as `ast.unparse` writes them, in
parentheses if operators around them would change their meaning; white space of unparsed text is collapsed,
and it has quotes where it is not the whole.

Texts are untrusted input. The parser is CPython's and nothing is evaluated. A text beyond the bounds below is
`unparsed`; they are lower than CPython's own, which depend on the depth of its stack at the time.

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
from codeanatomy.normalize.types.names import ResolvedName, Span, TypeScope

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
# Nesting of parts, and of syntax in an expression.
MAX_DEPTH = 50
# Number of terms joined by `|`, and of names joined by dots.
MAX_CHAIN = 500
# Length of the normal forms of all parts together, which contain one another and have longer names than the
# text. The maximum in a hundred thousand real types was 1,103 characters.
MAX_REPR, MAX_REPR_PER_CHAR = 4_000, 16
# Longer identities are hashed: the identity of a type contains those of its parts.
MAX_IDENTITY = 200

# The exceptions that CPython's parser and printer have been seen to raise.
PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
PLAIN_LITERAL = re.compile(rb"""[uUrR]?(\"""|'''|"|')([^\\]*)\1""")
LINE_END = re.compile(rb"\r\n?|\n")
# A text is parsed between these.
OPEN, CLOSE = "_[", "\n]"
# Expressions that need parentheses in a normal form.
PARENTHESIZED = (ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Compare)

# Prefix of a hashed identity; it cannot occur in another.
HASHED = "\x03"
UNION = ResolvedName("typing.Union", True, "", "")
NONE = ResolvedName("None", True, "None", "None")
NAMELESS = ResolvedName("", False, "", "")


class TypePart(Struct, frozen=True):
    """A part of a type, with the parts in it."""

    kind: Kind
    # The name before its brackets, or the name itself; empty if it has none.
    name: str
    is_qualified: bool
    repr: str
    # Equal for equal types of a repository, and for them only.
    identity: str
    # In bytes from the beginning of the text; None if it is unknown.
    span: Span | None
    args: tuple[TypePart, ...] = ()
    # The parts of its normal form, if those are not the arguments.
    members: tuple[TypePart, ...] = ()


class SignatureType(Struct, frozen=True):
    """A type in a comment with the signature of a function, and the number of stars before it."""

    stars: int
    start: int
    end: int


class Signature(Struct, frozen=True):
    """Types of the parameters (None for `...`) and of the result."""

    params: tuple[SignatureType, ...] | None
    result: SignatureType


def read_type(text: str, scope: TypeScope) -> TypePart:
    """Parse the text of a type in a scope."""
    with warnings.catch_warnings():
        # Invalid escapes in strings were recorded when the file was compiled.
        warnings.simplefilter("ignore")
        try:
            return _TypeParser(scope, MAX_REPR + MAX_REPR_PER_CHAR * len(text)).parse(text)
        except _Rejected:
            collapsed = _collapse_spaces(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    return TypePart(
        "unparsed", "", False, collapsed, _bounded(scope.local_identity(f"?{collapsed}")), (0, size)
    )


def read_signature(text: str) -> Signature | None:
    """Parse the types in `(int, *str, **Any) -> bool` by CPython's own grammar; None if it is rejected."""
    try:
        _reject_if(len(text) > MAX_CHARS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="func_type")
    except (*PARSE_ERRORS, _Rejected):
        return None
    utf8, starts = text.encode(), _line_starts(text.encode(), 0)

    def signature_type(node: ast.expr) -> SignatureType:
        start, end = _node_span(node, starts)
        before = utf8[:start].rstrip(b" \t\f(")
        return SignatureType(len(before) - len(before.rstrip(b"*")), start, end)

    match tree.argtypes:
        case [ast.Constant(value=value)] if value is ...:
            return Signature(None, signature_type(tree.returns))
    return Signature(tuple(map(signature_type, tree.argtypes)), signature_type(tree.returns))


class _Rejected(Exception):
    """A text that is not parsed as a type."""


def _reject_if(condition: bool) -> None:
    if condition:
        raise _Rejected


class _Text(Struct, frozen=True):
    """A text being parsed, the offsets of its lines, and its offset in the whole text if that is known."""

    utf8: bytes
    line_starts: list[int]
    base: int | None


class _TypeParser:
    """Parse one type, with the types in strings in it."""

    def __init__(self, scope: TypeScope, budget: int) -> None:
        self._scope = scope
        self._budget = budget

    def parse(self, text: str, base: int | None = 0, depth: int = 0) -> TypePart:
        """Parse a text that begins `base` bytes after the beginning of the whole."""
        return self._part(_parse_expression(text), _text(text, base), depth)

    # Parts by syntax.

    def _part(self, node: ast.expr, text: _Text, depth: int) -> TypePart:
        _reject_if(depth > MAX_DEPTH)
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
                return self._compound(
                    "parameters", NAMELESS, node, text, self._parts(elts, text, depth), _listed
                )
            case ast.Tuple(elts=elts):
                return self._compound("tuple", NAMELESS, node, text, self._parts(elts, text, depth), _tupled)
            case ast.Starred(value=value):
                return self._compound(
                    "unpacked", NAMELESS, node, text, self._parts([value], text, depth), _starred
                )
        return self._opaque(node, text)

    def _parts(self, nodes: Iterable[ast.expr], text: _Text, depth: int) -> tuple[TypePart, ...]:
        return tuple(self._part(node, text, depth + 1) for node in nodes)

    def _named(self, dotted: str, node: ast.expr, text: _Text) -> TypePart:
        name = self._scope.resolve(dotted)
        if name.form == "none":
            return self._leaf("none", NONE, NONE.shown, node, text)
        return self._leaf("name", name, name.shown, node, text, name.identity)

    def _subscript(self, node: ast.Subscript, text: _Text, depth: int) -> TypePart:
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
                none = TypePart("none", NONE.text, True, NONE.shown, NONE.identity, None)
                return self._union(node, text, (*args, none))
            case "union", [_, *_] if are_types:
                return self._union(node, text, args)
            case "callable", [_, _]:
                return self._compound("callable", name, node, text, args, _bracketed)
        return self._compound("generic", name, node, text, args, _bracketed)

    def _quoted(self, value: str, node: ast.expr, text: _Text, depth: int) -> TypePart:
        """Parse a type in quotes; its parts have spans if the literal has no escapes or concatenation."""
        content, base = value, None
        if text.base is not None:
            plain = PLAIN_LITERAL.fullmatch(text.utf8, *_node_span(node, text.line_starts))
            if plain and plain.group(1) not in plain.group(2):
                content, base = plain.group(2).decode(), text.base + plain.start(2)
        try:
            return self.parse(content, base, depth)
        except _Rejected:
            collapsed = _collapse_spaces(value)
            shown = collapsed if depth == 0 else repr(collapsed)
            return self._leaf(
                "unparsed", NAMELESS, shown, node, text, self._scope.local_identity(f"?{collapsed}")
            )

    def _literal(self, name: ResolvedName, node: ast.Subscript, text: _Text, depth: int) -> TypePart:
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        _reject_if(depth >= MAX_DEPTH)
        values = tuple(self._value(each, text, depth + 1) for each in inside)
        flat = chain.from_iterable(v.members if v.kind == "literal" else (v,) for v in values)
        distinct = tuple({value.identity: value for value in flat}.values())
        return self._compound("literal", name, node, text, values, _bracketed, distinct)

    def _value(self, node: ast.expr, text: _Text, depth: int) -> TypePart:
        """Parse a value of a Literal: a constant, a member of an enumeration, or a nested Literal."""
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            part = self._part(node, text, depth)
            if part.kind in {"name", "literal", "expression"}:
                return part
            return self._expression(node, text)
        return self._opaque(node, text)

    def _annotated(self, name: ResolvedName, node: ast.Subscript, text: _Text, depth: int) -> TypePart:
        first, *others = node.slice.elts  # type: ignore[attr-defined]
        annotated = self._part(first, text, depth + 1)
        metadata = tuple(self._opaque(each, text) for each in others)
        members = annotated.members if annotated.kind == "annotated" else (annotated,)
        return self._compound(
            "annotated", name, node, text, (annotated, *metadata), _bracketed, (*members, *metadata)
        )

    def _union(self, node: ast.expr, text: _Text, args: tuple[TypePart, ...]) -> TypePart:
        flat = chain.from_iterable(arg.members if arg.kind == "union" else (arg,) for arg in args)
        distinct = {member.identity: member for member in flat}.values()
        ordered = tuple(sorted(distinct, key=lambda m: (m.kind == "none", m.repr, m.identity)))
        return self._compound("union", UNION, node, text, args, _joined, ordered)

    def _opaque(self, node: ast.expr, text: _Text) -> TypePart:
        """Return a part whose content is not analysed."""
        match node:
            case ast.Constant(value=None):
                return self._leaf("none", NONE, NONE.shown, node, text)
            case ast.Constant(value=value) if value is ...:
                return self._leaf("ellipsis", NAMELESS, "...", node, text)
            case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                return self._leaf("constant", NAMELESS, _unparse(node), node, text)
        return self._expression(node, text)

    def _expression(self, node: ast.expr, text: _Text) -> TypePart:
        _reject_if(_is_deep(node))
        printed = f"({_unparse(node)})" if isinstance(node, PARENTHESIZED) else _unparse(node)
        return self._leaf("expression", NAMELESS, printed, node, text, self._scope.local_identity(printed))

    # Parts by kind.

    def _compound(
        self,
        kind: Kind,
        name: ResolvedName,
        node: ast.expr,
        text: _Text,
        args: tuple[TypePart, ...],
        write: Callable[[str, Sequence[str], bool], str],
        members: tuple[TypePart, ...] = (),
    ) -> TypePart:
        """Return a part made of parts; its normal form and its identity are written in the same way."""
        parts = members or args
        # A single tuple in brackets would read as the arguments themselves.
        lone_tuple = len(parts) == 1 and parts[0].kind == "tuple"
        shown = self._spend(write(name.shown, [part.repr for part in parts], lone_tuple))
        identity = _bounded(write(name.identity, [part.identity for part in parts], lone_tuple))
        return TypePart(kind, name.text, name.is_qualified, shown, identity, _span(node, text), args, members)

    def _leaf(
        self,
        kind: Kind,
        name: ResolvedName,
        shown: str,
        node: ast.expr,
        text: _Text,
        identity: str | None = None,
    ) -> TypePart:
        """Return a part without parts; the identity of a constant is its text."""
        identity = _bounded(shown if identity is None else identity)
        return TypePart(kind, name.text, name.is_qualified, self._spend(shown), identity, _span(node, text))

    def _spend(self, shown: str) -> str:
        self._budget -= len(shown)
        _reject_if(self._budget < 0)
        return shown


def _parse_expression(text: str) -> ast.expr:
    """Parse the text in brackets, where it may have several lines and begin with a star."""
    _reject_if(len(text) > MAX_CHARS)
    try:
        body = ast.parse(f"{OPEN}{text}{CLOSE}", mode="eval").body
    except PARSE_ERRORS:
        raise _Rejected from None
    match body:
        # Any other expression means that the text itself closes the brackets.
        case ast.Subscript(value=ast.Name(), slice=content):
            items = content.elts if isinstance(content, ast.Tuple) else [content]
            _reject_if(any(isinstance(item, ast.Slice) for item in items))
            return items[0] if len(items) == 1 and isinstance(items[0], ast.Starred) else content
    raise _Rejected


def _text(text: str, base: int | None) -> _Text:
    utf8 = text.encode()
    return _Text(utf8, _line_starts(utf8, len(OPEN)), base)


def _line_starts(utf8: bytes, before: int) -> list[int]:
    """Return the offsets of lines, if `before` bytes precede the first."""
    return [-before, *(match.end() for match in LINE_END.finditer(utf8))]


def _node_span(node: ast.expr, line_starts: Sequence[int]) -> Span:
    # The parser sets the end of every expression.
    end_line, end_col = node.end_lineno or 0, node.end_col_offset or 0
    return line_starts[node.lineno - 1] + node.col_offset, line_starts[end_line - 1] + end_col


def _span(node: ast.expr, text: _Text) -> Span | None:
    if text.base is None:
        return None
    start, end = _node_span(node, text.line_starts)
    return text.base + start, text.base + end


def _dotted(node: ast.expr) -> str | None:
    """Return the dotted name of an expression; None if it is anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    _reject_if(len(parts) > MAX_CHAIN)
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else None


def _terms(node: ast.expr) -> list[ast.expr]:
    """Return the terms of a chain of `|`, in source order."""
    terms: list[ast.expr] = []
    stack = [node]
    while stack:
        term = stack.pop()
        if isinstance(term, ast.BinOp) and isinstance(term.op, ast.BitOr):
            stack += (term.right, term.left)
        else:
            terms.append(term)
    _reject_if(len(terms) > MAX_CHAIN)
    return terms


def _is_deep(node: ast.expr) -> bool:
    """Return whether a node is too deep for a recursive printer."""
    level: list[Any] = [node]
    for _ in range(MAX_DEPTH):
        level = [child for each in level for child in ast.iter_child_nodes(each)]
        if not level:
            return False
    return True


def _unparse(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except PARSE_ERRORS:
        raise _Rejected from None


def _bounded(identity: str) -> str:
    return identity if len(identity) <= MAX_IDENTITY else f"{HASHED}{stable_id('part', identity)}"


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())


# Texts of parts; a comma follows a lone tuple in brackets.


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
