"""Read definitions, signatures, docstrings, members and certain uses of names from sources.

    sources = Sources(Path("flask-3.1.3"))
    sources.definitions["flask.helpers.url_for"][0].line     # 195
    sources.uses["flask.helpers.url_for"]                    # Counter({("flask/app.py", 55): 1, ...})

Uses `ast` alone and no code of the product, so that answers can be compared with it. A use is
certain if the name is bound in no scope between the use and its module, and in the module in one way only: by
the definition itself, or by one import that leads there in the same manner. Everything else is left out, so
the uses are a lower bound. Tests: `tests/unit/query/test_ask_oracle.py`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

Kind = Literal["FUNCTION", "CLASS", "MODULE", "BINDING"]
Owner = Literal["module", "class", "function"]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Place: TypeAlias = tuple[str, int]
# A name with several kinds has the first of these.
RANKS: tuple[Kind, ...] = ("CLASS", "FUNCTION", "MODULE", "BINDING")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Definition:
    """A function, class, module or variable, where it is defined."""

    qualname: str
    kind: Kind
    path: str
    line: int
    # What it is directly inside of.
    owner: Owner = "module"
    node: ast.AST | None = None

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.qualname.rsplit(".", 1)[-1]

    @property
    def signature(self) -> str | None:
        """Its source up to the colon, without decorators."""
        if isinstance(self.node, ast.ClassDef):
            given = [*map(ast.unparse, self.node.bases), *map(ast.unparse, self.node.keywords)]
            return f"class {self.node.name}({', '.join(given)})" if given else f"class {self.node.name}"
        if isinstance(self.node, Function):
            word = "async def" if isinstance(self.node, ast.AsyncFunctionDef) else "def"
            returns = f" -> {ast.unparse(self.node.returns)}" if self.node.returns else ""
            return f"{word} {self.node.name}({ast.unparse(self.node.args)}){returns}"
        return None

    @property
    def docstring(self) -> str | None:
        """Its docstring."""
        if isinstance(self.node, Function | ast.ClassDef | ast.Module):
            return ast.get_docstring(self.node)
        return None


class Found(NamedTuple):
    """A definition and its place."""

    qualname: str
    kind: str
    path: str
    line: int


@dataclass
class Scope:
    """A scope that binds names."""

    kind: Literal["module", "class", "function", "comprehension"]
    qualname: str
    around: Scope | None
    # How each name is bound: `def`, `import`, or anything else.
    bound: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    # Names that are declared global.
    elsewhere: set[str] = field(default_factory=set)
    # Of a class and a module: lambdas, functions and classes directly inside.
    members: int = 0

    @property
    def module(self) -> Scope:
        """The scope of the whole file."""
        return self if self.around is None else self.around.module

    def bind(self, name: str, way: str) -> None:
        """Bind a name in this scope."""
        home = self.module if name in self.elsewhere else self
        home.bound[name].append(way)


@dataclass
class Module(ast.NodeVisitor):
    """A file: its definitions and imports, and the places of names."""

    name: str
    path: str
    tree: ast.Module
    lines: list[str]
    definitions: list[Definition] = field(default_factory=list)
    # What imported names stand for: the module, and the name in it if it is one.
    imports: dict[str, list[tuple[str, str | None]]] = field(default_factory=lambda: defaultdict(list))
    # Names in imports: module, name in it, line.
    imported: list[tuple[str, str | None, int]] = field(default_factory=list)
    # Every name that is read or written, and every chain of attributes that begins with a name.
    said: list[tuple[Scope, tuple[str, ...], int]] = field(default_factory=list)
    aliases: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    has_star: bool = False
    # Names that comprehensions bind, by the identity of their nodes.
    targets: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.top = self.scope = Scope("module", self.name, None)
        self.scopes = {self.name: self.top}
        self.definitions.append(Definition(self.name, "MODULE", self.path, 1, node=self.tree))
        self.visit(self.tree)

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]

    def visit_FunctionDef(self, node: Function) -> None:
        """A function: its decorators, defaults and annotations are read around it."""
        self.scope.bind(node.name, "def")
        self.scope.members += 1
        self._visit_all(node.decorator_list, [node.args], [node.returns] if node.returns else [])
        inner = self._define(node, "FUNCTION", "function")
        for parameter in _parameters(node.args):
            inner.bind(parameter.arg, "parameter")
        self._inside(inner, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name is the base class's

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A class: its bases are read around it."""
        self.scope.bind(node.name, "def")
        self.scope.members += 1
        self._visit_all(node.decorator_list, node.bases, node.keywords)
        self._inside(self._define(node, "CLASS", "class"), node.body)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A function without a name, that is a member all the same."""
        self.scope.members += 1
        self.visit(node.args)
        inner = Scope("function", f"{self.scope.qualname}.<lambda>", self.scope)
        for parameter in _parameters(node.args):
            inner.bind(parameter.arg, "parameter")
        self._inside(inner, [node.body])

    def visit_arguments(self, node: ast.arguments) -> None:
        """Defaults and annotations; the names of parameters are bound by their function."""
        annotations = [each.annotation for each in _parameters(node) if each.annotation]
        self._visit_all(annotations, node.defaults, [each for each in node.kw_defaults if each])

    def generic_visit(self, node: ast.AST) -> None:
        """Whatever else; comprehensions are scopes, and some statements bind plain texts."""
        if isinstance(node, COMPREHENSIONS):
            self._inside(Scope("comprehension", self.scope.qualname, self.scope), ast.iter_child_nodes(node))
            return
        if isinstance(node, ast.Global):
            self.scope.elsewhere.update(node.names)
        if isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                # Whatever it is bound to, nothing of that name is beyond doubt.
                self.scope.bind(name, "declared")
        for bound in _plain_names(node):
            self.scope.bind(bound, "other")
        super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """A name that is read, bound or deleted."""
        self.said.append((self.scope, (node.id,), node.lineno))
        if not isinstance(node.ctx, ast.Load):
            scope = self.scope
            while scope.kind == "comprehension" and scope.around and id(node) not in self.targets:
                scope = scope.around
            scope.bind(node.id, "other")
            home = scope.module if node.id in scope.elsewhere else scope
            if home.kind in ("module", "class") and isinstance(node.ctx, ast.Store):
                name, owner = f"{home.qualname}.{node.id}", self._owner(home)
                self.definitions.append(Definition(name, "BINDING", self.path, node.lineno, owner))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """An attribute; the line is that of its own name."""
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self.said.append((self.scope, (inner.id, *reversed(parts)), node.end_lineno or node.lineno))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """What it binds is its own."""
        self.targets.update(map(id, ast.walk(node.target)))
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """Modules, by the first part of their names or by an alias."""
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self._imports(bound, alias.name if alias.asname else bound, None)
            self.imported.append((alias.name, None, alias.lineno))
            if alias.asname:
                self.aliases[alias.name.rpartition(".")[-1]].add(alias.asname)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Names of a module."""
        outer = self.package.split(".")
        start = outer[: len(outer) - node.level + 1] if node.level else []
        module = ".".join([*start, *([node.module] if node.module else [])])
        for alias in node.names:
            if alias.name == "*":
                self.has_star = True
                continue
            self._imports(alias.asname or alias.name, module, alias.name)
            self.imported.append((module, alias.name, alias.lineno))
            if alias.asname:
                self.aliases[alias.name].add(alias.asname)

    def _imports(self, bound: str, module: str, name: str | None) -> None:
        self.scope.bind(bound, "import")
        if self.scope is self.top:
            self.imports[bound].append((module, name))

    def _define(
        self, node: Function | ast.ClassDef, kind: Kind, scope: Literal["function", "class"]
    ) -> Scope:
        qualname = f"{self.scope.qualname}.{node.name}"
        self.definitions.append(
            Definition(qualname, kind, self.path, node.lineno, self._owner(self.scope), node)
        )
        inner = Scope(scope, qualname, self.scope)
        self.scopes[qualname] = inner
        return inner

    def _owner(self, scope: Scope) -> Owner:
        if scope is self.top:
            return "module"
        return "class" if scope.kind == "class" else "function"

    def _inside(self, scope: Scope, nodes: Iterable[ast.AST]) -> None:
        outer, self.scope = self.scope, scope
        self._visit_all(nodes)
        self.scope = outer

    def _visit_all(self, *groups: Iterable[ast.AST]) -> None:
        for group in groups:
            for node in group:
                self.visit(node)


