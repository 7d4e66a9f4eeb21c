"""Resolve a name in a scope of a file, as the compiler does.

    def outer(a):
        return lambda: a + n      NameBinding("deref", outer, "a"), NameBinding("global", module, "n")

Names are resolved by the compiler's symbol table; only a name without a symbol there is looked up from the
inside out. The binding scope of a name is:

- for a local variable its own scope; for a free one the enclosing function that binds it;
- for a global the module, if anything in the file binds it there, also after `global` in a function;
- in a class that binds it the class, though at run time it may be the global until the class binds it;
- for `__class__` in a method the class, which has a cell for it and no symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from codeanatomy.syntax_tree import CLASS_CELLS

# Instructions by which compiled code accesses a name: LOAD_FAST, LOAD_DEREF, LOAD_GLOBAL, LOAD_NAME.
Access: TypeAlias = Literal["fast", "deref", "global", "name"]
Kind: TypeAlias = Literal[
    "module",
    "class",
    "function",
    "lambda",
    "comprehension",
    "type_parameters",
    "type_variable",
    "type_alias",
    "annotation",
]
# The compiler's type, name and line of a scope; None if the line that the compiler takes is not known.
Label: TypeAlias = tuple[str, str, int | None]

# Kinds of scopes that see the names of the class directly enclosing them.
SEES_CLASS = frozenset({"type_parameters", "type_variable", "type_alias", "annotation"})


class NameBinding(NamedTuple):
    """How compiled code accesses a name, the scope that binds it, and its mangled name there.

    Without a binding scope it is a global that the file does not bind: a builtin, from a star import, or
    undefined.
    """

    access: Access
    binding_scope: Scope | None
    name: str


class Scope(Struct, eq=False):
    """A scope of one file."""

    kind: Kind
    # The syntax node that opens it; for type parameters the definition that has them.
    ast_id: int
    label: Label
    parent: Scope | None
    # Name of the innermost enclosing class, with which private names are mangled.
    private: str | None
    # Key of its block in the symbol table; after `scope_tree.name_scopes` the id of its node.
    key: str = ""
    # `matched` has a block of the symbol table, `synthetic` binds what the tree binds in it, of
    # `unmatched` nothing is known.
    state: Literal["matched", "synthetic", "unmatched"] = "unmatched"
    # Names it binds, mangled; for the module also those only assigned after `global` in a function.
    bound: set[str] = set()
    # Those of them that inner functions use; for a class those that its methods use.
    cells: set[str] = set()
    # Variables of comprehensions that the compiler inlines into it.
    inlined: set[str] = set()
    _symbols: Mapping[str, Sequence[Any]] = {}
    # Position of each symbol in the columns of `_symbols`.
    _symbol_index: dict[str, int] = {}
    _resolved: dict[str, NameBinding] = {}

    def resolve(self, name: str) -> NameBinding:
        """Resolve a name, as written, in this scope."""
        resolved = self._resolved.get(name)
        if resolved is None:
            resolved = self._resolved[name] = self._resolve(name)
        return resolved

    def forget_names(self) -> None:
        """Break the cycles from names to the scope that binds them; without these nothing waits for `gc`."""
        self._resolved.clear()

    def mangled(self, name: str) -> str:
        """Return the name as the compiler mangles it in this scope."""
        if not name.startswith("__") or name.endswith("__") or not self.private:
            return name
        prefix = self.private.lstrip("_")
        mangled = f"_{prefix}{name}" if prefix else name
        # Since 3.13 bases of a class with type parameters are not mangled; the symbol table decides.
        return mangled if mangled in self._symbol_index or name not in self._symbol_index else name

    def declares(self, name: str) -> Literal["global", "nonlocal", "free"] | None:
        """Return why another scope of the file binds a name used here; None for an undeclared global."""
        at = self._symbol_index.get(self.mangled(name))
        if at is None:
            return None
        if self._symbols["is_declared_global"][at]:
            return "global"
        if self._symbols["is_nonlocal"][at]:
            return "nonlocal"
        return "free" if self._symbols["is_free"][at] else None

    def symbol_names(self) -> set[str]:
        """Return the names that are local, free or declared by symbols; not those that are only read."""
        flags = ("is_local", "is_free", "is_declared_global", "is_nonlocal")
        return {name for flag in flags for name in self.names_with(flag)}

    def names_without_symbol(self) -> set[str]:
        """Return the names that this scope binds without a symbol for it."""
        return (self.bound | self.cells) - self.symbol_names()

    def assigned_globals(self) -> set[str]:
        """Return the names that are declared `global` and bound here."""
        declared = set(self.names_with("is_declared_global"))
        return declared and declared.intersection(
            [*self.names_with("is_assigned"), *self.names_with("is_imported")]
        )

    def find_cells(self) -> None:
        """Add the free names of this scope to the cells of their scopes; outer scopes must come first."""
        for name in self.names_with("is_free"):
            function = self._enclosing_function(name)
            if function is not None:
                function.cells.add(name)
            self._resolved[name] = NameBinding("deref", self._enclosing_class(name) or function, name)

    def names_with(self, flag: str) -> Iterable[str]:
        """Return the names of symbols with a flag, such as `is_free`: bound by an enclosing scope."""
        return compress(self._symbols["name"], self._symbols[flag]) if self._symbols else ()

    def match(self, key: str, symbols: Mapping[str, Sequence[Any]]) -> None:
        """Match this scope with the block of the symbol table that has this key."""
        self.key, self.state = key, "matched"
        self._symbols = symbols
        self._symbol_index = dict(zip(symbols["name"], count()))
        self.bound = set(self.names_with("is_local"))

    def _resolve(self, written: str) -> NameBinding:
        name, parent = self.mangled(written), self.parent
        if self.state == "unmatched":
            return NameBinding("name", None, name)
        at, is_unoptimized = self._symbol_index.get(name), self.kind in {"module", "class"}
        if at is not None and self._symbols["is_declared_global"][at]:
            return NameBinding("global", _binding_module(self, name), name)
        if name in self.bound:
            return NameBinding(
                "name" if is_unoptimized else "deref" if name in self.cells else "fast", self, name
            )
        # Of code that the compiler inlines or never evaluates, a comprehension does not
        # see the names of a class, an annotation does.
        is_inlined = at is None and self.state == "synthetic" and self.kind in {"annotation", "comprehension"}
        if is_inlined and parent is not None and (self.kind == "annotation" or parent.kind != "class"):
            return parent.resolve(name)
        cls = self._enclosing_class(name)
        is_free = at is not None and self._symbols["is_free"][at]
        if is_free or at is None:
            binding_scope = cls or self._enclosing_function(name)
            if is_free or binding_scope is not None:
                return NameBinding("deref", binding_scope, name)
        return NameBinding("name" if is_unoptimized else "global", cls or _binding_module(self, name), name)

    def _enclosing_class(self, name: str) -> Scope | None:
        """Return the class whose names this scope sees, if the class binds the name."""
        scope: Scope | None = self
        while scope is not None and scope.kind in SEES_CLASS and name not in scope.bound:
            scope = scope.parent
        if scope is self or scope is None or scope.kind != "class" or name not in scope.bound:
            return None
        return scope

    def _enclosing_function(self, name: str) -> Scope | None:
        """Return the nearest enclosing function that binds the name; None if a `global` comes first."""
        scope = self.parent
        while scope is not None and scope.kind != "module":
            if scope.kind == "class":
                if name in CLASS_CELLS:
                    scope.cells.add(name)
                    return scope
            elif name in scope.bound:
                return scope
            else:
                known = scope._resolved.get(name)  # noqa: SLF001 - same class
                if known is not None and known.access == "deref" and known.name == name:
                    return known.binding_scope
                at = scope._symbol_index.get(name)  # noqa: SLF001
                if at is not None and scope._symbols["is_declared_global"][at]:  # noqa: SLF001
                    return None
            scope = scope.parent
        return None


def _binding_module(scope: Scope, name: str) -> Scope | None:
    """Return the scope of the module if it binds the name, else None."""
    top = scope
    while top.parent is not None:
        top = top.parent
    return top if name in top.bound else None
