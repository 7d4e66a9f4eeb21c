"""A scope of a file, and what a name means in it.

    def outer(a):
        return lambda: a + n      Found("deref", outer, "a"), Found("global", module, "n")

The answers are those of the compiler's symbol table, word by word; only where it has none for a name is it
looked for from the inside to the outside. The home of a name is the scope that binds it:

- of a local variable its own; of a free one the function around that has it;
- of a global the module, if anything in the file binds it there, be it below a `global` in a function;
- in a class that binds it the class, though at run time it may be the global as long as it is not bound;
- of `__class__` in a method the class, which has a cell for it and no symbol.

Tests: `tests/unit/relate/test_scopes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count
from typing import Any, Literal, NamedTuple, TypeAlias

Family: TypeAlias = Literal["fast", "deref", "global", "name"]
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
# The compiler's type, name and line of a scope; null where it is not known which line the compiler takes.
Label: TypeAlias = tuple[str, str, int | None]

# Kinds of nodes.
COMPREHENSIONS = {
    "ListComp": "listcomp",
    "SetComp": "setcomp",
    "DictComp": "dictcomp",
    "GeneratorExp": "genexpr",
}
FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef"})
TYPE_VARIABLES = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple"})
# Scopes that see the names of a class directly around them.
SEES_CLASS = frozenset({"type_parameters", "type_variable", "type_alias", "annotation"})
# Cells that a class has for its methods, and no symbol of.
CLASS_CELLS = frozenset({"__class__", "__classdict__", "__conditional_annotations__"})


# What is read of a symbol.
SYMBOL_FIELDS = (
    "name",
    "is_declared_global",
    "is_nonlocal",
    "is_free",
    "is_local",
    "is_assigned",
    "is_imported",
)


class Found(NamedTuple):
    """How the compiler reaches a name, the scope that binds it, and its name there.

    Without a home it is a global that nothing in the file binds: a builtin, of a star import, or unknown.
    """

    family: Family
    home: Scope | None
    name: str


class Scope:
    """A scope of one file."""

    __slots__ = (
        "_found",
        "_places",
        "_symbols",
        "ast_id",
        "bound",
        "cells",
        "key",
        "kind",
        "label",
        "parent",
        "private",
        "state",
    )

    def __init__(
        self, kind: Kind, ast_id: int, label: Label, parent: Scope | None, private: str | None
    ) -> None:
        self.kind = kind
        # The node that makes it; for type parameters the definition that has them.
        self.ast_id = ast_id
        self.label = label
        self.parent = parent
        # Name of the innermost class around, with which private names are mangled.
        self.private = private
        self.key = ""
        # `listed` has a block, `made_up` binds what the tree says, of `lost` nothing is known.
        self.state: Literal["listed", "made_up", "lost"] = "lost"
        # Names it binds, mangled; of the module also those that are only assigned below a `global`.
        self.bound: set[str] = set()
        # Those of them that inner functions use; of a class those that its methods do.
        self.cells: set[str] = set()
        self._symbols: Mapping[str, Sequence[Any]] = {}
        self._places: dict[str, int] = {}
        self._found: dict[str, Found] = {}

    def __repr__(self) -> str:
        return f"<{self.kind} {self.key or self.label}>"

    def find(self, name: str) -> Found:
        """What a name, as written, means here."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._resolved(name)
        return found

    def mangled(self, name: str) -> str:
        """The name as the compiler spells it here."""
        if not name.startswith("__") or name.endswith("__") or not self.private:
            return name
        prefix = self.private.lstrip("_")
        spelled = f"_{prefix}{name}" if prefix else name
        # From 3.13 on bases beside type parameters are not mangled; what is in the table is right.
        return spelled if spelled in self._places or name not in self._places else name

    def declares(self, name: str) -> Literal["global", "nonlocal", "free"] | None:
        """Why a name that is used here has its home elsewhere in the file; null if it is plainly global."""
        at = self._places.get(self.mangled(name))
        if at is None:
            return None
        if self._symbols["is_declared_global"][at]:
            return "global"
        if self._symbols["is_nonlocal"][at]:
            return "nonlocal"
        return "free" if self._symbols["is_free"][at] else None

    def listed(self) -> set[str]:
        """Names that it binds or has from other scopes by its symbols; what is only read is not its own."""
        flags = ("is_local", "is_free", "is_declared_global", "is_nonlocal")
        return {name for flag in flags for name in self._those(flag)}

    def unlisted(self) -> set[str]:
        """Names that have their home here and no symbol that says so."""
        return (self.bound | self.cells) - self.listed()

    def imported(self) -> set[str]:
        """Names that an import binds here."""
        return set(self._those("is_imported"))

    def assigned_globals(self) -> set[str]:
        """Names that a `global` makes the module's, and that are bound here."""
        declared = set(self._those("is_declared_global"))
        return declared and declared.intersection([*self._those("is_assigned"), *self._those("is_imported")])

    def free(self) -> Iterable[str]:
        """Names that it has from a function or class around it, to use them or to hand them through."""
        return self._those("is_free")

    def find_cells(self) -> None:
        """Note in the scopes around what this one uses of them; outer scopes must come first."""
        for name in self.free():
            home = self._function_around(name)
            if home is not None:
                home.cells.add(name)
            self._found[name] = Found("deref", self._class_around(name) or home, name)

    def _those(self, flag: str) -> Iterable[str]:
        return compress(self._symbols["name"], self._symbols[flag]) if self._symbols else ()

    def take(self, key: str, symbols: Mapping[str, Sequence[Any]]) -> None:
        """Become the compiler's block of this key."""
        self.key, self.state = key, "listed"
        self._symbols = symbols
        self._places = dict(zip(symbols["name"], count()))
        self.bound = set(self._those("is_local"))

    def _resolved(self, written: str) -> Found:
        name = self.mangled(written)
        if self.state == "lost":
            return Found("name", None, name)
        at = self._places.get(name)
        if at is None:
            return self._by_rule(name)
        if self._symbols["is_declared_global"][at]:
            return Found("global", _module(self, name), name)
        if name in self.bound:
            return Found(self._local(name), self, name)
        seen = self._class_around(name)
        if self._symbols["is_free"][at]:
            return Found("deref", seen or self._function_around(name), name)
        plain = self.kind in {"module", "class"}
        return Found("name" if plain else "global", seen or _module(self, name), name)

    def _by_rule(self, name: str) -> Found:
        """Of a name without a symbol here: the code is put into that around it, or never evaluated."""
        if name in self.bound:
            return Found(self._local(name), self, name)
        parent = self.parent
        # A comprehension does not see the names of a class, an annotation does.
        is_seeing = self.kind == "annotation" or (
            self.kind == "comprehension" and parent and parent.kind != "class"
        )
        if parent is not None and self.state == "made_up" and is_seeing:
            return parent.find(name)
        home = self._class_around(name) or self._function_around(name)
        if home is not None:
            return Found("deref", home, name)
        plain = self.kind in {"module", "class"}
        return Found("name" if plain else "global", _module(self, name), name)

    def _local(self, name: str) -> Family:
        if self.kind in {"module", "class"}:
            return "name"
        return "deref" if name in self.cells else "fast"

    def _class_around(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and scope.kind in SEES_CLASS and name not in scope.bound:
            scope = scope.parent
        if scope is self or scope is None or scope.kind != "class" or name not in scope.bound:
            return None
        return scope

    def _function_around(self, name: str) -> Scope | None:
        """The nearest function around that binds the name, as far as it is not overruled on the way."""
        scope = self.parent
        while scope is not None and scope.kind != "module":
            if scope.kind == "class":
                if name in CLASS_CELLS:
                    scope.cells.add(name)
                    return scope
            elif name in scope.bound:
                return scope
            else:
                known = scope._found.get(name)  # noqa: SLF001 - one of us
                if known is not None and known.family == "deref" and known.name == name:
                    return known.home
                at = scope._places.get(name)  # noqa: SLF001
                if at is not None and scope._symbols["is_declared_global"][at]:  # noqa: SLF001
                    return None
            scope = scope.parent
        return None


def _module(scope: Scope, name: str) -> Scope | None:
    """The module, if it binds the name."""
    top = scope
    while top.parent is not None:
        top = top.parent
    return top if name in top.bound else None
