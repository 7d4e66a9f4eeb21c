"""Compile definitions and imports: functions, lambdas, classes, decorators, parameters and defaults.

    @d
    def f(x=g): ...        creates an object for f, calls d with it, and assigns the result to `f`

The body of a function is compiled after the code that encloses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import repeat

from codeanatomy.relate import program as ir
from codeanatomy.relate.compile.annotations import read_hint
from codeanatomy.relate.compile.builder import Builder
from codeanatomy.relate.compile.names import join, leave, write
from codeanatomy.relate.compile.variables import Frame, Version
from codeanatomy.relate.program import NOTHING, Class, Function, Import, Node, Parameter, Site
from codeanatomy.syntax_tree import FUNCTIONS, Tree

DEFINITIONS = FUNCTIONS | {"ClassDef", "Lambda"}
# What the first parameter of a method is, by decorator and by name; see `Function.binds`.
BINDS = {"staticmethod": "nothing", "classmethod": "class"}
BINDS_BY_NAME = {"__new__": "class_argument", "__init_subclass__": "class", "__class_getitem__": "class"}
# Decorators that run no code of the repository: no other code can see the undecorated function.
DECLARING_DECORATORS = frozenset(
    {"overload", "property", "setter", "getter", "deleter", "staticmethod", "classmethod", "abstractmethod"}
)
# Start of the names of functions that pytest may collect, and part of the names of its decorators.
TEST, FIXTURE = "test", "fixture"


def compile_import(b: Builder, node: int) -> None:
    is_from = b.tree.kind[node] == "ImportFrom"
    for alias in b.tree.many(node, "names"):
        _, module, name, asname, level = b.imported[alias]
        place, bound = b.place(alias), bound_name(b, alias)
        b.call_count += 1
        number = len(b.program.imports)
        b.program.imports.append(
            Import(
                str(module or "") if is_from else str(name),
                int(level or 0),
                str(name) if is_from else None,
                bound,
                not is_from and asname is None,
                place,
                b.frame.scope.key,
            )
        )
        if bound is not None:
            result = b.new_node()
            b.ops.append((ir.OP_IMPORT, result, number))
            write(b, bound, result, b.define(ir.IMPORT, number, place, bound))


def bound_name(b: Builder, alias: int) -> str | None:
    """Return the name that an alias binds; None for a star import."""
    _, _, name, asname, _ = b.imported[alias]
    return None if name == "*" else str(asname or str(name).partition(".")[0])


def compile_function(b: Builder, node: int) -> None:
    decorators = _compile_decorators(b, node)
    decorator_names = [b.tree.name[each] or "" for each, _ in decorators]
    name = b.tree.name[node] or ""
    index = _add_function(b, node, name)
    function = b.program.functions[index]
    for each in decorator_names:
        function.binds = BINDS.get(each, function.binds)
    result = _apply_decorators(b, ir.FUNCTION, index, decorators, b.make(ir.OBJ_FUNCTION, index))
    definition = b.define(ir.FUNCTION, index, function.place, name)
    is_overload = b.program.path.endswith(".pyi") and "overload" in decorator_names
    write(b, name, result, definition, b.overloads if is_overload else frozenset())
    if is_overload:
        b.overloads.add(definition)


def _compile_decorators(b: Builder, node: int) -> list[tuple[int, Node]]:
    """Return the decorators of a definition with their values."""
    return [(decorator, b.value(decorator)) for decorator in b.tree.many(node, "decorator_list")]


def _apply_decorators(
    b: Builder, kind: str, index: int, decorators: Sequence[tuple[int, Node]], decorated: Node
) -> Node:
    """Apply decorators, the last one first; return the node of the result."""
    for decorator, value in reversed(decorators):
        place = b.place(decorator)
        b.program.decorators.append((place, kind, index, value))
        if value != NOTHING:
            b.call_count += b.tree.name[decorator] not in DECLARING_DECORATORS
            site = b.site(decorator, "decorator", place)
            decorated = b.call(value, [(ir.POSITIONAL, None, decorated)], site)
    return decorated


def compile_lambda(b: Builder, node: int) -> Node:
    return b.make(ir.OBJ_FUNCTION, _add_function(b, node, b.lambdas[node]))


def _add_function(b: Builder, node: int, name: str) -> int:
    """Compile a function with its parameters, defer its body, and return its number."""
    tree, outer = b.tree, b.frame
    scope, is_method = b.scopes[node], outer.scope.kind == "class"
    is_generator = _has_yield(tree, node)
    parameters = _list_parameters(tree, node)
    defaults = [b.value(default) for _, _, default in parameters]
    ops, nodes = len(b.ops), b.program.nodes
    function = Function(
        name=name,
        qualname=outer.qualify(name),
        place=b.place(node),
        owner=outer.owner if is_method else -1,
        outer=outer.function,
        parameters=[],
        result=b.new_node(),
        yields=b.new_node() if is_generator else NOTHING,
        is_async=tree.kind[node] == "AsyncFunctionDef",
        is_generator=is_generator,
        scope_id=scope.key,
        returned=[],
        binds=BINDS_BY_NAME.get(name, "instance") if is_method else "instance",
    )
    b.program.functions.append(function)
    index = len(b.program.functions) - 1
    frame = Frame(scope, index, qualname=function.qualname)
    b.function_numbers[scope] = index
    for (each, how, syntax), default in zip(parameters, defaults, strict=True):
        is_required = syntax is None and how not in ("vararg", "kwarg")
        _add_parameter(b, each, how, default, function, frame, is_required=is_required)
    function.hinted_result = b.annotate(read_hint(b, tree.one(node, "returns")))
    function.header = (ops, len(b.ops), nodes, b.program.nodes)
    b.pending_bodies.append(
        partial(_compile_body, b, node, function, frame, [each for each, _, _ in parameters])
    )
    return index


def _has_yield(tree: Tree, node: int) -> bool:
    descendant = node + 1
    while descendant < tree.end[node]:
        if tree.kind[descendant] in DEFINITIONS:
            descendant = tree.end[descendant]
            continue
        if tree.kind[descendant] in ("Yield", "YieldFrom"):
            return True
        descendant += 1
    return False


def _list_parameters(tree: Tree, function: int) -> list[tuple[int, str, int | None]]:
    """Return node, kind and default of each parameter, in the order of the signature."""
    args = tree.child(function, "args")
    positional_only, defaults = tree.many(args, "posonlyargs"), tree.many(args, "defaults")
    positional, keyword_only = [*positional_only, *tree.many(args, "args")], tree.many(args, "kwonlyargs")
    padded = [*[None] * (len(positional) - len(defaults)), *defaults]
    rows: list[tuple[int, str, int | None]] = [
        (node, "positional_only" if at < len(positional_only) else "positional", default)
        for at, (node, default) in enumerate(zip(positional, padded, strict=True))
    ]
    vararg, kwarg = tree.one(args, "vararg"), tree.one(args, "kwarg")
    rows += [] if vararg is None else [(vararg, "vararg", None)]
    keyword_defaults = tree.gapped(args, "kw_defaults", len(keyword_only))
    rows += zip(keyword_only, repeat("keyword_only"), keyword_defaults, strict=False)
    return rows if kwarg is None else [*rows, (kwarg, "kwarg", None)]


def _add_parameter(
    b: Builder, node: int, how: str, default: Node, function: Function, frame: Frame, *, is_required: bool
) -> None:
    name = b.tree.name[node] or ""
    hint = read_hint(b, b.tree.one(node, "annotation"))
    if how in ("vararg", "kwarg"):
        result = b.container("tuple" if how == "vararg" else "dict")
        b.put(result, None, b.annotate(hint))
    else:
        result = b.new_node() if hint is None else b.annotate(hint)
    start, _, line = place = b.place(node)
    if start is not None:
        # Only the identifier, as written in the source: the compiler normalizes names.
        span = (start, start + len(name.encode("utf-8", "surrogatepass")))
        place = (*b.identifiers.get((start, start), span), line)
    number = str(len(function.parameters))
    function.parameters.append(Parameter(name, how, result, default, place, is_required))
    definition = b.define(ir.PARAMETER, frame.function, place, number)
    frame.env[frame.scope.resolve(name).name] = (Version(result, [definition], -1),)


def _compile_body(b: Builder, node: int, function: Function, frame: Frame, parameters: Sequence[int]) -> None:
    b.frame = frame
    b.phis.clear()
    ops, nodes = len(b.ops), b.program.nodes
    if _may_request_fixtures(b, node, function):
        function.requests = len(b.program.sites)
        listed = zip(parameters, function.parameters, strict=True)
        required = [(each, parameter.place) for each, parameter in listed if parameter.is_required]
        for each, place in [(node, function.place), *required]:
            b.program.sites.append(Site(each, "fixture", place, frame.function))
    if b.tree.kind[node] == "Lambda":
        return_value(b, function, b.value(b.tree.child(node, "body")))
    else:
        b.block(b.tree.many(node, "body"))
    leave(b, frame)
    function.body = (ops, len(b.ops), nodes, b.program.nodes)


def _may_request_fixtures(b: Builder, node: int, function: Function) -> bool:
    """Whether pytest may pass fixtures to a function: it is a test or a fixture by its name or decorators."""
    if function.outer < 0 and function.name.startswith(TEST):
        return True
    calls = ((each, b.tree.one(each, "func")) for each in b.tree.many(node, "decorator_list"))
    return any(FIXTURE in (b.tree.name[each if func is None else func] or "") for each, func in calls)


def return_value(b: Builder, function: Function, value: Node) -> None:
    """Return a value from a function; an unchanged parameter is noted instead."""
    numbers = [at for at, each in enumerate(function.parameters) if each.node == value != NOTHING]
    if numbers and not function.is_generator and not function.is_async:
        function.returned = sorted({*function.returned, *numbers})
    else:
        b.copy(value, function.result)


def compile_class(b: Builder, node: int) -> None:
    """Compile ClassDef, its body in place."""
    tree, outer = b.tree, b.frame
    decorators = _compile_decorators(b, node)
    bases = [(b.value(base), b.place(base), at) for at, base in enumerate(tree.many(node, "bases"))]
    keywords = [
        (tree.name[each] or "", b.value(tree.child(each, "value"))) for each in tree.many(node, "keywords")
    ]
    name, scope = tree.name[node] or "", b.scopes[node]
    listed = (node, *(each for each, _ in decorators))
    options = {key: text for each in listed for key, text in b.options(each).items()}
    qualname, place = outer.qualify(name), b.place(node)
    cls = Class(name, qualname, place, outer.function, bases, keywords, {}, scope.key, [], options)
    b.program.classes.append(cls)
    index = len(b.program.classes) - 1
    b.frame = Frame(scope, outer.function, qualname=cls.qualname, owner=index, inline=outer)
    b.block(tree.many(node, "body"))
    leave(b, b.frame)
    for attr, versions in b.frame.env.items():
        cls.attrs[attr] = join(b, versions)
    b.frame = outer
    result = b.make(ir.OBJ_CLASS, index)
    b.call_count += 1
    b.ops.append((ir.OP_CREATE_CLASS, index, b.site(node, "class")))
    result = _apply_decorators(b, ir.CLASS, index, decorators, result)
    write(b, name, result, b.define(ir.CLASS, index, cls.place, name))


def name_lambdas(tree: Tree) -> dict[int, str]:
    """Return names of lambdas, numbered in their scope in source order: `<lambda1>`, `<lambda2>`."""
    by_scope: dict[int, list[tuple[int, int]]] = {}
    for node, kind in enumerate(tree.kind):
        if kind != "Lambda":
            continue
        child, parent = node, tree.parent[node]
        while parent is not None and not (tree.kind[parent] in DEFINITIONS and tree.slot[child] == "body"):
            child, parent = parent, tree.parent[parent]
        start, scope = tree.bstart[node], -1 if parent is None else parent
        by_scope.setdefault(scope, []).append((node if start is None else start, node))
    return {
        node: f"<lambda{number}>"
        for lambdas in by_scope.values()
        for number, (_, node) in enumerate(sorted(lambdas), start=1)
    }
