"""What the names in a type mean, by the bindings of one file.

    import numpy as np                  np.ndarray  -> numpy.ndarray    qualified
    from .models import User as U       U           -> .models.User     qualified
                                        int         -> builtins.int     qualified, shown as int
    class Local: ...                    Local       -> Local            as written
    try: from a import C                C           -> C                as written: two meanings
    except ImportError: C = None

Scopes are those of Python: a class is seen from what stands directly in it, type parameters from the whole
definition, a function's imports from its body. All bindings of a name in the scope that has it count,
whatever their order; only if they are imports of one and the same thing is the name qualified, for which
branch runs is not decided here. The scopes of comprehensions are not known, so their targets count as bound
around them; a name that is declared global or nonlocal counts as bound in all functions around. A name may so
remain as written, but is not qualified wrongly (but for a `:=` among the bases of a class, which is taken for
a type parameter). A star import binds nothing that is known here; names that nothing binds are builtins or
unknown. Of these `Optional`, `Union` and the like are still taken for those of `typing`, as are names that
are imported from `typing` in one branch and from `typing_extensions` in another.

An identity is the name made unambiguous in the repository. It is the qualified name; a relative import is
seen from its folder, and what is local or unknown belongs to the scope of its file:

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

from codeanatomy.ids import stable_id
from codeanatomy.normalize.file_view import File

# What `typing` gives a meaning of its own; everything else in brackets is a generic.
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
# A name of one letter may be imported from a very long one, and be used very often.
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
# Of names that nothing in the file binds, as after a star import.
UNBOUND_FORMS: Mapping[str, Form] = {**_SPECIAL, **FORMS}

# What an identity begins with, if it is not an absolute name; neither can stand in a name.
LOCAL, RELATIVE = "\x01", "\x02"


class Name(Struct, frozen=True):
    """A dotted name in a type."""

    # Qualified where it was found, else as written.
    text: str
    is_qualified: bool
    # As a normal form has it: without `builtins`.
    shown: str
    identity: str
    form: Form | None = None


class Scope:
    """A scope and what it binds: per name the import that it stands for, or None for any other binding."""

    __slots__ = ("_known", "_mark", "bindings", "declared", "kind", "label", "parent", "path")

    def __init__(self, kind: ScopeKind, path: str, parent: Scope | None = None, label: str = "") -> None:
        self.kind = kind
        self.path = path
        self.parent = parent
        self.label = label
        self.bindings: dict[str, dict[str | None, None]] = {}
        # Names in `global` and `nonlocal`.
        self.declared: set[str] = set()
        self._known: dict[str, Name] = {}
        self._mark: str | None = None

    def bind(self, name: str, stands_for: str | None = None) -> None:
        """A name gets a value here; one that is declared to be from elsewhere, wherever that may be."""
        name = _plain(name)
        scopes = [self]
        if name in self.declared:
            # Whether `global` or `nonlocal` is not told.
            scopes = [scope for scope in self._outwards() if scope.kind in {"function", "module"}][1:]
        for scope in scopes:
            scope.bindings.setdefault(name, {})[stands_for] = None

    def resolve(self, dotted: str) -> Name:
        """What a dotted name means here; to be asked when all bindings are known."""
        if dotted not in self._known:
            self._known[dotted] = self._meaning(dotted)
        return self._known[dotted]

    def unknown(self, text: str) -> str:
        """The identity of something that means what it means in this scope."""
        if self._mark is None:
            # Names and not places: what is above in the file may change.
            labels = [scope.label for scope in self._outwards()]
            self._mark = f"{LOCAL}{stable_id('scope', self.path, *labels)}:"
        return f"{self._mark}{text}"

    @property
    def _root(self) -> Scope:
        scope = self
        while scope.parent:
            scope = scope.parent
        return scope

    @property
    def _is_in_class(self) -> bool:
        return any(scope.kind == "class" for scope in self._outwards())

    def _outwards(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope:
            yield scope
            scope = scope.parent

    def _meaning(self, dotted: str) -> Name:
        first, dot, rest = dotted.partition(".")
        if first.startswith("__") and not first.endswith("__") and self._is_in_class:
            # The compiler mangles it.
            return Name(dotted, False, dotted, self.unknown(dotted))
        home = self._home(first)
        if home is None:
            if first in BUILTINS:
                return _qualified(f"builtins.{dotted}", self.path, None)
            return Name(dotted, False, dotted, self._root.unknown(dotted), UNBOUND_FORMS.get(dotted))
        targets = [None if to is None else f"{to}{dot}{rest}" for to in home.bindings[first]]
        forms = {FORMS.get(target) if target else None for target in targets}
        form = forms.pop() if len(forms) == 1 else None
        if len(targets) == 1 and targets[0] is not None and len(targets[0]) <= MAX_CHARS:
            return _qualified(targets[0], self.path, form)
        return Name(dotted, False, dotted, home.unknown(dotted), form)

    def _home(self, name: str) -> Scope | None:
        """The scope whose binding of the name is seen here."""
        sees_class = True
        for scope in self._outwards():
            if name in scope.bindings and (scope.kind != "class" or sees_class):
                return scope
            # The type parameters of a method see its class, the method does not.
            sees_class = sees_class and scope.kind == "types"
        return None


class Scopes:
    """The scopes of a file, found by the definition they belong to."""

    def __init__(self, file: File) -> None:
        self.module = Scope("module", file.path)
        self._headers: dict[Span, Scope] = {}
        self._bodies: dict[Span, Scope] = {}
        self._build(file)

    def header(self, owner: Span | None) -> Scope:
        """Where the annotations of a definition's parameters and of its result are read."""
        scope = self._headers.get(owner, self.module) if owner else self.module
        # Nearly all are empty; without them all methods of a class share a scope, and what is known in it.
        while not scope.bindings and scope.kind == "types" and scope.parent:
            scope = scope.parent
        return scope

    def body(self, owner: Span | None) -> Scope:
        """Where the statements of a definition are."""
        return self._bodies.get(owner, self.module) if owner else self.module

    def _build(self, file: File) -> None:
        """From left to right over where scopes begin and names are bound; a stack holds the scopes around."""
        events = sorted((*_regions(file), *_bindings(file)), key=lambda event: event[:3])
        first_parameter: dict[Scope, int] = {}
        parameters: dict[Span, int] = {}
        for start, end, _, place in _rows(file, "params"):
            parameters[start, end] = min(place, parameters.get((start, end), place))
        around: list[tuple[int, Scope]] = [(-1, self.module)]
        for start, _, minus_end, what in events:
            while 0 <= around[-1][0] <= start:
                around.pop()
            scope = around[-1][1]
            if isinstance(what, _Region):
                inner = Scope(what.kind, file.path, scope, what.label)
                (self._headers if what.kind == "types" else self._bodies)[what.owner] = inner
                first_parameter[inner] = parameters.get(what.owner, -minus_end)
                around.append((-minus_end, inner))
            elif what.is_declaration:
                scope.declared.add(_plain(what.name))
            else:
                if scope.kind == "types" and scope.parent and start > first_parameter[scope]:
                    # After the type parameters: `:=` in a default or an annotation, which binds around.
                    scope = scope.parent
                scope.bind(what.name, what.stands_for)
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


