"""Resolve dotted names to qualified names by the bindings of one file.

    from os import path          # module: path -> os.path (import)
    class Cls:
        def method(self):        # Cls: method -> Cls.method (local)
            path.join(self)      # os.path.join (import)
            self.run()           # Cls.method.<locals>.self.run (local)
            print()              # builtins.print (builtin)

The rules are those of LibCST's `QualifiedNameProvider` for a call: all bindings of a name in the scope that
has it count, in any order; each gives one candidate. Where Python differs, Python's rules are used:

* the first part of a name selects the scope, so a local `a` hides an `import a.b` of the module;
* `:=` in a comprehension binds in the function around it, `nonlocal` in the function that has the name;
* captures of patterns, names of `type` statements and type parameters are bindings;
* attributes of a builtin are kept (`builtins.str.join`), and names that every module has (`__name__`,
  `__doc__`) are not builtins.

Names are compared as the compiler does, in Unicode's form NFKC. The names bound by star imports are not
known.

Tests: `tests/unit/extract/test_libcst_qualified_names.py`.
"""

from __future__ import annotations

import builtins
from typing import Literal, TypeAlias
from unicodedata import normalize

BindingSource: TypeAlias = Literal["local", "import", "builtin"]
ScopeKind: TypeAlias = Literal["module", "class", "function", "lambda", "comprehension", "types"]
Candidates: TypeAlias = dict[str, list[str]]

BUILTINS = frozenset(dir(builtins)) - {"_", "__doc__", "__loader__", "__name__", "__package__", "__spec__"}
# Kinds of scopes that are not definitions.
TRANSPARENT = frozenset({"comprehension", "types"})


class NameScope:
    """A scope, its bindings, and the definition it belongs to."""

    __slots__ = ("_cache", "bindings", "globals", "kind", "nonlocals", "parent", "prefix", "span")

    def __init__(
        self,
        kind: ScopeKind = "module",
        parent: NameScope | None = None,
        name: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.kind = kind
        self.parent = parent
        # Span of the definition.
        self.span = span
        self.prefix: str = _prefix(kind, parent.prefix if parent else "", name)
        # By name, in order of appearance: the qualified name and the source of each binding.
        self.bindings: dict[str, dict[tuple[str, BindingSource], None]] = {}
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self._cache: dict[str, Candidates] = {}

    @property
    def root(self) -> NameScope:
        """The scope of the module."""
        scope = self
        while scope.parent:
            scope = scope.parent
        return scope

    @property
    def definition(self) -> NameScope:
        """The innermost module, class, function or lambda."""
        scope = self
        while scope.kind in TRANSPARENT and scope.parent:
            scope = scope.parent
        return scope

    @property
    def without_comprehensions(self) -> NameScope:
        """The innermost scope that is not a comprehension, in which `:=` binds."""
        scope = self
        while scope.kind == "comprehension" and scope.parent:
            scope = scope.parent
        return scope

    def bind(self, name: str) -> None:
        """Bind a name to a local value."""
        name = normalize_name(name)
        # A nonlocal name has the same binding in the function that has it.
        if name not in self.nonlocals:
            scope = self._binding_scope(name)
            scope.record(name, f"{scope.prefix}{name}", "local")

    def bind_import(self, name: str, qualified: str) -> None:
        """Bind a name to an imported object; it may be dotted if it is its own qualified name."""
        name = normalize_name(name)
        self._binding_scope(name).record(name, normalize_name(qualified), "import")

    def record(self, name: str, qualified: str, source: BindingSource) -> None:
        """Add a binding to this scope, regardless of `global` and `nonlocal`."""
        self.bindings.setdefault(name, {})[qualified, source] = None

    def _binding_scope(self, name: str) -> NameScope:
        """Return the scope in which a name of this scope is bound."""
        if name in self.globals:
            return self.root
        if name in self.nonlocals and (scope := self._outer_function(name)):
            return scope
        return self

    def _outer_function(self, name: str) -> NameScope | None:
        scope = self.parent
        while scope and not (scope.kind in {"function", "lambda"} and name in scope.bindings):
            scope = scope.parent
        return scope

    def defined(self, name: str) -> Candidates:
        """Return the qualified name of a function or class defined here, once all bindings are known."""
        name = normalize_name(name)
        return {"name": [f"{self._binding_scope(name).prefix}{name}"], "source": ["local"]}

    def resolve(self, dotted: str | None) -> Candidates:
        """Return the qualified names that a dotted name may have here, once all bindings are known."""
        if dotted is None:
            return NO_CANDIDATES
        if dotted not in self._cache:
            self._cache[dotted] = self._candidates(normalize_name(dotted))
        return self._cache[dotted]

    def _candidates(self, dotted: str) -> Candidates:
        first = dotted.partition(".")[0]
        scope = self._scope_with(first)
        if scope is None:
            is_builtin = first in BUILTINS
            return {"name": [f"builtins.{dotted}"], "source": ["builtin"]} if is_builtin else NO_CANDIDATES
        # After `import a.b`, all of `a.b` is bound.
        bound = dotted
        while bound not in scope.bindings:
            bound = bound.rpartition(".")[0]
        bindings, rest = scope.bindings[bound], dotted[len(bound) :]
        return {
            "name": [f"{qualified}{rest}" for qualified, _ in bindings],
            "source": [source for _, source in bindings],
        }

    def _scope_with(self, name: str) -> NameScope | None:
        """Return the scope with the binding of a name that is visible here."""
        scope: NameScope | None = self
        while scope:
            if name in scope.globals:
                scope = self.root
            if name in scope.bindings and name not in scope.nonlocals:
                return scope
            scope = scope.parent
            while scope and scope.kind == "class" and not self._sees(scope):
                scope = scope.parent
        return None

    def _sees(self, outer: NameScope) -> bool:
        """Return whether names of a class are visible: in type parameters of its functions, not in these."""
        return self.kind == "types" and self.parent is outer


NO_CANDIDATES: Candidates = {"name": [], "source": []}


def normalize_name(name: str) -> str:
    """Normalize a name as the compiler does."""
    return name if name.isascii() else normalize("NFKC", name)


def _prefix(kind: ScopeKind, outer: str, name: str | None) -> str:
    """Return the prefix of the qualified names of a scope, with the dot."""
    if kind in {"function", "lambda"}:
        return f"{outer}{normalize_name(name)}.<locals>." if name else f"{outer}<locals>."
    if kind == "comprehension":
        return f"{outer}<comprehension>."
    return f"{outer}{normalize_name(name)}." if kind == "class" and name else outer
