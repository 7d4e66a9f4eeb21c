"""Compile expressions to operations: every expression gets the node that holds its value.

    self.run(job)      OP_LOAD_ATTRIBUTE self run 5, then OP_CALL 5 with job into 6

Names are resolved by the compiler's scopes and, within the frame that binds them, by their current versions.
Values that are never called and have no attributes of interest, such as None, have no node. A display with
many elements does not keep their keys.
"""

from __future__ import annotations

from functools import partial

from codeanatomy.relate import program as ir
from codeanatomy.relate.compile.annotations import TYPING_FORMS, use_quoted_names
from codeanatomy.relate.compile.builder import Builder, Expressions
from codeanatomy.relate.compile.definitions import compile_lambda
from codeanatomy.relate.compile.names import read
from codeanatomy.relate.compile.targets import assign
from codeanatomy.relate.compile.variables import Frame, Version, Versions
from codeanatomy.relate.program import NOTHING, Arg, Node
from codeanatomy.syntax_tree import constant_type

# Most elements of a display that are kept by key.
MAX_KEYS = 200
# Methods of binary operators that are not the kind in lower case.
OPERATORS = {
    "Mult": "mul",
    "MatMult": "matmul",
    "Div": "truediv",
    "BitOr": "or",
    "BitXor": "xor",
    "BitAnd": "and",
}
UNARY = {"Invert": "__invert__", "UAdd": "__pos__", "USub": "__neg__"}
COMPARISONS = {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}
# Types of constants that have no node.
UNTRACKED_TYPES = frozenset({"NoneType", "ellipsis"})
# Functions and methods with a result that depends on the text of a constant argument.
TEXT_DEPENDENT = frozenset(
    {
        *("getattr", "setattr", "get", "pop", "setdefault", "__getitem__", "import_module"),
        *("fixture", "parametrize", "usefixtures", "importorskip", "namedtuple", "NamedTuple"),
    }
)
# Special methods that `!r`, `!s` and `!a` in an f-string call.
CONVERSIONS = {"r": ["__repr__"], "a": ["__repr__"], "s": ["__str__", "__repr__"]}
TRUTH = ["__bool__", "__len__"]
# Operations that narrow a name, by the function that tests it.
NARROWING = {"isinstance": ir.OP_ISINSTANCE, "issubclass": ir.OP_ISSUBCLASS}


def _constant(b: Builder, node: int) -> Node:
    text = b.tree.value[node]
    kind = constant_type(text)
    if kind == "str" and b.uses_getattr and text is not None and text[1:-1].isidentifier():
        return b.const(text[1:-1], ir.OBJ_STRING)
    return NOTHING if kind is None or kind in UNTRACKED_TYPES else b.const(kind)


def _name(b: Builder, node: int) -> Node:
    name = b.tree.name[node] or ""
    value, definitions = read(b, name)
    b.uses.append((b.place(node), name, definitions))
    return value


def _attribute(b: Builder, node: int) -> Node:
    receiver = b.value(b.tree.child(node, "value"))
    if receiver == NOTHING:
        receiver = b.new_node()
    return b.load_attribute(receiver, b.attribute_name(node), b.attribute_site(node))


def _call(b: Builder, node: int) -> Node:
    tree, func = b.tree, b.tree.child(node, "func")
    callee = b.value(func)
    written = (*tree.many(node, "args"), *tree.many(node, "keywords"))
    args, values, keywords = list[Arg](), list[int](), {}
    for number, arg in enumerate(written):
        kind, name = tree.kind[arg], None
        values.append(tree.child(arg, "value") if kind in ("Starred", "keyword") else arg)
        value = b.value(values[-1])
        if kind == "keyword":
            name = tree.name[arg]
            how = ir.STAR_STAR if name is None else ir.KEYWORD
            if name is not None and tree.bstart[arg] is not None:
                keywords[number] = b.keyword_place(arg, name)
        else:
            how = ir.STAR if kind == "Starred" else ir.POSITIONAL
        args.append((how, name, value))
    b.call_count += 1
    if callee == NOTHING:
        callee = b.new_node()
    site = b.site(node, "call", b.place(func))
    if args:
        b.program.arguments[site] = list(map(b.place, values))
    if keywords:
        b.program.keywords[site] = keywords
    if tree.name[func] in TEXT_DEPENDENT:
        b.program.constant_arguments[site] = [
            _constant_text(b, arg if tree.kind[arg] == "Starred" else value)
            for arg, value in zip(written, values, strict=True)
        ]
    return b.call(callee, args, site)


