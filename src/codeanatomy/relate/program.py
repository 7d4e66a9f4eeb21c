"""Define the program of one file: its definitions, and constraints among numbered nodes.

    def f(g): return g()         function 0, result node 0, parameter node 1, a call of 1 into 5, 5 into 0
    h = f(len)                   an object (function 0) in node 2, `len` in node 3, a call of 2 with 3 into 4

A node stands for an expression, a version of a variable, a parameter, or a result: a set of abstract objects
that the solver fills. Node numbers are local to the file; `LinkedPrograms.at` adds the file's offset. An
operation is a tuple that starts with one of the codes `OP_*` below, followed by the operands listed there.
`compile` writes operations, `values` applies them.

Codes and kinds are one character long because programs are stored packed in `relate_programs_v1`, and plain
strings instead of enums because the solver compares them millions of times.

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
# Kinds of definitions that a name may refer to.
FUNCTION, CLASS, PARAMETER, IMPORT, VARIABLE = "FCPIV"

# Operations, with their operands. `site` indexes `Program.sites`.

# src dst: every object of src is in dst.
OP_COPY = "="
# node kind operand: an object of this kind is in node. Kind is OBJ_FUNCTION, OBJ_CLASS or OBJ_CONTAINER with
# a number, OBJ_CONSTANT with the name of a builtin type, OBJ_STRING or OBJ_STRING_PREFIX with the text.
OP_MAKE = "o"
# name dst: read a name that the file does not bind.
OP_UNBOUND_NAME = "n"
# dst number: bind import `number`.
OP_IMPORT = "m"
# receiver attribute dst site
OP_LOAD_ATTRIBUTE = "."
# receiver attribute src site
OP_STORE_ATTRIBUTE = ":"
# receiver attribute site
OP_DELETE_ATTRIBUTE = "x"
# callee dst site args: args are tuples (how, keyword, node), see `Arg`.
OP_CALL = "("
# receiver key dst site index: subscript by constant key (None if not constant); index is the node of the key.
OP_LOAD_ITEM = "["
# receiver key src site
OP_STORE_ITEM = "]"
# dict src: src holds a key of the dict.
OP_STORE_KEY = "k"
# dict src: add all elements of another dict.
OP_UPDATE = "u"
# src dst site: element by iteration.
OP_ITERATE = "*"
# src position dst: element by unpacking: "0", "-1" from the end, "1:1" between, None for any.
OP_UNPACK = ","
# src dst site: value bound by `with`.
OP_WITH = "w"
# src dst site: result of `await`.
OP_AWAIT = "a"
# src dst: result of `yield from`.
OP_YIELD_FROM = "y"
# receiver names args dst site: call the first of these special methods that the class has.
OP_SPECIAL_METHOD = "d"
# left right name dst site: binary operator by the name of its method without underscores (add, iadd, lt).
OP_BINARY = "b"
# src site: raise.
OP_RAISE = "r"
# src dst: instances of the classes in src, caught by `except`.
OP_EXCEPT = "e"
# src classes dst: objects of src that pass `isinstance` with the classes.
OP_ISINSTANCE = "i"
# hint dst: the annotation (one of the HINT_* tuples below) of dst.
OP_ANNOTATE = "t"
# class site: a class statement runs.
OP_CREATE_CLASS = "c"

# Key of a subscript that is a slice.
SLICE = ":"

# Hints: what an annotation states, as nested tuples that start with one of these.

# node: an instance of the classes in node.
HINT_INSTANCE = "n"
# node: the class itself (`type[Foo]`).
HINT_CLASS = "c"
# kind hint: a list, set, generator... of such elements.
HINT_CONTAINER = "l"
# hint hint: a dict, by key and value.
HINT_DICT = "d"
# hint: a callable that returns this.
HINT_CALLABLE = "f"
# hints: a tuple with these elements.
HINT_TUPLE = "t"
# hints: any of these.
HINT_UNION = "u"

# Kinds of abstract objects, with what identifies an object of the kind (`values.linked_programs.ObjectKey`).

# file number: function, method or lambda.
OBJ_FUNCTION = "F"
# file number
OBJ_CLASS = "C"
# file
OBJ_MODULE = "M"
# name: namespace package.
OBJ_NAMESPACE = "N"
# class: all instances of a class, as one object.
OBJ_INSTANCE = "I"
# file number: list, tuple, dict, set or generator, by where it is created.
OBJ_CONTAINER = "L"
# type: operand of OP_MAKE only; becomes an OBJ_EXTERNAL_INSTANCE of the builtin type.
OBJ_CONSTANT = "K"
# text: string that may be the name of an attribute.
OBJ_STRING = "J"
# text: string that starts with the text.
OBJ_STRING_PREFIX = "j"
# name: anything defined outside of the repository, by qualified name.
OBJ_EXTERNAL = "X"
# name: instance of an external class.
OBJ_EXTERNAL_INSTANCE = "Y"
# name receiver: member of an instance of an external class.
OBJ_EXTERNAL_MEMBER = "H"
# function receiver
OBJ_BOUND_METHOD = "B"
# class receiver: result of `super()`.
OBJ_SUPER = "S"
# class: `type.__call__` of a class.
OBJ_TYPE_CALL = "Z"
# function: result of calling a generator function.
OBJ_GENERATOR = "G"
# function: result of calling an async function.
OBJ_COROUTINE = "A"
# key: property.
OBJ_PROPERTY = "P"
# property part: `x.setter`, `x.getter` or `x.deleter`.
OBJ_PROPERTY_DECORATOR = "Q"
# key: staticmethod or classmethod object.
OBJ_STATIC_OR_CLASS_METHOD = "T"
# container name: method of a builtin container.
OBJ_CONTAINER_METHOD = "E"
# container part: keys, values or items view of a dict.
OBJ_DICT_VIEW = "D"
# key: `dataclasses.field(...)`.
OBJ_DATACLASS_FIELD = "O"
# key call: functools.partial.
OBJ_PARTIAL = "U"
# key call: functools.partialmethod.
OBJ_PARTIAL_METHOD = "u"
# key: functools.wraps(f).
OBJ_WRAPS = "w"
# key: function decorated with functools.singledispatch.
OBJ_SINGLEDISPATCH = "R"
# dispatcher: `f.register`. Same letter as OBJ_CONSTANT, which is never the kind of an object.
OBJ_SINGLEDISPATCH_REGISTER = "K"
# function: function decorated with contextlib.contextmanager.
OBJ_CONTEXT_FUNCTION = "W"
# function: result of calling an OBJ_CONTEXT_FUNCTION.
OBJ_CONTEXT_MANAGER = "V"
# key: contextlib.closing or nullcontext.
OBJ_CLOSING = "c"
# key: callable stated by an annotation `Callable[..., X]`.
OBJ_HINTED_CALLABLE = "f"


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
