"""Compile expressions to operations: every expression gets the node that holds its value.

    self.run(job)      OP_LOAD_ATTRIBUTE self run 5, then OP_CALL 5 with job into 6

Names are resolved by the compiler's scopes and, within the frame that binds them, by their current versions.
Values that are never called and have no attributes of interest, such as None, have no node. Constants share
one node per type. A display with many elements does not keep their keys.

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from codeanatomy.relate.compile.annotations import Hint, compile_hint
from codeanatomy.relate.compile.names import NO_PLACE, NameCompiler
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.variables import Frame, Version, Versions
from codeanatomy.relate.program import (
    KEYWORD,
    NOTHING,
    OBJ_STRING_PREFIX,
    OP_AWAIT,
    OP_BINARY,
    OP_CALL,
    OP_ISINSTANCE,
    OP_ITERATE,
    OP_LOAD_ATTRIBUTE,
    OP_LOAD_ITEM,
    OP_MAKE,
    OP_SPECIAL_METHOD,
    OP_STORE_ITEM,
    OP_STORE_KEY,
    OP_UPDATE,
    OP_YIELD_FROM,
    POSITIONAL,
    SLICE,
    STAR,
    STAR_STAR,
    Arg,
    Node,
    Program,
)
from codeanatomy.syntax_tree import Tree

# Most elements of a display that are kept by key, and characters of a key.
MAX_KEYS = 200
KEY_CHARS = 100
OPERATORS: Mapping[str, str] = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "MatMult": "matmul",
    "Div": "truediv",
    "Mod": "mod",
    "Pow": "pow",
    "LShift": "lshift",
    "RShift": "rshift",
    "BitOr": "or",
    "BitXor": "xor",
    "BitAnd": "and",
    "FloorDiv": "floordiv",
}
UNARY: Mapping[str, str] = {"Invert": "__invert__", "UAdd": "__pos__", "USub": "__neg__"}
COMPARISONS: Mapping[str, str] = {
    "Eq": "eq",
    "NotEq": "ne",
    "Lt": "lt",
    "LtE": "le",
    "Gt": "gt",
    "GtE": "ge",
}
# Functions and methods with a result that depends on the text of a constant argument.
TEXT_DEPENDENT = frozenset({"getattr", "setattr", "get", "pop", "setdefault", "__getitem__", "import_module"})
# Special methods that `!r`, `!s` and `!a` in an f-string call.
CONVERSIONS = {"r": ["__repr__"], "a": ["__repr__"], "s": ["__str__", "__repr__"]}
TRUTH = ["__bool__", "__len__"]


class ExpressionCompiler(NameCompiler):
    """Compiles expressions; method `of_call` compiles a Call, and so on."""

    def __init__(self, program: Program, tree: Tree, scopes: Mapping[int, Scope]) -> None:
        super().__init__(program, tree, scopes)
        self._by_kind: dict[str, Callable[[int], Node]] = {}

    def value(self, node: int | None) -> Node:
        """Compile an expression and return the node of its value; NOTHING if it has none."""
        if node is None:
            return NOTHING
        kind = self.tree.kind[node]
        method = self._by_kind.get(kind)
        if method is None:
            method = self._by_kind[kind] = getattr(self, f"of_{kind.lower()}", self._other)
        return method(node)

    def _other(self, node: int) -> Node:
        for child in self.tree.children(node):
            self.value(child)
        return NOTHING

    def of_constant(self, node: int) -> Node:
        text = self.tree.value[node]
        kind = constant_type(text)
        if kind == "str" and self.uses_getattr and text is not None and text[1:-1].isidentifier():
            return self.string(text[1:-1])
        return self.const(kind) if kind else NOTHING

    def of_name(self, node: int) -> Node:
        name = self.tree.name[node] or ""
        value, definitions = self.read(name)
        self.uses.append((self.place(node), name, definitions))
        return value

    def of_attribute(self, node: int) -> Node:
        owner = self.tree.one(node, "value")
        receiver = self.value(owner)
        if receiver == NOTHING:
            receiver = self.new_node()
        result = self.new_node()
        attr = self.mangled(self.tree.name[node] or "")
        self.ops.append((OP_LOAD_ATTRIBUTE, receiver, attr, result, self.attribute_site(node)))
        return result

    def attribute_site(self, node: int) -> int:
        """Add the site of an attribute, with the place of its identifier."""
        start, end, line = self.place(node)
        inner = NO_PLACE
        if start is not None and end is not None and (start, end) in self.identifiers:
            inner = (*self.identifiers[start, end], line)
        return self.site(node, "attribute", inner)

    def of_call(self, node: int) -> Node:
        tree = self.tree
        func = tree.one(node, "func")
        callee = self.value(func)
        args = self.arguments(tree.many(node, "args"), tree.many(node, "keywords"))
        self.call_count += 1
        if callee == NOTHING:
            callee = self.new_node()
        result = self.new_node()
        inner = NO_PLACE if func is None else self.place(func)
        site = self.site(node, "call", inner)
        if args:
            given = [*tree.many(node, "args"), *tree.many(node, "keywords")]
            values = (
                tree.one(arg, "value") if tree.kind[arg] in ("Starred", "keyword") else arg for arg in given
            )
            self.program.arguments[site] = [NO_PLACE if arg is None else self.place(arg) for arg in values]
        if func is not None and tree.name[func] in TEXT_DEPENDENT:
            self.program.constant_arguments[site] = [self.key(arg) for arg in tree.many(node, "args")]
        self.ops.append((OP_CALL, callee, result, site, args))
        return result

    def arguments(self, positional: Sequence[int], keywords: Sequence[int]) -> list[Arg]:
        """Compile the arguments of a call."""
        tree, args = self.tree, list[Arg]()
        for arg in positional:
            if tree.kind[arg] == "Starred":
                args.append((STAR, None, self.value(tree.one(arg, "value"))))
            else:
                args.append((POSITIONAL, None, self.value(arg)))
        for keyword in keywords:
            name, value = tree.name[keyword], self.value(tree.one(keyword, "value"))
            args.append((STAR_STAR, None, value) if name is None else (KEYWORD, name, value))
        return args

    def of_namedexpr(self, node: int) -> Node:
        value = self.value(self.tree.one(node, "value"))
        self.assign(self.tree.one(node, "target"), value)
        return value

    def assign(self, target: int | None, value: Node) -> None:
        """Assign a value to the target of an assignment."""
        raise NotImplementedError

    def of_lambda(self, node: int) -> Node:
        raise NotImplementedError

    def of_ifexp(self, node: int) -> Node:
        tree = self.tree
        self.truth(tree.one(node, "test"))
        return self.phi([self.value(tree.one(node, "body")), self.value(tree.one(node, "orelse"))])

    def of_boolop(self, node: int) -> Node:
        values, op = self.tree.many(node, "values"), self.tree.one(node, "op")
        is_and = op is not None and self.tree.kind[op] == "And"
        before = dict(self.frame.env)
        nodes = []
        for value in values[:-1]:
            nodes.append(self.truth(value))
            if is_and:
                # Operands further right are evaluated only if this one is true.
                self.narrow(value)
        nodes.append(self.value(values[-1]))
        if is_and:
            for name, versions in before.items():
                if name in self.frame.env and self._is_narrowed(self.frame.env[name], versions):
                    self.frame.env[name] = versions
        return self.phi(nodes)

    def _is_narrowed(self, versions: Versions, before: Versions) -> bool:
        """Whether these are the earlier versions, narrowed by a test; `:=` adds a definition of its own."""
        known = {number for version in before for number in version.definitions}
        return all(known.issuperset(version.definitions) for version in versions)

    def truth(self, node: int | None) -> Node:
        """Compile an expression that is tested for truth and return the node of its value."""
        value = self.value(node)
        if node is not None and value != NOTHING and self.tree.kind[node] not in ("BoolOp", "Compare"):
            self.special(node, value, TRUTH, [], "truth")
        return value

    def special(self, node: int, receiver: Node, names: list[str], args: Sequence[Node], role: str) -> Node:
        """Call the first of these special methods that the receiver has; return the node of the result."""
        if receiver == NOTHING or receiver in self.const_nodes:
            return NOTHING
        result = self.new_node()
        given = [(POSITIONAL, None, arg) for arg in args]
        self.call_count += 1
        self.ops.append((OP_SPECIAL_METHOD, receiver, names, given, result, self.site(node, role)))
        return result

    def of_unaryop(self, node: int) -> Node:
        operand = self.tree.one(node, "operand")
        op = self.tree.one(node, "op")
        kind = "" if op is None else self.tree.kind[op]
        if kind == "Not":
            self.truth(operand)
            return NOTHING
        value = self.value(operand)
        if value in self.const_nodes:
            return value
        return self.special(node, value, [UNARY.get(kind, "__neg__")], [], "operator")

    def of_binop(self, node: int) -> Node:
        tree = self.tree
        first = tree.one(node, "left")
        left, right = self.value(first), self.value(tree.one(node, "right"))
        prefix = self.prefix(first)
        if prefix is not None:
            return self.phi([self.string_prefix(prefix), self.operator(node, left, right, "")])
        return self.operator(node, left, right, "")

    def prefix(self, node: int | None) -> str | None:
        """Return the constant start of a composed name: `"visit_" + x`, `"visit_%s" % x`, `f"visit_{x}"`."""
        text = None if node is None else self.tree.value[node]
        if not self.uses_getattr or text is None or text[0] not in "'\"":
            return None
        start = text[1:-1].partition("%")[0].partition("{")[0]
        return start if start.isidentifier() and len(start) > 1 else None

    def string_prefix(self, prefix: str) -> Node:
        """Return the node of a string that starts with the prefix."""
        result = self.new_node()
        self.ops.append((OP_MAKE, result, OBJ_STRING_PREFIX, prefix))
        return result

    def operator(self, node: int, left: Node, right: Node, prefix: str) -> Node:
        """Compile a binary operator, with prefix `i` in place; return the node of the result."""
        op = self.tree.one(node, "op")
        name = OPERATORS.get("" if op is None else self.tree.kind[op], "add")
        plain_right = right == NOTHING or right in self.const_nodes
        if (left == NOTHING or left in self.const_nodes) and plain_right:
            return left
        result = self.new_node()
        if left == NOTHING:
            left = self.new_node()
        self.call_count += 1
        self.ops.append((OP_BINARY, left, right, prefix + name, result, self.site(node, "operator")))
        return result

    def of_compare(self, node: int) -> Node:
        tree = self.tree
        operands = [tree.one(node, "left"), *tree.many(node, "comparators")]
        values = [self.value(operand) for operand in operands]
        for at, op in enumerate(tree.many(node, "ops")):
            left, right, kind = values[at], values[at + 1], tree.kind[op]
            if kind in COMPARISONS and not {left, right} <= self.const_nodes | {NOTHING}:
                self.call_count += 1
                first = self.new_node() if left == NOTHING else left
                site = self.site(node, "operator")
                self.ops.append((OP_BINARY, first, right, COMPARISONS[kind], NOTHING, site))
            elif kind in ("In", "NotIn"):
                self.special(node, right, ["__contains__", "__iter__"], [left], "operator")
        return NOTHING

    def of_joinedstr(self, node: int) -> Node:
        values = self.tree.many(node, "values")
        for value in values:
            self.value(value)
        prefix = self.prefix(values[0]) if len(values) > 1 else None
        return (
            self.const("str") if prefix is None else self.phi([self.const("str"), self.string_prefix(prefix)])
        )

    of_templatestr = of_joinedstr

    def of_formattedvalue(self, node: int) -> Node:
        value = self.value(self.tree.one(node, "value"))
        self.value(self.tree.one(node, "format_spec"))
        names = CONVERSIONS.get(self.tree.value[node] or "", ["__format__", "__str__", "__repr__"])
        self.special(node, value, names, [], "format")
        return NOTHING

    def of_starred(self, node: int) -> Node:
        return self.value(self.tree.one(node, "value"))

    def of_slice(self, node: int) -> Node:
        self._other(node)
        return NOTHING

    def of_subscript(self, node: int) -> Node:
        tree = self.tree
        receiver = self.value(tree.one(node, "value"))
        index = tree.one(node, "slice")
        key_value = self.value(index)
        if receiver == NOTHING:
            return NOTHING
        result = self.new_node()
        self.call_count += 1
        site = self.site(node, "subscript")
        self.ops.append((OP_LOAD_ITEM, receiver, self.key(index), result, site, key_value))
        return result

    def key(self, index: int | None) -> str | None:
        """Return a constant key as text, SLICE for a slice, None for a key that is not constant."""
        if index is None:
            return None
        kind = self.tree.kind[index]
        if kind == "Slice":
            return SLICE
        text = self.tree.value[index]
        if kind == "UnaryOp":
            operand = self.tree.one(index, "operand")
            text = None if operand is None or self.tree.value[operand] is None else "-1"
        if text is None or len(text) > KEY_CHARS:
            return None
        return text

    def of_list(self, node: int) -> Node:
        return self._sequence("list", node)

    def of_tuple(self, node: int) -> Node:
        return self._sequence("tuple", node)

    def of_set(self, node: int) -> Node:
        return self._sequence("set", node)

    def _sequence(self, kind: str, node: int) -> Node:
        tree = self.tree
        items = tree.many(node, "elts")
        starred = any(tree.kind[item] == "Starred" for item in items)
        result = self.container(kind, -1 if starred or len(items) > MAX_KEYS else len(items))
        by_position = kind != "set" and len(items) <= MAX_KEYS
        seen: set[tuple[str | None, Node]] = set()
        for at, item in enumerate(items):
            if tree.kind[item] == "Starred":
                by_position = False
                inner = self.new_node()
                value = self.value(tree.one(item, "value"))
                if value == NOTHING:
                    continue
                self.ops.append((OP_ITERATE, value, inner, self.site(item, "iteration")))
                self.ops.append((OP_STORE_ITEM, result, None, inner, NOTHING))
                continue
            value = self.value(item)
            key = str(at) if by_position else None
            if value != NOTHING and (key, value) not in seen:
                seen.add((key, value))
                self.ops.append((OP_STORE_ITEM, result, key, value, NOTHING))
        return result

    def of_dict(self, node: int) -> Node:
        tree, result = self.tree, self.container("dict")
        values = tree.many(node, "values")
        keys = tree.gapped(node, "keys", len(values))
        seen: set[tuple[str | None, Node]] = set()
        for key, item in zip(keys, values, strict=True):
            key_value, value = self.value(key), self.value(item)
            if key is None:
                if value != NOTHING:
                    self.ops.append((OP_UPDATE, result, value))
                continue
            text = self.key(key) if len(values) <= MAX_KEYS else None
            if value in self.const_nodes:
                text = None
            if value != NOTHING and (text, value) not in seen:
                seen.add((text, value))
                self.ops.append((OP_STORE_ITEM, result, text, value, NOTHING))
            if key_value != NOTHING and ("keys", key_value) not in seen:
                seen.add(("keys", key_value))
                self.ops.append((OP_STORE_KEY, result, key_value))
        return result

    def of_listcomp(self, node: int) -> Node:
        return self._comprehension("list", node)

    def of_setcomp(self, node: int) -> Node:
        return self._comprehension("set", node)

    def of_generatorexp(self, node: int) -> Node:
        return self._comprehension("generator", node)

    def of_dictcomp(self, node: int) -> Node:
        return self._comprehension("dict", node)

    def _comprehension(self, kind: str, node: int) -> Node:
        tree, outer = self.tree, self.frame
        result = self.container(kind)
        generators = tree.many(node, "generators")
        # The first iterable is evaluated in the enclosing scope.
        first = self.value(tree.one(generators[0], "iter")) if generators else NOTHING
        scope = self.scopes.get(node)
        if scope is not None:
            self.frame = Frame(
                scope, outer.function, qualname=outer.qualname, owner=outer.owner, inline=outer
            )
        try:
            for number, generator in enumerate(generators):
                source = first if number == 0 else self.value(tree.one(generator, "iter"))
                self.assign(tree.one(generator, "target"), self.element(generator, source))
                for test in tree.many(generator, "ifs"):
                    self.truth(test)
                    self.narrow(test)
            if kind == "dict":
                keys = self.value(tree.one(node, "key"))
                if keys != NOTHING:
                    self.ops.append((OP_STORE_KEY, result, keys))
                value = self.value(tree.one(node, "value"))
            else:
                value = self.value(tree.one(node, "elt"))
        finally:
            self.frame = outer
        if value != NOTHING:
            self.ops.append((OP_STORE_ITEM, result, None, value, NOTHING))
        return result

    def element(self, node: int, source: Node) -> Node:
        """Iterate over a value and return the node of the elements; `node` is the loop or generator."""
        if source == NOTHING:
            return NOTHING
        result = self.new_node()
        self.call_count += 1
        iterable = self.tree.one(node, "iter")
        site = self.site(node if iterable is None else iterable, "iteration")
        self.ops.append((OP_ITERATE, source, result, site))
        return result

    def narrow(self, test: int | None) -> None:
        """Narrow the names that a test with `isinstance` checks, for code that runs if it is true."""
        tree = self.tree
        if test is None:
            return
        if tree.kind[test] == "BoolOp":
            op = tree.one(test, "op")
            if op is not None and tree.kind[op] == "And":
                for value in tree.many(test, "values"):
                    self.narrow(value)
            return
        func, args = tree.one(test, "func"), tree.many(test, "args")
        if func is None or tree.name[func] != "isinstance" or len(args) != 2 or tree.kind[args[0]] != "Name":
            return
        name = tree.name[args[0]] or ""
        resolved = self.frame.scope.resolve(name)
        frame = self.frame.frame_of(resolved.binding_scope) if resolved.binding_scope else None
        if frame is None or resolved.name in self.declared:
            return
        source, definitions = self.read(name)
        classes = self._value_again(args[1])
        if NOTHING in (source, classes):
            return
        result = self.new_node()
        self.ops.append((OP_ISINSTANCE, source, classes, result))
        joined = [number for numbers in definitions for number in numbers]
        frame.env[resolved.name] = (Version(result, joined, self.call_count),)

    def _value_again(self, node: int) -> Node:
        """Compile an expression a second time, without recording its uses of names again."""
        uses = len(self.uses)
        value = self.value(node)
        del self.uses[uses:]
        return value

    def of_await(self, node: int) -> Node:
        source = self.value(self.tree.one(node, "value"))
        if source == NOTHING:
            return NOTHING
        result = self.new_node()
        self.call_count += 1
        self.ops.append((OP_AWAIT, source, result, self.site(node, "await")))
        return result

    def of_yield(self, node: int) -> Node:
        value = self.value(self.tree.one(node, "value"))
        self.call_count += 1
        if self.frame.function >= 0:
            self.copy(value, self.program.functions[self.frame.function].yields)
        return NOTHING

    def of_yieldfrom(self, node: int) -> Node:
        source = self.value(self.tree.one(node, "value"))
        self.call_count += 1
        if source == NOTHING or self.frame.function < 0:
            return NOTHING
        result = self.new_node()
        self.ops.append(
            (
                OP_ITERATE,
                source,
                self.program.functions[self.frame.function].yields,
                self.site(node, "iteration"),
            )
        )
        self.ops.append((OP_YIELD_FROM, source, result))
        return result

    def hint(self, node: int | None) -> Hint | None:
        """Compile an annotation to a hint; its names are read in the current frame."""
        if node is None:
            return None
        calls = self.call_count
        self.value(node)
        # Subscripts such as `List[int]` run no code of the repository.
        self.call_count = calls
        return compile_hint(self.tree, node, self._annotation_name)

    def _annotation_name(self, dotted: str) -> Node:
        """Return the node of a dotted name in an annotation."""
        first, *rest = dotted.split(".")
        resolved = self.frame.scope.resolve(first)
        if resolved.binding_scope is not None:
            # Through the cell: it may be defined only later in the file.
            node, _ = self._read_cell(resolved.binding_scope, resolved.name)
        else:
            node = self.unbound(first)
        for attr in rest:
            if node == NOTHING:
                return NOTHING
            result = self.new_node()
            self.ops.append((OP_LOAD_ATTRIBUTE, node, attr, result, NOTHING))
            node = result
        return node


def constant_type(text: str | None) -> str | None:
    """Return the builtin type of a constant from its `repr`; None for None and Ellipsis.

    >>> constant_type("'a'"), constant_type("1.5"), constant_type("None")
    ('str', 'float', None)
    """
    if not text or text in ("None", "Ellipsis"):
        return None
    if text in ("True", "False"):
        return "bool"
    if text[0] in "'\"":
        return "str"
    if text[0] == "b":
        return "bytes"
    if text[-1] in "jJ)":
        return "complex"
    return "float" if any(mark in text for mark in (".", "e", "inf", "nan")) and text[:2] != "0x" else "int"
