"""Qualified names by the bindings of one file: scopes, what they bind, and what a dotted name may mean.

    from os import path          # module: path -> os.path (import)
    class Cls:
        def method(self):        # Cls: method -> Cls.method (local)
            path.join(self)      # os.path.join (import)
            self.run()           # Cls.method.<locals>.self.run (local)
            print()              # builtins.print (builtin)

The rules are those of LibCST's `QualifiedNameProvider` for a call: all bindings of a name in the scope that
has it count, whatever their order; each gives one candidate. Where Python says otherwise, Python is followed:

* a scope is found by the first part of a name, so a local `a` hides an `import a.b` of the module;
* `:=` in a comprehension binds in the function around it, `nonlocal` in the function that has the name;
* captures of patterns, names of `type` statements and type parameters are bindings;
* what follows a builtin is kept (`builtins.str.join`), and names that every module has (`__name__`,
  `__doc__`) are not builtins.

Names are compared as the compiler does, in Unicode's form NFKC. Star imports bind nothing that is known here.

Tests: `tests/unit/extract/test_libcst_qualified_names.py`.
"""

from __future__ import annotations

import builtins
from typing import Literal, TypeAlias
from unicodedata import normalize

Source: TypeAlias = Literal["local", "import", "builtin"]
ScopeKind: TypeAlias = Literal["module", "class", "function", "lambda", "comprehension", "types"]
Candidates: TypeAlias = dict[str, list[str]]

BUILTINS = frozenset(dir(builtins)) - {"_", "__doc__", "__loader__", "__name__", "__package__", "__spec__"}
# What has a scope and is not a definition.
TRANSPARENT = frozenset({"comprehension", "types"})


class Scope:
    """A scope, what it binds, and the definition it belongs to."""

    __slots__ = ("_cache", "bindings", "globals", "kind", "nonlocals", "parent", "prefix", "span")

    def __init__(
        self,
        kind: ScopeKind = "module",
        parent: Scope | None = None,
        name: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.kind = kind
        self.parent = parent
        # Span of the definition.
        self.span = span
        self.prefix: str = _prefix(kind, parent.prefix if parent else "", name)
        # Per name, in order of appearance: what it may stand for, and how it came to be.
        self.bindings: dict[str, dict[tuple[str, Source], None]] = {}
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self._cache: dict[str, Candidates] = {}

    @property
    def root(self) -> Scope:
        """The scope of the module."""
        scope = self
        while scope.parent:
            scope = scope.parent
        return scope

    @property
    def definition(self) -> Scope:
        """The module, class, function or lambda around this place."""
        scope = self
        while scope.kind in TRANSPARENT and scope.parent:
            scope = scope.parent
        return scope

    @property
    def without_comprehensions(self) -> Scope:
        """Where `:=` binds."""
        scope = self
        while scope.kind == "comprehension" and scope.parent:
            scope = scope.parent
        return scope

    def bind(self, name: str) -> None:
        """A name gets a value here."""
        name = plain(name)
        # The function that has a nonlocal name binds it to the same effect.
        if name not in self.nonlocals:
            home = self._home(name)
            home.record(name, f"{home.prefix}{name}", "local")

    def bind_import(self, name: str, stands_for: str) -> None:
        """A name gets what is imported; the name may be dotted if it stands for itself."""
        name = plain(name)
        self._home(name).record(name, plain(stands_for), "import")

    def record(self, name: str, stands_for: str, source: Source) -> None:
        """Exactly here, whatever is declared."""
        self.bindings.setdefault(name, {})[stands_for, source] = None

    def _home(self, name: str) -> Scope:
        """The scope that a binding of this name goes to."""
        if name in self.globals:
            return self.root
        if name in self.nonlocals and (scope := self._outer_function(name)):
            return scope
        return self

    def _outer_function(self, name: str) -> Scope | None:
        scope = self.parent
        while scope and not (scope.kind in {"function", "lambda"} and name in scope.bindings):
            scope = scope.parent
        return scope

    def defined(self, name: str) -> Candidates:
        """The qualified name of a function or class defined here; to be asked when all bindings are known."""
        name = plain(name)
        return {"name": [f"{self._home(name).prefix}{name}"], "source": ["local"]}

    def resolve(self, dotted: str | None) -> Candidates:
        """What a dotted name may mean here; to be asked when all bindings are known."""
        if dotted is None:
            return NOTHING
        if dotted not in self._cache:
            self._cache[dotted] = self._candidates(plain(dotted))
        return self._cache[dotted]

    def _candidates(self, dotted: str) -> Candidates:
        first = dotted.partition(".")[0]
        scope = self._scope_with(first)
        if scope is None:
            return {"name": [f"builtins.{dotted}"], "source": ["builtin"]} if first in BUILTINS else NOTHING
        # After `import a.b`, all of `a.b` is bound.
        bound = dotted
        while bound not in scope.bindings:
            bound = bound.rpartition(".")[0]
        meanings, rest = scope.bindings[bound], dotted[len(bound) :]
        return {
            "name": [f"{stands_for}{rest}" for stands_for, _ in meanings],
            "source": [source for _, source in meanings],
        }

    def _scope_with(self, name: str) -> Scope | None:
        """The scope whose binding of the name is seen here."""
        scope: Scope | None = self
        while scope:
            if name in scope.globals:
                scope = self.root
            if name in scope.bindings and name not in scope.nonlocals:
                return scope
            scope = scope.parent
            while scope and scope.kind == "class" and not self._sees(scope):
                scope = scope.parent
        return None

    def _sees(self, outer: Scope) -> bool:
        """Classes are not seen from the functions in them, but from the type parameters of these."""
        return self.kind == "types" and self.parent is outer


NOTHING: Candidates = {"name": [], "source": []}


def plain(name: str) -> str:
    """The name as the compiler reads it."""
    return name if name.isascii() else normalize("NFKC", name)


def _prefix(kind: ScopeKind, outer: str, name: str | None) -> str:
    """What stands before the names of a scope, its dot included."""
    if kind in {"function", "lambda"}:
        return f"{outer}{plain(name)}.<locals>." if name else f"{outer}<locals>."
    if kind == "comprehension":
        return f"{outer}<comprehension>."
    return f"{outer}{plain(name)}." if kind == "class" and name else outer
