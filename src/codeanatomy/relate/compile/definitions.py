"""Compile definitions and imports: functions, lambdas, classes, decorators, parameters and defaults.

    @d
    def f(x=g): ...        creates an object for f, calls d with it, and assigns the result to `f`

The body of a function is compiled after the code that encloses it.

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.targets import TargetCompiler
from codeanatomy.relate.compile.variables import Frame, Version
from codeanatomy.relate.program import (
    CLASS,
    FUNCTION,
    IMPORT,
    NOTHING,
    OBJ_CLASS,
    OBJ_FUNCTION,
    OP_ANNOTATE,
    OP_CALL,
    OP_CREATE_CLASS,
    OP_IMPORT,
    OP_MAKE,
    OP_STORE_ITEM,
    PARAMETER,
    POSITIONAL,
    Class,
    Function,
    Import,
    Node,
    Parameter,
    Program,
)
from codeanatomy.syntax_tree import FUNCTIONS, Tree

DEFINITIONS = frozenset({"FunctionDef", "AsyncFunctionDef", "ClassDef", "Lambda"})
# What the first parameter of a method is, by decorator; see `Function.binds`.
BINDS = {"staticmethod": "nothing", "classmethod": "class"}
# Decorators that run no code of the repository: no other code can see the undecorated function.
DECLARING_DECORATORS = frozenset(
    {"overload", "property", "setter", "getter", "deleter", "staticmethod", "classmethod", "abstractmethod"}
)
IMPLICIT_CLASS_METHODS = frozenset({"__init_subclass__", "__class_getitem__"})


class DefinitionCompiler(TargetCompiler):
    """Compiles definitions and imports."""

    def __init__(
        self,
        program: Program,
        tree: Tree,
        scopes: Mapping[int, Scope],
        imports: Mapping[str, Sequence[object]],
        identifiers: Mapping[tuple[int, int], tuple[int, int]],
    ) -> None:
        super().__init__(program, tree, scopes)
        self.identifiers = dict(identifiers)
        self.imported = {
            ast_id: (module, name, asname, level)
            for ast_id, module, name, asname, level in zip(
                *(imports[field] for field in ("ast_id", "module", "name", "asname", "level")), strict=True
            )
        }
        self.lambdas = lambda_names(tree)
        # Numbers of functions by their scope.
        self.function_numbers: dict[Scope, int] = {}
        # Bodies of functions that are still to be compiled.
        self.pending_bodies: deque[Callable[[], None]] = deque()
        # Methods that compile a statement, by its kind.
        self._by_statement: dict[str, Callable[[int], None]] = {}

    def block(self, statements: Sequence[int]) -> None:
        """Compile statements one after the other."""
        raise NotImplementedError

    def leave(self, frame: Frame) -> None:
        """Add the versions at the end of a frame to the cells, for code that runs later."""
        raise NotImplementedError

    def do_import(self, node: int) -> None:
        """Compile Import and ImportFrom."""
        for alias in self.tree.many(node, "names"):
            module, name, asname, level = self.imported[alias]
            place = self.place(alias)
            is_from = self.tree.kind[node] == "ImportFrom"
            text = str(module or "") if is_from else str(name)
            bound = None if name == "*" else str(asname or (name if is_from else str(name).partition(".")[0]))
            self.call_count += 1
            self.program.imports.append(
                Import(
                    text,
                    int(level or 0),
                    str(name) if is_from else None,
                    bound,
                    not is_from and asname is None,
                    place,
                    self.frame.scope.key,
                )
            )
            number = len(self.program.imports) - 1
            if bound is None:
                continue
            result = self.new_node()
            self.ops.append((OP_IMPORT, result, number))
            self.write(bound, result, self.define(IMPORT, number, place, bound))

    do_importfrom = do_import

    def do_functiondef(self, node: int) -> None:
        """Compile FunctionDef and AsyncFunctionDef."""
        tree = self.tree
        decorators = tree.many(node, "decorator_list")
        values = [self.value(decorator) for decorator in decorators]
        name = tree.name[node] or ""
        index = self._function(node, name)
        function = self.program.functions[index]
        for decorator in decorators:
            function.binds = BINDS.get(tree.name[decorator] or "", function.binds)
        result = self.new_node()
        self.ops.append((OP_MAKE, result, OBJ_FUNCTION, index))
        result = self._apply_decorators(FUNCTION, index, decorators, values, result)
        definition = self.define(FUNCTION, index, function.place, name)
        is_overload = self.program.path.endswith(".pyi") and any(
            tree.name[decorator] == "overload" for decorator in decorators
        )
        self.write(name, result, definition, self.overloads if is_overload else frozenset())
        if is_overload:
            self.overloads.add(definition)

    do_asyncfunctiondef = do_functiondef

    def _apply_decorators(
        self, kind: str, index: int, decorators: Sequence[int], values: Sequence[Node], decorated: Node
    ) -> Node:
        """Apply decorators, the last one first; return the node of the result."""
        for decorator, value in reversed(list(zip(decorators, values, strict=True))):
            self.program.decorators.append((self.place(decorator), kind, index, value))
            if value == NOTHING:
                continue
            result = self.new_node()
            if self.tree.name[decorator] not in DECLARING_DECORATORS:
                self.call_count += 1
            site = self.site(decorator, "decorator", self.place(decorator))
            self.ops.append((OP_CALL, value, result, site, [(POSITIONAL, None, decorated)]))
            decorated = result
        return decorated

    def of_lambda(self, node: int) -> Node:
        """Compile Lambda and return the node of the function."""
        index = self._function(node, self.lambdas[node])
        result = self.new_node()
        self.ops.append((OP_MAKE, result, OBJ_FUNCTION, index))
        return result

    def _function(self, node: int, name: str) -> int:
        """Compile a function with its parameters, defer its body, and return its number."""
        tree, outer = self.tree, self.frame
        kind, scope = tree.kind[node], self.scopes[node]
        is_generator = self._has_yield(node)
        args = tree.one(node, "args")
        defaults = self._defaults(args)
        ops, nodes = len(self.ops), self.program.nodes
        function = Function(
            name=name,
            qualname=outer.qualify(name),
            place=self.place(node),
            owner=outer.owner if outer.scope.kind == "class" else -1,
            outer=outer.function,
            parameters=[],
            result=self.new_node(),
            yields=self.new_node() if is_generator else NOTHING,
            is_async=kind == "AsyncFunctionDef",
            is_generator=is_generator,
            scope_id=scope.key,
            returned=[],
        )
        if function.owner >= 0 and name == "__new__":
            function.binds = "class_argument"
        elif function.owner >= 0 and name in IMPLICIT_CLASS_METHODS:
            function.binds = "class"
        self.program.functions.append(function)
        index = len(self.program.functions) - 1
        frame = Frame(scope, index, qualname=function.qualname)
        self.function_numbers[scope] = index
        self._parameters(args, defaults, function, index, frame)
        hint = self.hint(tree.one(node, "returns")) if kind in FUNCTIONS else None
        if hint is not None:
            function.hinted_result = self.new_node()
            self.ops.append((OP_ANNOTATE, hint, function.hinted_result))
        function.header = (ops, len(self.ops), nodes, self.program.nodes)
        self.pending_bodies.append(lambda: self._compile_body(node, function, frame))
        return index

    def _defaults(self, args: int | None) -> tuple[list[Node], list[Node]]:
        """Compile the defaults of positional and keyword-only parameters, in the enclosing frame."""
        if args is None:
            return [], []
        tree = self.tree
        keyword_only = tree.gapped(args, "kw_defaults", len(tree.many(args, "kwonlyargs")))
        positional = [self.value(default) for default in tree.many(args, "defaults")]
        return positional, [self.value(default) for default in keyword_only]

    def _has_yield(self, node: int) -> bool:
        tree, descendant = self.tree, node + 1
        while descendant < tree.end[node]:
            if tree.kind[descendant] in DEFINITIONS:
                descendant = tree.end[descendant]
                continue
            if tree.kind[descendant] in ("Yield", "YieldFrom"):
                return True
            descendant += 1
        return False

    def _parameters(
        self,
        args: int | None,
        defaults: tuple[list[Node], list[Node]],
        function: Function,
        index: int,
        frame: Frame,
    ) -> None:
        if args is None:
            return
        tree = self.tree
        positional_only, plain, keyword_only = (
            tree.many(args, slot) for slot in ("posonlyargs", "args", "kwonlyargs")
        )
        positional_defaults, keyword_defaults = defaults
        positional = [*positional_only, *plain]
        required = len(positional) - len(positional_defaults)
        padded = [NOTHING] * required + positional_defaults
        hows = ["positional_only"] * len(positional_only) + ["positional"] * len(plain)
        rows = list(zip(positional, hows, padded, strict=True))
        vararg, kwarg = tree.one(args, "vararg"), tree.one(args, "kwarg")
        rows += [(vararg, "vararg", NOTHING)] if vararg is not None else []
        rows += [
            (each, "keyword_only", value) for each, value in zip(keyword_only, keyword_defaults, strict=True)
        ]
        rows += [(kwarg, "kwarg", NOTHING)] if kwarg is not None else []
        default_nodes = tree.gapped(args, "kw_defaults", len(keyword_only))
        required_nodes = {
            *positional[:required],
            *(each for each, default in zip(keyword_only, default_nodes, strict=True) if default is None),
        }
        for number, (node, how, default) in enumerate(rows):
            name = tree.name[node] or ""
            hint = self.hint(tree.one(node, "annotation"))
            if how in ("vararg", "kwarg"):
                result = self.container("tuple" if how == "vararg" else "dict")
                if hint is not None:
                    hinted = self.new_node()
                    self.ops.append((OP_ANNOTATE, hint, hinted))
                    self.ops.append((OP_STORE_ITEM, result, None, hinted, NOTHING))
            else:
                result = self.new_node()
                if hint is not None:
                    self.ops.append((OP_ANNOTATE, hint, result))
            place = self.place(node)
            if place[0] is not None:
                # Only the identifier, as written in the source: the compiler normalizes names.
                span = (place[0], place[0] + len(name.encode("utf-8", "surrogatepass")))
                place = (*self.identifiers.get((place[0], place[0]), span), place[2])
            parameter = Parameter(name, how, result, default, place, node in required_nodes)
            function.parameters.append(parameter)
            definition = self.define(PARAMETER, index, place, str(number))
            frame.env[frame.scope.resolve(name).name] = (Version(result, [definition], -1),)

    def _compile_body(self, node: int, function: Function, frame: Frame) -> None:
        self.frame = frame
        tree = self.tree
        self.forget_phis()
        ops, nodes = len(self.ops), self.program.nodes
        if tree.kind[node] == "Lambda":
            value = self.value(tree.one(node, "body"))
            numbers = [at for at, each in enumerate(function.parameters) if each.node == value]
            if numbers and value != NOTHING and not function.is_generator:
                function.returned = numbers
            else:
                self.copy(value, function.result)
        else:
            self.block(tree.many(node, "body"))
        self.leave(frame)
        function.body = (ops, len(self.ops), nodes, self.program.nodes)

    def do_classdef(self, node: int) -> None:
        """Compile ClassDef, its body in place."""
        tree, outer = self.tree, self.frame
        decorators = tree.many(node, "decorator_list")
        values = [self.value(decorator) for decorator in decorators]
        bases = []
        for ordinal, base in enumerate(tree.many(node, "bases")):
            bases.append((self.value(base), self.place(base), ordinal))
        keywords = [
            (tree.name[each] or "", self.value(tree.one(each, "value")))
            for each in tree.many(node, "keywords")
        ]
        name, scope = tree.name[node] or "", self.scopes[node]
        cls = Class(
            name,
            outer.qualify(name),
            self.place(node),
            outer.function,
            bases,
            keywords,
            {},
            scope.key,
            [],
        )
        self.program.classes.append(cls)
        index = len(self.program.classes) - 1
        self.frame = Frame(scope, outer.function, qualname=cls.qualname, owner=index, inline=outer)
        self.block(tree.many(node, "body"))
        self.leave(self.frame)
        for attr, versions in self.frame.env.items():
            numbers = [number for version in versions for number in version.definitions]
            cls.attrs[attr] = (self.phi([version.node for version in versions]), list(dict.fromkeys(numbers)))
        self.frame = outer
        result = self.new_node()
        self.call_count += 1
        self.ops.append((OP_MAKE, result, OBJ_CLASS, index))
        self.ops.append((OP_CREATE_CLASS, index, self.site(node, "class")))
        result = self._apply_decorators(CLASS, index, decorators, values, result)
        self.write(name, result, self.define(CLASS, index, cls.place, name))

    def do_typealias(self, node: int) -> None:
        """Compile TypeAlias: the name is bound, its value is not followed."""
        name = self.tree.one(node, "name")
        if name is not None:
            self.assign(name, NOTHING)


def lambda_names(tree: Tree) -> dict[int, str]:
    """Return names of lambdas, numbered in their scope in source order: `<lambda1>`, `<lambda2>`."""
    by_scope: dict[int, list[tuple[int, int]]] = {}
    for node, kind in enumerate(tree.kind):
        if kind != "Lambda":
            continue
        child, parent = node, tree.parent[node]
        while parent is not None and not (tree.kind[parent] in DEFINITIONS and tree.slot[child] == "body"):
            child, parent = parent, tree.parent[parent]
        start = tree.bstart[node]
        by_scope.setdefault(-1 if parent is None else parent, []).append(
            (node if start is None else start, node)
        )
    return {
        node: f"<lambda{number}>"
        for lambdas in by_scope.values()
        for number, (_, node) in enumerate(sorted(lambdas), start=1)
    }