def _constant_text(b: Builder, node: int) -> str | None:
    """Return a constant as a Python literal; strings of a display as one string, separated by commas."""
    if b.tree.kind[node] not in ("List", "Tuple"):
        return b.key(node)
    # Of pairs, such as the fields of a NamedTuple, the first.
    texts = [b.key([*b.tree.many(each, "elts"), each][0]) or "" for each in b.tree.many(node, "elts")]
    return f"'{','.join(text[1:-1] for text in texts)}'" if all(text[:1] in "'\"" for text in texts) else None


def _named_expression(b: Builder, node: int) -> Node:
    value = b.value(b.tree.child(node, "value"))
    assign(b, b.tree.child(node, "target"), value)
    return value


def _conditional(b: Builder, node: int) -> Node:
    check_truth(b, b.tree.child(node, "test"))
    return b.phi([b.value(b.tree.child(node, slot)) for slot in ("body", "orelse")])


def _boolean(b: Builder, node: int) -> Node:
    values, is_and = b.tree.many(node, "values"), _is_and(b, node)
    before = dict(b.frame.env)
    nodes = []
    for value in values[:-1]:
        nodes.append(check_truth(b, value))
        if is_and:
            # Operands further right are evaluated only if this one is true.
            narrow(b, value)
    nodes.append(b.value(values[-1]))
    if is_and:
        for name, versions in before.items():
            if name in b.frame.env and _is_narrowed(b.frame.env[name], versions):
                b.frame.env[name] = versions
    return b.phi(nodes)


def _operator(b: Builder, node: int) -> str:
    return b.tree.kind[b.tree.child(node, "op")]


def _is_and(b: Builder, node: int) -> bool:
    return _operator(b, node) == "And"


def _is_narrowed(versions: Versions, before: Versions) -> bool:
    """Whether these are the earlier versions, narrowed by a test; `:=` adds a definition of its own."""
    known = {number for version in before for number in version.definitions}
    return all(known.issuperset(version.definitions) for version in versions)


def check_truth(b: Builder, node: int | None) -> Node:
    """Compile an expression that is tested for truth and return the node of its value."""
    value = b.value(node)
    if node is not None and value != NOTHING and b.tree.kind[node] not in ("BoolOp", "Compare"):
        b.special(node, value, TRUTH, [], "truth")
    return value


def _unary(b: Builder, node: int) -> Node:
    operand, kind = b.tree.child(node, "operand"), _operator(b, node)
    if kind == "Not":
        check_truth(b, operand)
        return NOTHING
    value = b.value(operand)
    return value if value in b.const_nodes else b.special(node, value, [UNARY[kind]], [], "operator")


def _binary(b: Builder, node: int) -> Node:
    first = b.tree.child(node, "left")
    left, right = b.value(first), b.value(b.tree.child(node, "right"))
    prefix = _string_prefix(b, first)
    value = apply_operator(b, node, left, right)
    return value if prefix == NOTHING else b.phi([prefix, value])


def _string_prefix(b: Builder, node: int) -> Node:
    """Return a string with the constant start of a composed name: `"go_" + x`, `"go_%s" % x`, `f"go_{x}"`."""
    text = b.tree.value[node]
    if not b.uses_getattr or text is None or text[0] not in "'\"":
        return NOTHING
    start = text[1:-1].partition("%")[0].partition("{")[0]
    return b.make(ir.OBJ_STRING_PREFIX, start) if start.isidentifier() and len(start) > 1 else NOTHING


