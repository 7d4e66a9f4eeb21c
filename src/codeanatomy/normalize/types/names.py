"""Resolve the names in a type by the scopes and imports of one file.

    import numpy as np                  np.ndarray  -> numpy.ndarray    qualified
    from .models import User as U       U           -> .models.User     qualified
                                        int         -> builtins.int     qualified, shown as int
    class Local: ...                    Local       -> Local            as written
    try: from a import C                C           -> C                as written: two meanings
    except ImportError: C = None

Scopes are those of Python: a class is visible from what is directly in it, type parameters from the whole
definition, a function's imports from its body. All bindings of a name in its scope count, whatever their
order; the name is qualified only if they import one and the same object, for which branch runs is not decided
here. The scopes of comprehensions are not known, so their targets count as bound in the enclosing scope; a
name that is declared global or nonlocal counts as bound in all enclosing functions. So a name may remain as
written, but is not qualified wrongly (except for a `:=` among the bases of a class, which is taken for a type
parameter). A star import binds nothing that is known here; names that nothing binds are builtins or unknown.
Of these `Optional`, `Union` and the like are still taken for those of `typing`, as are names that are
imported from `typing` in one branch and from `typing_extensions` in another.

An identity is the name made unambiguous in the repository. It is the qualified name; a relative import is
resolved from its folder, and a local or unknown name belongs to its scope in its file:

    pkg/a.py    from .models import User     pkg/sub/b.py    from ..models import User      one identity
    pkg/a.py    class Foo                    pkg/b.py        class Foo                      two

Tests: `tests/unit/normalize/test_type_names.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias
from unicodedata import normalize

from msgspec import Struct

from codeanatomy.file_view import LIBCST, FileView, iter_rows
from codeanatomy.ids import stable_id

# Special forms of `typing`; everything else with brackets is a generic.
Form: TypeAlias = Literal["optional", "union", "literal", "annotated", "callable", "none"]
ScopeKind: TypeAlias = Literal["module", "class", "function", "types"]
Span: TypeAlias = tuple[int, int]

# The lists and fields of `libcst_files_v1` that bind names.
LISTS: Mapping[str, tuple[str, ...]] = {
    "imports": ("kind", "module", "name", "asname", "level", "is_star", "stmt_bstart"),
    "defs": ("kind", "name", "def_bstart", "def_bend", "name_bend", "body_bstart", "body_bend"),
    "params": ("owner_bstart", "owner_bend", "name", "bstart"),
    "refs": ("text", "kind", "context", "bstart"),
}
BUILTINS = frozenset(dir(builtins)) - {"_", "__doc__", "__loader__", "__name__", "__package__", "__spec__"}
# A one-letter name may be imported from a very long one and be used very often.
MAX_CHARS = 255

_SPECIAL: Mapping[str, Form] = {
    "Optional": "optional",
    "Union": "union",
    "Literal": "literal",
    "Annotated": "annotated",
    "Callable": "callable",
}
FORMS: Mapping[str, Form] = {
    **{
        f"{module}.{name}": form
        for module in ("typing", "typing_extensions")
        for name, form in _SPECIAL.items()
    },
    "collections.abc.Callable": "callable",
    "types.NoneType": "none",
}
# The forms of names that nothing in the file binds, as after a star import.
UNBOUND_FORMS: Mapping[str, Form] = {**_SPECIAL, **FORMS}

# Prefixes of identities that are not absolute names; neither can occur in a name.
LOCAL, RELATIVE = "\x01", "\x02"


class ResolvedName(Struct, frozen=True):
    """A dotted name in a type, resolved."""

    # Qualified if it could be resolved, else as written.
    text: str
    is_qualified: bool
    # As in a normal form: without `builtins`.
    shown: str
    identity: str
    form: Form | None = None


class TypeScope:
    """A scope with its bindings: per name the imported names it stands for, or None for other bindings."""

    __slots__ = ("_local_prefix", "_resolved", "bindings", "declared", "kind", "label", "parent", "path")

    def __init__(self, kind: ScopeKind, path: str, parent: TypeScope | None = None, label: str = "") -> None:
        self.kind = kind
        self.path = path
        self.parent = parent
        self.label = label
        self.bindings: dict[str, dict[str | None, None]] = {}
        # Names in `global` and `nonlocal`.
        self.declared: set[str] = set()
        self._resolved: dict[str, ResolvedName] = {}
        self._local_prefix: str | None = None

    def bind(self, name: str, stands_for: str | None = None) -> None:
        """Bind a name here; one that is declared global or nonlocal, in all scopes it may belong to."""
        name = _normalized(name)
        scopes = [self]
        if name in self.declared:
            # The evidence does not distinguish `global` and `nonlocal`.
            scopes = [scope for scope in self._enclosing_scopes() if scope.kind in {"function", "module"}][1:]
        for scope in scopes:
            scope.bindings.setdefault(name, {})[stands_for] = None

    def resolve(self, dotted: str) -> ResolvedName:
        """Resolve a dotted name; to be called when all bindings are known."""
        if dotted not in self._resolved:
            self._resolved[dotted] = self._resolve(dotted)
        return self._resolved[dotted]

    def local_identity(self, text: str) -> str:
        """Return the identity of a text whose meaning depends on this scope."""
        if self._local_prefix is None:
            # Made of names, not of positions: an edit above in the file must not change it.
            labels = [scope.label for scope in self._enclosing_scopes()]
            self._local_prefix = f"{LOCAL}{stable_id('scope', self.path, *labels)}:"
        return f"{self._local_prefix}{text}"

    @property
    def _root(self) -> TypeScope:
        scope = self
        while scope.parent:
            scope = scope.parent
        return scope

    @property
    def _is_in_class(self) -> bool:
        return any(scope.kind == "class" for scope in self._enclosing_scopes())

    def _enclosing_scopes(self) -> Iterator[TypeScope]:
        scope: TypeScope | None = self
        while scope:
            yield scope
            scope = scope.parent

    def _resolve(self, dotted: str) -> ResolvedName:
        first, dot, rest = dotted.partition(".")
        if first.startswith("__") and not first.endswith("__") and self._is_in_class:
            # The compiler mangles it.
            return ResolvedName(dotted, False, dotted, self.local_identity(dotted))
        owner = self._binding_scope(first)
        if owner is None:
            if first in BUILTINS:
                return _qualified(f"builtins.{dotted}", self.path, None)
            return ResolvedName(
                dotted, False, dotted, self._root.local_identity(dotted), UNBOUND_FORMS.get(dotted)
            )
        targets = [None if to is None else f"{to}{dot}{rest}" for to in owner.bindings[first]]
        forms = {FORMS.get(target) if target else None for target in targets}
        form = forms.pop() if len(forms) == 1 else None
        if len(targets) == 1 and targets[0] is not None and len(targets[0]) <= MAX_CHARS:
            return _qualified(targets[0], self.path, form)
        return ResolvedName(dotted, False, dotted, owner.local_identity(dotted), form)

    def _binding_scope(self, name: str) -> TypeScope | None:
        """Return the scope whose binding of the name is visible here."""
        sees_class = True
        for scope in self._enclosing_scopes():
            if name in scope.bindings and (scope.kind != "class" or sees_class):
                return scope
            # The class is visible to the type parameters of a method, not to the method.
            sees_class = sees_class and scope.kind == "types"
        return None


class TypeScopes:
    """The scopes of a file, by span of the definition they belong to."""

    def __init__(self, file: FileView) -> None:
        self.module = TypeScope("module", file.path)
        self._headers: dict[Span, TypeScope] = {}
        self._bodies: dict[Span, TypeScope] = {}
        self._build(file)

    def header(self, owner: Span | None) -> TypeScope:
        """Return the scope of the annotations of a definition's parameters and result."""
        scope = self._headers.get(owner, self.module) if owner else self.module
        # Nearly all are empty; without them all methods of a class share a scope and its resolved names.
        while not scope.bindings and scope.kind == "types" and scope.parent:
            scope = scope.parent
        return scope

    def body(self, owner: Span | None) -> TypeScope:
        """Return the scope of the statements of a definition."""
        return self._bodies.get(owner, self.module) if owner else self.module

    def _build(self, file: FileView) -> None:
        """Walk beginnings of scopes and bindings from left to right, with a stack of enclosing scopes."""
        events = sorted((*_regions(file), *_bindings(file)), key=lambda item: item[:3])
        first_parameter: dict[TypeScope, int] = {}
        parameters: dict[Span, int] = {}
        for start, end, _, first in _rows(file, "params"):
            parameters[start, end] = min(first, parameters.get((start, end), first))
        stack: list[tuple[int, TypeScope]] = [(-1, self.module)]
        for start, _, minus_end, event in events:
            while 0 <= stack[-1][0] <= start:
                stack.pop()
            scope = stack[-1][1]
            if isinstance(event, _Region):
                inner = TypeScope(event.kind, file.path, scope, event.label)
                (self._headers if event.kind == "types" else self._bodies)[event.owner] = inner
                first_parameter[inner] = parameters.get(event.owner, -minus_end)
                stack.append((-minus_end, inner))
            elif event.is_declaration:
                scope.declared.add(_normalized(event.name))
            else:
                if scope.kind == "types" and scope.parent and start > first_parameter[scope]:
                    # After the type parameters: `:=` in a default or an annotation binds in the outer scope.
                    scope = scope.parent
                scope.bind(event.name, event.stands_for)
        for start, end, name, _ in _rows(file, "params"):
            if (start, end) in self._bodies:
                self._bodies[start, end].bind(name)


