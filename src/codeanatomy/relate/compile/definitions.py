"""Definitions and imports: functions, lambdas and classes, with decorators, parameters and defaults.

    @d
    def f(x=g): ...        an object for f, a call of d with it, the result is what `f` names from here on

The body of a function waits until the code around it is done. Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from codeanatomy.relate.compile.scope_tree import Scope
from codeanatomy.relate.compile.syntax_tree import Tree
from codeanatomy.relate.compile.targets import Targets
from codeanatomy.relate.compile.variables import Frame, Version
from codeanatomy.relate.program import (
    CLASS,
    FUNCTION,
    IMPORT,
    NOTHING,
    PARAMETER,
    POSITIONAL,
    Class,
    Function,
    Import,
    Node,
    Parameter,
    Program,
)

DEFINITIONS = frozenset({"FunctionDef", "AsyncFunctionDef", "ClassDef", "Lambda"})
FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef"})
# Decorators that say what a method's first parameter is.
BINDS = {"staticmethod": "nothing", "classmethod": "class"}
# Decorators that run nothing of the repository: what they are given is replaced before anybody sees it.
QUIET = frozenset(
    {"overload", "property", "setter", "getter", "deleter", "staticmethod", "classmethod", "abstractmethod"}
)
IMPLICIT_CLASS_METHODS = frozenset({"__init_subclass__", "__class_getitem__"})


class Definers(Targets):
    """The part of the walk that defines."""

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
        # Functions by scope.
        self.numbers: dict[Scope, int] = {}
        self.waiting: deque[Callable[[], None]] = deque()
        # What to do for a statement, by its kind.
        self._statements: dict[str, Callable[[int], None]] = {}

    def block(self, statements: Sequence[int]) -> None:
        """Statements one after the other."""
        raise NotImplementedError

    def leave(self, frame: Frame) -> None:
        """What stands at the end of a frame is seen by all that runs later."""
        raise NotImplementedError

    def do_import(self, node: int) -> None:
        for alias in self.tree.many(node, "names"):
            module, name, asname, level = self.imported[alias]
            place = self.place(alias)
            is_from = self.tree.kind[node] == "ImportFrom"
            text = str(module or "") if is_from else str(name)
            star = name == "*"
            bound = None if star else str(asname or (name if is_from else str(name).partition(".")[0]))
            self.events += 1
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
            made = self.new()
            self.ops.append(("m", made, number))
            self.write(bound, made, self.define(IMPORT, number, place, bound))

    do_importfrom = do_import

    def do_functiondef(self, node: int) -> None:
        tree = self.tree
        decorators = tree.many(node, "decorator_list")
        values = [self.value(decorator) for decorator in decorators]
        name = tree.name[node] or ""
        index = self._function(node, name)
        function = self.program.functions[index]
        for decorator in decorators:
            function.binds = BINDS.get(tree.name[decorator] or "", function.binds)
        made = self.new()
        self.ops.append(("o", made, "F", index))
        made = self._decorated(FUNCTION, index, decorators, values, made)
        definition = self.define(FUNCTION, index, function.place, name)
        is_overload = self.program.path.endswith(".pyi") and any(
            tree.name[decorator] == "overload" for decorator in decorators
        )
        self.write(name, made, definition, self.overloads if is_overload else frozenset())
        if is_overload:
            self.overloads.add(definition)

    do_asyncfunctiondef = do_functiondef

    def _decorated(
        self, kind: str, index: int, decorators: Sequence[int], values: Sequence[Node], made: Node
    ) -> Node:
        for decorator, value in reversed(list(zip(decorators, values, strict=True))):
            self.program.decorators.append((self.place(decorator), kind, index, value))
            if value == NOTHING:
                continue
            result = self.new()
            if self.tree.name[decorator] not in QUIET:
                self.events += 1
            site = self.site(decorator, "decorator", self.place(decorator))
            self.ops.append(("(", value, result, site, [(POSITIONAL, None, made)]))
            made = result
        return made

    def of_lambda(self, node: int) -> Node:
        index = self._function(node, self.lambdas[node])
        made = self.new()
        self.ops.append(("o", made, "F", index))
        return made

    def _function(self, node: int, name: str) -> int:
        """A function with its parameters; its body waits."""
        tree, outer = self.tree, self.frame
        kind, scope = tree.kind[node], self.scopes[node]
        is_generator = self._has_yield(node)
        args = tree.one(node, "args")
        defaults = self._defaults(args)
        ops, nodes = len(self.ops), self.program.nodes
        function = Function(
            name=name,
            qualname=outer.named(name),
            place=self.place(node),
            owner=outer.owner if outer.scope.kind == "class" else -1,
            outer=outer.function,
            parameters=[],
            result=self.new(),
            yields=self.new() if is_generator else NOTHING,
            is_async=kind == "AsyncFunctionDef",
            is_generator=is_generator,
            scope_key=scope.key,
            returned=[],
        )
        if function.owner >= 0 and name == "__new__":
            function.binds = "class_argument"
        elif function.owner >= 0 and name in IMPLICIT_CLASS_METHODS:
            function.binds = "class"
        self.program.functions.append(function)
        index = len(self.program.functions) - 1
        frame = Frame(scope, index, qualname=function.qualname)
        self.numbers[scope] = index
        self._parameters(args, defaults, function, index, frame)
        hint = self.hint(tree.one(node, "returns")) if kind in FUNCTIONS else None
        if hint is not None:
            function.hinted_result = self.new()
            self.ops.append(("t", hint, function.hinted_result))
        function.header = (ops, len(self.ops), nodes, self.program.nodes)
        self.waiting.append(lambda: self._body(node, function, frame))
        return index

    def _defaults(self, args: int | None) -> tuple[list[Node], list[Node]]:
        """The values of defaults, which are made where the function is."""
        if args is None:
            return [], []
        tree = self.tree
        named = tree.gapped(args, "kw_defaults", len(tree.many(args, "kwonlyargs")))
        positional = [self.value(default) for default in tree.many(args, "defaults")]
        return positional, [self.value(each) for each in named]

    def _has_yield(self, node: int) -> bool:
        tree, below = self.tree, node + 1
        while below < tree.end[node]:
            if tree.kind[below] in DEFINITIONS:
                below = tree.end[below]
                continue
            if tree.kind[below] in ("Yield", "YieldFrom"):
                return True
            below += 1
        return False

    def _parameters(
        self,
        args: int | None,
        values: tuple[list[Node], list[Node]],
        function: Function,
        index: int,
        frame: Frame,
    ) -> None:
        if args is None:
            return
        tree = self.tree
        only, plain, named = (tree.many(args, slot) for slot in ("posonlyargs", "args", "kwonlyargs"))
        defaults, named_defaults = values
        positional = [*only, *plain]
        required = len(positional) - len(defaults)
        padded = [NOTHING] * required + defaults
        hows = ["positional_only"] * len(only) + ["positional"] * len(plain)
        rows = list(zip(positional, hows, padded, strict=True))
        vararg, kwarg = tree.one(args, "vararg"), tree.one(args, "kwarg")
        rows += [(vararg, "vararg", NOTHING)] if vararg is not None else []
        rows += [(each, "keyword_only", value) for each, value in zip(named, named_defaults, strict=True)]
        rows += [(kwarg, "kwarg", NOTHING)] if kwarg is not None else []
        given = tree.gapped(args, "kw_defaults", len(named))
        needed = {
            *positional[:required],
            *(each for each, default in zip(named, given, strict=True) if default is None),
        }
        for number, (node, how, default) in enumerate(rows):
            name = tree.name[node] or ""
            hint = self.hint(tree.one(node, "annotation"))
            if how in ("vararg", "kwarg"):
                made = self.container("tuple" if how == "vararg" else "dict")
                if hint is not None:
                    hinted = self.new()
                    self.ops.append(("t", hint, hinted))
                    self.ops.append(("]", made, None, hinted, NOTHING))
            else:
                made = self.new()
                if hint is not None:
                    self.ops.append(("t", hint, made))
            place = self.place(node)
            if place[0] is not None:
                # Without its annotation; as written, which the compiler's spelling need not be.
                plain = (place[0], place[0] + len(name.encode("utf-8", "surrogatepass")))
                place = (*self.identifiers.get((place[0], place[0]), plain), place[2])
            parameter = Parameter(name, how, made, default, place, node in needed)
            function.parameters.append(parameter)
            definition = self.define(PARAMETER, index, place, str(number))
            frame.env[frame.scope.find(name).name] = (Version(made, [definition], -1),)

    def _body(self, node: int, function: Function, frame: Frame) -> None:
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
        tree, outer = self.tree, self.frame
        decorators = tree.many(node, "decorator_list")
        values = [self.value(decorator) for decorator in decorators]
        bases = []
        for place, base in enumerate(tree.many(node, "bases")):
            bases.append((self.value(base), self.place(base), place))
        keywords = [
            (tree.name[each] or "", self.value(tree.one(each, "value")))
            for each in tree.many(node, "keywords")
        ]
        name, scope = tree.name[node] or "", self.scopes[node]
        cls = Class(
            name,
            outer.named(name),
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
        made = self.new()
        self.events += 1
        self.ops.append(("o", made, "C", index))
        self.ops.append(("c", index, self.site(node, "class")))
        made = self._decorated(CLASS, index, decorators, values, made)
        self.write(name, made, self.define(CLASS, index, cls.place, name))

    def do_typealias(self, node: int) -> None:
        name = self.tree.one(node, "name")
        if name is not None:
            self.assign(name, NOTHING)


def lambda_names(tree: Tree) -> dict[int, str]:
    """Lambdas by number in their scope, in the order of the source: `<lambda1>`, `<lambda2>`."""
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
        for found in by_scope.values()
        for number, (_, node) in enumerate(sorted(found), start=1)
    }
