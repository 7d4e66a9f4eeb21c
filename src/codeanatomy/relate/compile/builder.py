"""Build the program of a file: nodes, sites, definitions and operations.

    b = Builder(program, tree, scopes, imports, identifiers, lambdas, EXPRESSIONS, STATEMENTS)
    b.value(node)                         # compile an expression by its kind: the node of its value
    b.load_attribute(self, "run", site)   # append an operation: the node of its result

The compiler is functions over a builder; only the builder knows the operands of operations, as far as more
than one function writes them. An operand that is NOTHING makes no operation. Constants share one node per
type.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from codeanatomy.file_view import Columns, iter_rows
from codeanatomy.relate import program as ir
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.variables import Cell, Frame
from codeanatomy.relate.program import NOTHING, Arg, DefinedName, Node, Op, Place, Program, Site
from codeanatomy.syntax_tree import Tree

NO_PLACE: Place = (None, None, None)
# Most characters of a key.
KEY_CHARS = 100
IMPORT_FIELDS = ("ast_id", "module", "name", "asname", "level")
Expressions: TypeAlias = Mapping[str, Callable[["Builder", int], Node]]
# Spans of identifiers, see `file_program.identifier_places`.
Identifiers: TypeAlias = Mapping[tuple[int | None, int | None], tuple[int, int]]
# Definitions that a read of a name may come from, by version.
Definitions: TypeAlias = Sequence[Iterable[int]]


class Builder(Struct, eq=False, dict=True):
    """The program of a file while it is compiled."""

    program: Program
    tree: Tree
    scopes: Mapping[int, Scope]
    imports: Columns
    identifiers: Identifiers
    lambdas: Mapping[int, str]
    # Functions that compile a node, by its kind.
    expressions: Expressions
    statements: Mapping[str, Callable[[Builder, int], None]]
    # Bodies of functions that are still to be compiled, and numbers of functions by scope.
    pending_bodies: deque[Callable[[], None]] = field(default_factory=deque)
    function_numbers: dict[Scope, int] = {}
    # Number of calls so far: between two of them no other code can run.
    call_count: int = 0
    # Versions of a name that code which runs at another time may see, by the scope that binds it.
    cells: dict[tuple[Scope, str], Cell] = {}
    unbound_nodes: dict[str, Node] = {}
    # Names that a function declares global or nonlocal: it may write them at any time.
    declared: set[str] = set()
    uses: list[tuple[Place, str, Definitions]] = []
    # Names in quoted annotations, as in the program, each with what binds it: a scope, and its name there.
    quoted_uses: dict[tuple[Place, int, str], tuple[Scope | None, str]] = {}
    # Definitions of a stub that are overloads: they do not replace each other.
    overloads: set[int] = set()
    # Nodes of constants by kind, and type or text.
    consts: dict[tuple[str, str], Node] = {}
    const_nodes: set[Node] = set()
    # Joined nodes of the current function.
    phis: dict[tuple[Node, ...], Node] = {}

    def __post_init__(self) -> None:
        tree = self.tree
        self.frame = Frame(self.scopes[0], -1, "")
        self.ops: list[Op] = self.program.ops
        self.place: Callable[[int], Place] = list(
            zip(tree.bstart, tree.bend, tree.line, strict=True)
        ).__getitem__
        # AST id, module, name, asname and level of each alias.
        self.imported = {alias[0]: alias for alias in iter_rows(self.imports, *IMPORT_FIELDS)}
        # Strings are distinguished only in files that look up attributes by name.
        self.uses_getattr = "getattr" in tree.name

    def value(self, node: int | None) -> Node:
        """Compile an expression and return the node of its value; NOTHING if it has none."""
        if node is None:
            return NOTHING
        return self.expressions.get(self.tree.kind[node], Builder.visit_children)(self, node)

    def visit_children(self, node: int) -> Node:
        """Compile the expressions in a node that has no value itself."""
        for child in self.tree.children(node):
            self.value(child)
        return NOTHING

    def block(self, statements: Sequence[int]) -> None:
        kinds, table = self.tree.kind, self.statements
        for node in statements:
            table.get(kinds[node], Builder.visit_children)(self, node)

    # Nodes, sites, definitions.

    def new_node(self) -> Node:
        self.program.nodes += 1
        return self.program.nodes - 1

    def site(self, node: int, role: str, inner: Place = NO_PLACE) -> int:
        self.program.sites.append(Site(node, role, self.place(node), self.frame.function, inner))
        return len(self.program.sites) - 1

    def attribute_site(self, node: int) -> int:
        """Add the site of an attribute, with the place of its identifier."""
        start, end, line = self.place(node)
        identifier = self.identifiers.get((start, end))
        return self.site(node, "attribute", NO_PLACE if identifier is None else (*identifier, line))

    def keyword_place(self, node: int, name: str) -> Place:
        """Return the place of the name of a keyword argument, as it is written."""
        start, _, line = self.place(node)
        first = self.tree.bstart[self.tree.child(node, "value")]
        # The compiler normalizes names; LibCST has the bytes of those that are not ASCII.
        own = (0, len(name.encode("utf-8", "surrogatepass")))
        _, length = self.identifiers.get((first, first), own)
        return (start, None if start is None else start + length, line)

    def attribute_name(self, node: int) -> str:
        """Return the name of an attribute as the compiler mangles it."""
        name = self.tree.name[node] or ""
        private = (self.frame.scope.private or "").lstrip("_")
        return f"_{private}{name}" if private and name.startswith("__") and not name.endswith("__") else name

    def define(self, kind: str, index: int, place: Place, name: str) -> int:
        self.program.definitions.append(DefinedName(kind, index, place, name))
        return len(self.program.definitions) - 1

    def cell(self, scope: Scope, name: str) -> Cell:
        if (scope, name) not in self.cells:
            self.cells[scope, name] = Cell()
        return self.cells[scope, name]

    def options(self, node: int) -> dict[str, str]:
        """Return the keywords of a call or class statement as Python literals, "" if not constant."""
        named = {self.tree.name[each] or "": each for each in self.tree.many(node, "keywords")}
        return {name: self.key(self.tree.child(each, "value")) or "" for name, each in named.items()}

    def key(self, index: int | None) -> str | None:
        """Return a constant key as text, SLICE for a slice, None for a key that is not constant."""
        if index is None:
            return None
        kind = self.tree.kind[index]
        if kind == "Slice":
            return ir.SLICE
        text = self.tree.value[index]
        if kind == "UnaryOp":
            text = None if self.tree.value[self.tree.child(index, "operand")] is None else "-1"
        return None if text is None or len(text) > KEY_CHARS else text

    # Operations.

    def result(self, *before: Any, after: tuple[Any, ...] = ()) -> Node:
        """Append an operation whose result, a new node, stands between these operands; return the node."""
        node = self.new_node()
        self.ops.append((*before, node, *after))
        return node

    def make(self, kind: str, operand: int | str) -> Node:
        """Return a new node that holds an object."""
        return self.result(ir.OP_MAKE, after=(kind, operand))

    def container(self, kind: str, size: int = -1) -> Node:
        """Create a list, tuple, dict, set or generator; size is -1 if not known."""
        self.program.containers.append((kind, size))
        return self.make(ir.OBJ_CONTAINER, len(self.program.containers) - 1)

    def const(self, text: str, kind: str = ir.OBJ_CONSTANT) -> Node:
        """Return the node of all constants of a builtin type, or of a string that may name an attribute."""
        if (kind, text) not in self.consts:
            self.consts[kind, text] = self.make(kind, text)
            self.const_nodes.add(self.consts[kind, text])
        return self.consts[kind, text]

    def unbound(self, name: str) -> Node:
        """Return the node of a name that the file does not bind."""
        if name not in self.unbound_nodes:
            self.unbound_nodes[name] = self.result(ir.OP_UNBOUND_NAME, name)
        return self.unbound_nodes[name]

    def copy(self, src: Node, dst: Node) -> None:
        """Let all objects of one node flow into another."""
        if NOTHING not in (src, dst) and src != dst:
            self.ops.append((ir.OP_COPY, src, dst))

    def phi(self, nodes: Iterable[Node]) -> Node:
        """Return a node that holds the objects of all these nodes."""
        distinct = tuple(dict.fromkeys(node for node in nodes if node != NOTHING))
        if len(distinct) < 2:
            return distinct[0] if distinct else NOTHING
        if distinct not in self.phis:
            result = self.phis[distinct] = self.new_node()
            for node in distinct:
                self.copy(node, result)
        return self.phis[distinct]

    def annotate(self, hint: tuple[Any, ...] | None) -> Node:
        """Return a node that holds what an annotation states."""
        return NOTHING if hint is None else self.result(ir.OP_ANNOTATE, hint)

    def narrow(self, source: Node, classes: Node, op: str = ir.OP_ISINSTANCE) -> Node:
        """Return a node that holds the objects which are instances, or subclasses, of these classes."""
        return self.result(op, source, classes)

    def load_attribute(self, receiver: Node, attr: str, site: int) -> Node:
        return self.result(ir.OP_LOAD_ATTRIBUTE, receiver, attr, after=(site,))

    def load_item(self, receiver: Node, index: int | None, site: int, key_value: Node) -> Node:
        return self.result(ir.OP_LOAD_ITEM, receiver, self.key(index), after=(site, key_value))

    def put(self, container: Node, key: str | None, value: Node) -> None:
        """Put an element into a container that this expression creates."""
        if value != NOTHING:
            self.ops.append((ir.OP_STORE_ITEM, container, key, value, NOTHING))

    def put_key(self, container: Node, key: Node) -> None:
        if key != NOTHING:
            self.ops.append((ir.OP_STORE_KEY, container, key))

    def unpack(self, source: Node, position: str | None) -> Node:
        """Return the node of an element, by position."""
        return NOTHING if source == NOTHING else self.result(ir.OP_UNPACK, source, position)

    def run(self, code: str, source: Node, node: int, role: str) -> Node:
        """Append an operation on a value that runs code at a syntax node; return the node of its result."""
        if source == NOTHING:
            return NOTHING
        self.call_count += 1
        return self.result(code, source, after=(self.site(node, role),))

    def iterate(self, node: int, source: Node) -> Node:
        """Iterate over a value and return the node of the elements; `node` is the loop or generator."""
        return self.run(ir.OP_ITERATE, source, self.tree.child(node, "iter"), "iteration")

    def call(self, callee: Node, args: Sequence[Arg], site: int) -> Node:
        return self.result(ir.OP_CALL, callee, after=(site, args))

    def special(self, node: int, receiver: Node, names: list[str], args: Sequence[Node], role: str) -> Node:
        """Call the first of these special methods that the receiver has."""
        if receiver == NOTHING or receiver in self.const_nodes:
            return NOTHING
        given = [(ir.POSITIONAL, None, arg) for arg in args]
        self.call_count += 1
        return self.result(ir.OP_SPECIAL_METHOD, receiver, names, given, after=(self.site(node, role),))

    def binary(self, node: int, left: Node, right: Node, name: str, result: Node) -> None:
        """Apply the binary operator with this method, without underscores, into a node."""
        self.call_count += 1
        self.ops.append((ir.OP_BINARY, left, right, name, result, self.site(node, "operator")))