def apply_operator(b: Builder, node: int, left: Node, right: Node, prefix: str = "") -> Node:
    """Compile a binary operator, with prefix `i` in place; return the node of the result."""
    if all(value == NOTHING or value in b.const_nodes for value in (left, right)):
        return left
    result = b.new_node()
    if left == NOTHING:
        left = b.new_node()
    kind = _operator(b, node)
    b.binary(node, left, right, prefix + OPERATORS.get(kind, kind.lower()), result)
    return result


def _compare(b: Builder, node: int) -> Node:
    tree = b.tree
    values = [b.value(operand) for operand in (tree.child(node, "left"), *tree.many(node, "comparators"))]
    for left, right, op in zip(values, values[1:], tree.many(node, "ops"), strict=False):
        kind = tree.kind[op]
        if kind in COMPARISONS and not {left, right} <= b.const_nodes | {NOTHING}:
            first = b.new_node() if left == NOTHING else left
            b.binary(node, first, right, COMPARISONS[kind], NOTHING)
        elif kind in ("In", "NotIn"):
            b.special(node, right, ["__contains__", "__iter__"], [left], "operator")
    return NOTHING


def _joined_string(b: Builder, node: int) -> Node:
    values = b.tree.many(node, "values")
    for value in values:
        b.value(value)
    text = b.const("str")
    return b.phi([text, _string_prefix(b, values[0])]) if len(values) > 1 else text


def _formatted_value(b: Builder, node: int) -> Node:
    value = b.value(b.tree.child(node, "value"))
    b.value(b.tree.one(node, "format_spec"))
    names = CONVERSIONS.get(b.tree.value[node] or "", ["__format__", "__str__", "__repr__"])
    b.special(node, value, names, [], "format")
    return NOTHING


def _subscript(b: Builder, node: int) -> Node:
    base, index = b.tree.child(node, "value"), b.tree.child(node, "slice")
    receiver = b.value(base)
    key_value = b.value(index)
    if b.tree.name[base] in TYPING_FORMS:
        use_quoted_names(b, node)
    if receiver == NOTHING:
        return NOTHING
    b.call_count += 1
    return b.load_item(receiver, index, b.site(node, "subscript"), key_value)


def _sequence(kind: str, b: Builder, node: int) -> Node:
    tree, items = b.tree, b.tree.many(node, "elts")
    starred = any(tree.kind[item] == "Starred" for item in items)
    result = b.container(kind, -1 if starred or len(items) > MAX_KEYS else len(items))
    by_position = kind != "set" and len(items) <= MAX_KEYS
    seen: set[tuple[str | None, Node]] = set()
    for at, item in enumerate(items):
        if tree.kind[item] == "Starred":
            by_position = False
            inner, value = b.new_node(), b.value(tree.one(item, "value"))
            if value != NOTHING:
                b.ops.append((ir.OP_ITERATE, value, inner, b.site(item, "iteration")))
                b.put(result, None, inner)
            continue
        value = b.value(item)
        key = str(at) if by_position else None
        if (key, value) not in seen:
            seen.add((key, value))
            b.put(result, key, value)
    return result


def _dict(b: Builder, node: int) -> Node:
    tree, result = b.tree, b.container("dict")
    values = tree.many(node, "values")
    seen: set[tuple[str | None, Node]] = set()
    for key, item in zip(tree.gapped(node, "keys", len(values)), values, strict=True):
        key_value, value = b.value(key), b.value(item)
        if key is None:
            if value != NOTHING:
                b.ops.append((ir.OP_UPDATE, result, value))
            continue
        text = None if value in b.const_nodes or len(values) > MAX_KEYS else b.key(key)
        if (text, value) not in seen:
            seen.add((text, value))
            b.put(result, text, value)
        if ("keys", key_value) not in seen:
            seen.add(("keys", key_value))
            b.put_key(result, key_value)
    return result