class Sources:
    """The modules below a folder."""

    def __init__(self, folder: Path) -> None:
        read = (_read(folder, file) for file in sorted(folder.rglob("*.py")))
        self.modules = {module.name: module for module in read}
        self.definitions: dict[str, list[Definition]] = defaultdict(list)
        for module in self.modules.values():
            for each in module.definitions:
                self.definitions[each.qualname].append(each)
        self.by_path = {module.path: module for module in self.modules.values()}
        self._followed: set[tuple[str, str]] = set()

    @cached_property
    def found(self) -> dict[str, set[Found]]:
        """The expected rows of `find`, by bare name."""
        by_name: dict[str, set[Found]] = defaultdict(set)
        for qualname, defined in self.definitions.items():
            kind = min((each.kind for each in defined), key=RANKS.index)
            same = [each for each in defined if each.kind == kind]
            # A function that is defined again is what it was last; a variable begins where it is first set.
            line = same[0].line if kind == "BINDING" else same[-1].line
            by_name[same[0].name].add(Found(qualname, kind, same[0].path, line))
        return by_name

    def places(self, found: Found) -> list[Found]:
        """All places of a definition; of a variable the first."""
        if found.kind == "BINDING":
            return [found]
        same = [each for each in self.definitions[found.qualname] if each.kind == found.kind]
        return [found._replace(line=each.line) for each in same]

    @cached_property
    def uses(self) -> dict[str, Counter[Place]]:
        """The certain uses of each definition, counted by line."""
        found: dict[str, Counter[Place]] = defaultdict(Counter)
        for module in self.modules.values():
            for imported, name, line in module.imported:
                if target := self._imported(imported, name):
                    found[target][module.path, line] += 1
            for scope, said, line in module.said:
                if target := self._meant(module, scope, said):
                    found[target][module.path, line] += 1
        return found

    def spelled(self, qualname: str, path: str, line: int) -> bool:
        """Return whether a line contains the name of a definition, or an alias that its file has for it.

        The names that an import takes from a module mean the module too, and `__class__` may mean any class.
        """
        module, name = self.by_path[path], qualname.rsplit(".", 1)[-1]
        names = {name, *module.aliases[name]}
        if any(each.kind == "CLASS" for each in self.definitions[qualname]):
            names.add("__class__")
        words = set(re.findall(r"\w+", module.lines[line - 1]))
        imported = {(source, at) for source, _, at in module.imported}
        return not words.isdisjoint(names) or (qualname, line) in imported

    def members(self, qualname: str) -> int:
        """Count the functions, lambdas and classes directly inside a definition."""
        homes = [module.scopes[qualname] for module in self.modules.values() if qualname in module.scopes]
        return sum(scope.members for scope in homes)

    def _meant(self, module: Module, scope: Scope, said: tuple[str, ...]) -> str | None:
        first, *rest = said
        around: Scope | None = scope
        while around is not None and around is not module.top:
            if first in around.bound or first in around.elsewhere:
                return None
            around = around.around
        target = self._of_module(module, first)
        for name in rest:
            if target is None:
                return None
            target = self._member(target, name)
        return target

    def _of_module(self, module: Module, name: str) -> str | None:
        """Resolve a name of a module, if it is bound in one way only."""
        ways = set(module.top.bound.get(name, ()))
        if len(ways) != 1 or module.has_star:
            return None
        if ways == {"import"}:
            origins = module.imports[name]
            return self._imported(*origins[0]) if len(origins) == 1 else None
        qualname = f"{module.name}.{name}"
        return qualname if qualname in self.definitions else None

    def _imported(self, module: str, name: str | None) -> str | None:
        if module not in self.modules:
            return None
        if name is None:
            return module
        if (module, name) in self._followed:
            # Modules that import it from each other.
            return None
        self._followed.add((module, name))
        found = self._member(module, name)
        self._followed.remove((module, name))
        return found

    def _member(self, qualname: str, name: str) -> str | None:
        """Resolve a member of a module or class."""
        if qualname in self.modules:
            module = self.modules[qualname]
            if name in module.top.bound:
                # A package that defines what a module of it is called.
                return None if f"{qualname}.{name}" in self.modules else self._of_module(module, name)
            return f"{qualname}.{name}" if f"{qualname}.{name}" in self.modules else None
        defined = self.definitions.get(qualname, [])
        member = f"{qualname}.{name}"
        if len(defined) == 1 and defined[0].kind == "CLASS" and len(self.definitions.get(member, [])) == 1:
            return member
        return None


def _read(folder: Path, file: Path) -> Module:
    text = file.read_bytes().decode("utf-8-sig")
    path = file.relative_to(folder)
    parts = path.with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, path.as_posix(), ast.parse(text), text.splitlines())


def _parameters(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (each for each in (arguments.vararg, arguments.kwarg) if each)


def _plain_names(node: ast.AST) -> list[str]:
    """Names that a node binds without a node for the name."""
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    return [node.rest] if isinstance(node, ast.MatchMapping) and node.rest else []