# Place, scopes before bindings, minus the end so that outer scopes come first.
_Event: TypeAlias = tuple[int, bool, int, _Region | _Binding]


def _regions(file: File) -> Iterator[_Event]:
    """Two per definition: its body, and all of it from its name on, where its type parameters are seen."""
    for kind, name, start, end, name_end, body_start, body_end in _rows(file, "defs"):
        label = "<lambda>" if name is None else _plain(name)
        if name_end is not None:
            yield name_end, False, -end, _Region("types", (start, end), label)
        inner: ScopeKind = "class" if kind == "class" else "function"
        yield body_start, False, -body_end, _Region(inner, (start, end), label)


def _bindings(file: File) -> Iterator[_Event]:
    for kind, module, name, asname, level, is_star, start in _rows(file, "imports"):
        if is_star:
            continue
        if kind == "import":
            first = name.partition(".")[0]
            binding = _Binding(asname, _plain(name)) if asname else _Binding(first, _plain(first))
        else:
            package = "." * level + (f"{module}." if module else "")
            binding = _Binding(asname or name, _plain(f"{package}{name}"))
        yield start, True, 0, binding
    for kind, name, start, *_ in _rows(file, "defs"):
        if kind != "lambda":
            yield start, True, 0, _Binding(name)
    for text, kind, context, start in _rows(file, "refs"):
        if kind == "name" and context in {"store", "declare"}:
            yield start, True, 0, _Binding(text, is_declaration=context == "declare")


def _rows(file: File, name: str) -> Iterator[tuple[Any, ...]]:
    columns = file.libcst.get(name)
    return zip(*(columns[field] for field in LISTS[name]), strict=True) if columns else iter(())


def _qualified(text: str, path: str, form: Form | None) -> Name:
    identity = _seen_from_root(text, path) if text.startswith(".") else text
    return Name(text, True, text.removeprefix("builtins."), identity, form)


def _seen_from_root(relative: str, path: str) -> str:
    """The identity of a relative name: the folder that it starts in, and the name."""
    name = relative.lstrip(".")
    levels = len(relative) - len(name)
    folders = path.split("/")[:-1]
    above = levels - 1 - len(folders)
    # If it leaves the repository, how far is all that is known.
    home = folders[: len(folders) - levels + 1] if above <= 0 else [".."] * above
    return f"{RELATIVE}{stable_id('folder', *home)}:{name}"


def _plain(name: str) -> str:
    """The name as the compiler reads it."""
    return name if name.isascii() else normalize("NFKC", name)