def _comprehension(kind: str, b: Builder, node: int) -> Node:
    tree, outer = b.tree, b.frame
    result = b.container(kind)
    generators = tree.many(node, "generators")
    # The first iterable is evaluated in the enclosing scope.
    source = b.value(tree.child(generators[0], "iter"))
    scope = b.scopes[node]
    b.frame = Frame(scope, outer.function, qualname=outer.qualname, owner=outer.owner, inline=outer)
    for number, generator in enumerate(generators):
        if number > 0:
            source = b.value(tree.child(generator, "iter"))
        assign(b, tree.child(generator, "target"), b.iterate(generator, source))
        for test in tree.many(generator, "ifs"):
            check_truth(b, test)
            narrow(b, test)
    if kind == "dict":
        b.put_key(result, b.value(tree.child(node, "key")))
    value = b.value(tree.child(node, "value" if kind == "dict" else "elt"))
    b.frame = outer
    b.put(result, None, value)
    return result


def narrow(b: Builder, test: int) -> None:
    """Narrow the names that `isinstance` or `issubclass` checks, for code that runs if the test is true."""
    tree = b.tree
    if tree.kind[test] == "BoolOp" and _is_and(b, test):
        for value in tree.many(test, "values"):
            narrow(b, value)
    func, args = tree.one(test, "func"), tree.many(test, "args")
    op = None if func is None else NARROWING.get(tree.name[func] or "")
    if op is None or len(args) != 2 or tree.kind[args[0]] != "Name":
        return
    name = tree.name[args[0]] or ""
    resolved = b.frame.scope.resolve(name)
    frame = b.frame.frame_of(resolved.binding_scope) if resolved.binding_scope else None
    if frame is None or resolved.name in b.declared:
        return
    source, definitions = read(b, name)
    uses = len(b.uses)
    classes = b.value(args[1])
    # The classes are compiled a second time: their names have been used once.
    del b.uses[uses:]
    if NOTHING in (source, classes):
        return
    joined = [number for numbers in definitions for number in numbers]
    frame.env[resolved.name] = (Version(b.narrow(source, classes, op), joined, b.call_count),)


def _value(b: Builder, node: int) -> Node:
    return b.value(b.tree.child(node, "value"))


def _await(b: Builder, node: int) -> Node:
    return b.run(ir.OP_AWAIT, b.value(b.tree.child(node, "value")), node, "await")


def _yield(b: Builder, node: int) -> Node:
    value = b.value(b.tree.one(node, "value"))
    b.call_count += 1
    if b.frame.function >= 0:
        b.copy(value, b.program.functions[b.frame.function].yields)
    return NOTHING


def _yield_from(b: Builder, node: int) -> Node:
    source = b.value(b.tree.child(node, "value"))
    b.call_count += 1
    if source == NOTHING or b.frame.function < 0:
        return NOTHING
    yields = b.program.functions[b.frame.function].yields
    b.ops.append((ir.OP_ITERATE, source, yields, b.site(node, "iteration")))
    return b.result(ir.OP_YIELD_FROM, source)


# By kind of a node; of another kind only the expressions in it are compiled.
EXPRESSIONS: Expressions = {
    "Attribute": _attribute,
    "Await": _await,
    "BinOp": _binary,
    "BoolOp": _boolean,
    "Call": _call,
    "Compare": _compare,
    "Constant": _constant,
    "Dict": _dict,
    "DictComp": partial(_comprehension, "dict"),
    "FormattedValue": _formatted_value,
    "GeneratorExp": partial(_comprehension, "generator"),
    "IfExp": _conditional,
    "JoinedStr": _joined_string,
    "Lambda": compile_lambda,
    "List": partial(_sequence, "list"),
    "ListComp": partial(_comprehension, "list"),
    "Name": _name,
    "NamedExpr": _named_expression,
    "Set": partial(_sequence, "set"),
    "SetComp": partial(_comprehension, "set"),
    "Starred": _value,
    "Subscript": _subscript,
    "TemplateStr": _joined_string,
    "Tuple": partial(_sequence, "tuple"),
    "UnaryOp": _unary,
    "Yield": _yield,
    "YieldFrom": _yield_from,
}
