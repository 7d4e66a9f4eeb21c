"""What one file says about values: its definitions, and constraints among numbered nodes.

    def f(g): return g()         function 0, result node 0, parameter node 1, a call of 1 into 5, 5 into 0
    h = f(len)                   an object (function 0) in node 2, `len` in node 3, a call of 2 with 3 into 4

A node stands for an expression, a version of a variable, a parameter, or a result: a set of objects that the
solver fills. Numbers are the file's own; `World.at` adds an offset. Operations are tuples that begin with one
of the letters below, and say in their first fields which node they wait for:

    = src dst                    everything in src is in dst
    o node kind what             a function F, class C or container L by number, a constant K by type,
                                 a string J by its text, or one that begins with it j, is in node
    n name dst                   a name that nothing in the file binds
    m dst number                 what an import binds
    . recv attr dst site         attribute
    : recv attr src site         assignment to an attribute
    ( callee dst site args       call; args are (how, keyword, node), see `Arg`
    [ recv key dst site index    subscript, by constant key or None; index is the node of the key
    ] recv key src site          assignment to a subscript
    * src dst site               element by iteration
    , src place dst              element by unpacking: "0", "-1" from the end, "1:1" between, None for any
    w src dst site               what `with` binds
    a src dst site               what `await` gives
    y src dst                    what `yield from` gives
    d recv names args dst site   the first special method of these that the class has
    b left right name dst site   binary operator: `__add__`, reflected, in place
    r src site                   raised
    e src dst                    caught: instances of the classes
    t hint dst                   annotation
    i src classes dst            what is left after `isinstance`
    k dict src                   a key
    u dict src                   all elements of another dictionary
    x recv attr site             deleted attribute
    c class site                 a class comes to be

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

Node: TypeAlias = int
# No value that anybody follows: None, numbers that are never called.
NOTHING: Node = -1
Op: TypeAlias = tuple[Any, ...]
Place: TypeAlias = tuple[int | None, int | None, int | None]

# How an argument is given.
POSITIONAL, KEYWORD, STAR, STAR_STAR = range(4)
Arg: TypeAlias = tuple[int, str | None, Node]

# What is read of a type checker's call targets.
CALL_TARGETS = (
    "call_bstart",
    "call_bend",
    "call_form",
    "target_name",
    "target_path",
    "target_bstart",
    "target_bend",
    "receiver_class",
    "is_override_candidate",
)
# Kinds of definitions that a name may mean.
FUNCTION, CLASS, PARAMETER, IMPORT, VARIABLE = "FCPIV"


class Parameter(Struct, array_like=True, frozen=True):
    """A parameter; how says which arguments it takes."""

    name: str
    # positional_only, positional, vararg, keyword_only or kwarg.
    how: str
    node: Node
    default: Node
    place: Place
    is_required: bool = False


class Function(Struct, array_like=True):
    """A function, method or lambda."""

    name: str
    qualname: str
    place: Place
    # The class whose body it stands in, and the function around it; -1 for none.
    owner: int
    outer: int
    parameters: list[Parameter]
    result: Node
    yields: Node
    is_async: bool
    is_generator: bool
    scope_key: str
    # Parameters that it returns as they are.
    returned: list[int]
    # What the first parameter is: instance, class, class_argument (of `__new__`) or nothing.
    binds: str = "instance"
    hinted_result: Node = NOTHING
    # Operations and nodes of its parameters, and of its body: first, after the last.
    header: tuple[int, int, int, int] = (0, 0, 0, 0)
    body: tuple[int, int, int, int] = (0, 0, 0, 0)


class Class(Struct, array_like=True):
    """A class."""

    name: str
    qualname: str
    place: Place
    # The function around it; -1 for none.
    outer: int
    bases: list[tuple[Node, Place, int]]
    keywords: list[tuple[str, Node]]
    # Attributes of the body, by name: node and definitions.
    attrs: dict[str, tuple[Node, list[int]]]
    scope_key: str
    # Annotated names of the body in order, for constructors that are made of them.
    fields: list[str]


class Definition(Struct, array_like=True, frozen=True):
    """One of the places that give a name its meaning."""

    kind: str
    # Number of the function, class or import; of a parameter its function.
    index: int
    place: Place
    # Of a parameter, its number among those of the function.
    name: str


class Import(Struct, array_like=True, frozen=True):
    """One imported name."""

    module: str
    level: int
    # None for `import a.b`.
    name: str | None
    # The name that becomes bound; None for a star.
    bound: str | None
    # `import a.b` binds a, `import a.b as x` binds a.b.
    binds_first: bool
    place: Place
    scope_key: str


class Site(Struct, array_like=True, frozen=True):
    """A place where something is called, read or written."""

    ast_id: int
    role: str
    place: Place
    # The function it stands in; -1 for the module.
    function: int
    # Of an attribute, the identifier; of a call the called expression.
    inner: Place = (None, None, None)


class Use(Struct, array_like=True, frozen=True):
    """A name that is read: what it may mean."""

    place: Place
    name: str
    definitions: list[int]


class Program(Struct, array_like=True):
    """One file."""

    repo_id: str
    file_id: str
    path: str
    nodes: int = 0
    ops: list[Op] = []
    functions: list[Function] = []
    classes: list[Class] = []
    imports: list[Import] = []
    definitions: list[Definition] = []
    sites: list[Site] = []
    uses: list[Use] = []
    # By name of the module: node of all that functions see, node of what is left at the end, definitions.
    variables: dict[str, tuple[Node, Node, list[int]]] = {}
    # Names in `__all__`; None if there is none, or one that cannot be read.
    exported: list[str] | None = None
    # Variables that inner functions see: function, node, nodes of the versions.
    cells: list[tuple[int, Node, list[Node]]] = []
    # Nodes of constants, open names and globals, which all functions share.
    shared: list[Node] = []
    # Kind and number of elements, -1 if that is not known.
    containers: list[tuple[str, int]] = []
    # Names that are used and bound nowhere in the file: place, name.
    open_uses: list[tuple[Place, str]] = []
    # Reason why there is nothing else but these calls.
    failure: str | None = None
    unread_calls: list[Place] = []
    # Identifiers of definitions: first byte, byte after, and those of the definition.
    names: list[tuple[int, int, int, int]] = []
    # Occurrences in a SCIP index: first byte, byte after, symbol, roles.
    scip: list[tuple[int, int, str, int]] = []
    # Call targets of the type checker, in the order of CALL_TARGETS.
    typed: list[tuple[Any, ...]] = []
    # Rows of the scopes, packed.
    scope_rows: bytes = b""
    # Decorators: place, kind of definition, its number, node.
    decorators: list[tuple[Place, str, int, Node]] = []
    # Places of the arguments of calls, by site.
    arguments: dict[int, list[Place]] = {}
    # Names that rows of the scopes or the symbol tables tell of, by the key of a class's scope.
    listed: dict[str, list[str]] = {}
    # Constant arguments of calls whose meaning depends on them, by site, as Python spells them.
    texts: dict[int, list[str | None]] = {}