class _Region(Struct, frozen=True):
    kind: ScopeKind
    owner: Span
    label: str


class _Binding(Struct, frozen=True):
    name: str
    stands_for: str | None = None
    is_declaration: bool = False


# Position, whether it is a binding (scopes come first), minus the end (outer scopes come first).
_Event: TypeAlias = tuple[int, bool, int, _Region | _Binding]


def _regions(file: FileView) -> Iterator[_Event]:
    """Yield two regions per definition: its body, and all of it from its name on, for type parameters."""
    for kind, name, start, end, name_end, body_start, body_end in _rows(file, "defs"):
        label = "<lambda>" if name is None else _normalized(name)
        if name_end is not None:
            yield name_end, False, -end, _Region("types", (start, end), label)
        inner: ScopeKind = "class" if kind == "class" else "function"
        yield body_start, False, -body_end, _Region(inner, (start, end), label)


def _bindings(file: FileView) -> Iterator[_Event]:
    for kind, module, name, asname, level, is_star, start in _rows(file, "imports"):
        if is_star:
            continue
        if kind == "import":
            first = name.partition(".")[0]
            binding = _Binding(asname, _normalized(name)) if asname else _Binding(first, _normalized(first))
        else:
            package = "." * level + (f"{module}." if module else "")
            binding = _Binding(asname or name, _normalized(f"{package}{name}"))
        yield start, True, 0, binding
    for kind, name, start, *_ in _rows(file, "defs"):
        if kind != "lambda":
            yield start, True, 0, _Binding(name)
    for text, kind, context, start in _rows(file, "refs"):
        if kind == "name" and context in {"store", "declare"}:
            yield start, True, 0, _Binding(text, is_declaration=context == "declare")


def _rows(file: FileView, name: str) -> Iterator[tuple[Any, ...]]:
    return iter_rows(file.list(LIBCST, name), *LISTS[name])


def _qualified(text: str, path: str, form: Form | None) -> ResolvedName:
    identity = _relative_identity(text, path) if text.startswith(".") else text
    return ResolvedName(text, True, text.removeprefix("builtins."), identity, form)


def _relative_identity(relative: str, path: str) -> str:
    """Return the identity of a relative name: the folder that it starts in, and the name."""
    name = relative.lstrip(".")
    levels = len(relative) - len(name)
    folders = path.split("/")[:-1]
    above = levels - 1 - len(folders)
    # If it leaves the repository, only the number of levels is known.
    base = folders[: len(folders) - levels + 1] if above <= 0 else [".."] * above
    return f"{RELATIVE}{stable_id('folder', *base)}:{name}"


def _normalized(name: str) -> str:
    """Return the name as the compiler normalizes it."""
    return name if name.isascii() else normalize("NFKC", name)
