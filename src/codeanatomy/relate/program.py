"""Define the program of one file: its definitions, and constraints among numbered nodes.

    def f(g): return g()         function 0, result node 0, parameter node 1, a call of 1 into 5, 5 into 0
    h = f(len)                   an object (function 0) in node 2, `len` in node 3, a call of 2 with 3 into 4

A node stands for an expression, a version of a variable, a parameter, or a result: a set of abstract objects
that the solver fills. Node numbers are local to the file; `State.node` adds its offset. An operation is a
tuple that starts with one of the codes `OP_*` below, followed by the operands listed there. `compile` writes
operations, `values` applies them.

Codes and kinds are one character long because programs are stored packed in `relate_programs_v1`, and plain
strings instead of enums because the solver compares them millions of times.

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct, structs

from codeanatomy.file_ids import PackedIds

Node: TypeAlias = int
# Stands for a value that is not tracked: None, numbers.
NOTHING: Node = -1
Op: TypeAlias = tuple[Any, ...]
# First byte, byte after the last, and line; None where the parser gives none.
Place: TypeAlias = tuple[int | None, int | None, int | None]

# How an argument is passed: `x`, `k=x`, `*x`, `**x`.
POSITIONAL, KEYWORD, STAR, STAR_STAR = range(4)
# How it is passed, keyword, node.
Arg: TypeAlias = tuple[int, str | None, Node]

# Columns read of the call targets of `type_checker_files_v1`.
CALL_TARGETS = (
    *("call_bstart", "call_bend", "call_form", "target_name", "target_path", "target_bstart", "target_bend"),
    *("receiver_class", "is_override_candidate"),
)
# Kinds of definitions that a name may refer to.
FUNCTION, CLASS, PARAMETER, IMPORT, VARIABLE = "FCPIV"

# Operations, with their operands. `site` indexes `Program.sites`.

OP_COPY = "="  # src dst: every object of src is in dst.
# node kind operand: an object of this kind is in node. Kind is OBJ_FUNCTION, OBJ_CLASS or OBJ_CONTAINER with
# a number, OBJ_CONSTANT with the name of a builtin type, OBJ_STRING or OBJ_STRING_PREFIX with the text.
OP_MAKE = "o"
OP_UNBOUND_NAME = "n"  # name dst: read a name that the file does not bind.
OP_IMPORT = "m"  # dst number: bind import `number`.
OP_LOAD_ATTRIBUTE = "."  # receiver attribute dst site
OP_STORE_ATTRIBUTE = ":"  # receiver attribute src site
OP_DELETE_ATTRIBUTE = "x"  # receiver attribute site
OP_CALL = "("  # callee dst site args: args are tuples (how, keyword, node), see `Arg`.
# receiver key dst site index: subscript by constant key (None if not constant); index is the node of the key.
OP_LOAD_ITEM = "["
OP_STORE_ITEM = "]"  # receiver key src site
OP_STORE_KEY = "k"  # dict src: src holds a key of the dict.
OP_UPDATE = "u"  # dict src: add all elements of another dict.
OP_ITERATE = "*"  # src dst site: element by iteration.
# src position dst: element by unpacking: "0", "-1" from the end, "1:1" between, None for any.
OP_UNPACK = ","
OP_WITH = "w"  # src dst site: value bound by `with`.
OP_AWAIT = "a"  # src dst site: result of `await`.
OP_YIELD_FROM = "y"  # src dst: result of `yield from`.
# receiver names args dst site: call the first of these special methods that the class has.
OP_SPECIAL_METHOD = "d"
# left right name dst site: binary operator by the name of its method without underscores (add, iadd, lt).
OP_BINARY = "b"
OP_RAISE = "r"  # src site: raise.
OP_EXCEPT = "e"  # src dst: instances of the classes in src, caught by `except`.
OP_ISINSTANCE = "i"  # src classes dst: objects of src that pass `isinstance` with the classes.
OP_ISSUBCLASS = "s"  # src classes dst: objects of src that pass `issubclass` with the classes.
OP_ANNOTATE = "t"  # hint dst: the annotation (one of the HINT_* tuples below) of dst.
OP_CREATE_CLASS = "c"  # class site: a class statement runs.

# Key of a subscript that is a slice.
SLICE = ":"

# Hints: what an annotation states, as nested tuples that start with one of these.

HINT_INSTANCE = "n"  # node: an instance of the classes in node.
HINT_CLASS = "c"  # node: the class itself (`type[Foo]`).
HINT_CONTAINER = "l"  # kind hint: a list, set, generator... of such elements.
HINT_DICT = "d"  # hint hint: a dict, by key and value.
HINT_CALLABLE = "f"  # hint: a callable that returns this.
HINT_TUPLE = "t"  # hints: a tuple with these elements.
HINT_UNION = "u"  # hints: any of these.

# Kinds of abstract objects, with what identifies an object of the kind (`values.state.ObjectKey`).

OBJ_FUNCTION = "F"  # file number: function, method or lambda.
OBJ_CLASS = "C"  # file number
OBJ_MODULE = "M"  # file
OBJ_NAMESPACE = "N"  # name: namespace package.
# class site: all instances of a class, as one object; those that wrap functions by where they are created.
OBJ_INSTANCE = "I"
OBJ_CONTAINER = "L"  # file number: list, tuple, dict, set or generator, by where it is created.
OBJ_CONSTANT = "K"  # name of a builtin type: operand of OP_MAKE only; becomes its OBJ_EXTERNAL_INSTANCE.
OBJ_STRING = "J"  # text: string that may be the name of an attribute.
OBJ_STRING_PREFIX = "j"  # text: string that starts with the text.
OBJ_EXTERNAL = "X"  # name: anything defined outside of the repository, by qualified name.
OBJ_EXTERNAL_INSTANCE = "Y"  # name: instance of an external class.
OBJ_EXTERNAL_MEMBER = "H"  # name receiver: member of an instance of an external class.
OBJ_BOUND_METHOD = "B"  # function receiver
OBJ_SUPER = "S"  # class receiver: result of `super()`.
OBJ_TYPE_CALL = "Z"  # class: `type.__call__` of a class.
OBJ_GENERATOR = "G"  # function: result of calling a generator function.
OBJ_COROUTINE = "A"  # function: result of calling an async function.
OBJ_PROPERTY = "P"  # key: property.
OBJ_PROPERTY_DECORATOR = "Q"  # property part: `x.setter`, `x.getter` or `x.deleter`.
OBJ_STATIC_OR_CLASS_METHOD = "T"  # key: staticmethod or classmethod object.
OBJ_CONTAINER_METHOD = "E"  # container name: method of a builtin container.
OBJ_DICT_VIEW = "D"  # container part: keys, values or items view of a dict.
OBJ_DATACLASS_FIELD = "O"  # key: `dataclasses.field(...)`.
OBJ_NAMED_TUPLE = "n"  # key names: class made by `collections.namedtuple`, with the names of its fields.
OBJ_PARTIAL = "U"  # key call: functools.partial.
OBJ_PARTIAL_METHOD = "u"  # key call: functools.partialmethod.
OBJ_WRAPS = "w"  # key: functools.wraps(f).
OBJ_SINGLEDISPATCH = "R"  # key: function decorated with functools.singledispatch.
# dispatcher: `f.register`. Same letter as OBJ_CONSTANT, which is never the kind of an object.
OBJ_SINGLEDISPATCH_REGISTER = "K"
OBJ_CONTEXT_FUNCTION = "W"  # function: function decorated with contextlib.contextmanager.
OBJ_CONTEXT_MANAGER = "V"  # function: result of calling an OBJ_CONTEXT_FUNCTION.
OBJ_CLOSING = "c"  # key: contextlib.closing or nullcontext.
OBJ_HINTED_CALLABLE = "f"  # key: callable stated by an annotation `Callable[..., X]`.


class Parameter(Struct, array_like=True, frozen=True):
    """A parameter of a function."""

    name: str
    how: str  # Kind of parameter: positional_only, positional, vararg, keyword_only or kwarg.
    node: Node
    default: Node
    place: Place
    is_required: bool = False


class Function(Struct, array_like=True):
    """A function, method or lambda."""

    name: str
    qualname: str
    place: Place
    owner: int  # Index of the class it is a method of; -1 for none.
    outer: int  # Index of the enclosing function; -1 for none.
    parameters: list[Parameter]
    result: Node
    yields: Node
    is_async: bool
    is_generator: bool
    scope_id: str
    returned: list[int]  # Indexes of the parameters that it returns unchanged.
    # What a call binds to the first parameter: instance, class, class_argument (of `__new__`) or nothing.
    binds: str = "instance"
    hinted_result: Node = NOTHING
    # First of the sites where pytest runs fixtures: for the function itself, then for each parameter without
    # a default; -1 if it is neither a test nor a fixture.
    requests: int = -1
    # Half-open ranges of operations and nodes, of its parameters and of its body: first operation, end,
    # first node, end.
    header: tuple[int, int, int, int] = (0, 0, 0, 0)
    body: tuple[int, int, int, int] = (0, 0, 0, 0)


class Field(Struct, array_like=True, frozen=True):
    """A name that a class body declares: a field, if the class is a dataclass or the like."""

    name: str
    # First name of the annotation, of `a.ClassVar[int]` it is ClassVar; None without annotation.
    annotation: str | None
    has_value: bool
    # Of a value that is a call, last part of the name of what is called, and keywords as Python literals, ""
    # for those that are not constant.
    called: str | None = None
    options: dict[str, str] = {}


class Class(Struct, array_like=True):
    """A class."""

    name: str
    qualname: str
    place: Place
    outer: int  # Index of the enclosing function; -1 for none.
    bases: list[tuple[Node, Place, int]]  # Node, place and position of each base.
    keywords: list[tuple[str, Node]]
    attrs: dict[str, tuple[Node, list[int]]]  # Names bound in the body: node, and indexes of the definitions.
    scope_id: str
    fields: list[Field]  # Names that are annotated or have the result of a call, in the order of the body.
    options: dict[str, str] = {}  # Keywords of the class statement and of its decorators, as Python literals.


class DefinedName(Struct, array_like=True, frozen=True):
    """A definition that a name may refer to."""

    kind: str
    index: int  # Index of the function, class or import; of a parameter, of its function.
    place: Place
    name: str  # Of a parameter, its position in the function as text.


class Import(Struct, array_like=True, frozen=True):
    """One imported name."""

    module: str
    level: int
    name: str | None  # None for `import a.b`.
    bound: str | None  # The name that is bound; None for a star import.
    binds_first: bool  # `import a.b` binds a, `import a.b as x` binds a.b.
    place: Place
    scope_id: str


class Site(Struct, array_like=True, frozen=True):
    """A place in the source that calls, reads or writes."""

    ast_id: int
    role: str
    place: Place
    function: int  # Index of the enclosing function; -1 for the module.
    # Of an attribute, the place of the identifier; of a call, of the called expression.
    inner: Place = (None, None, None)


class Use(Struct, array_like=True, frozen=True):
    """A name that is read, with the definitions it may refer to."""

    place: Place
    name: str
    definitions: list[int]


class Program(Struct, array_like=True):
    """The program of one file. Lists refer to each other by index."""

    repo_id: str
    file_id: str
    path: str
    ids: PackedIds  # What the ids of its nodes are made of.
    nodes: int = 0
    ops: list[Op] = []
    functions: list[Function] = []
    classes: list[Class] = []
    imports: list[Import] = []
    definitions: list[DefinedName] = []
    sites: list[Site] = []
    uses: list[Use] = []
    # Variables of the module: node of all values (seen by functions), node of the final value, definitions.
    variables: dict[str, tuple[Node, Node, list[int]]] = {}
    exported: list[str] | None = None  # Names in `__all__`; None if there is none, or if it is not constant.
    # Variables that nested functions use: function, node, nodes of the versions.
    cells: list[tuple[int, Node, list[Node]]] = []
    shared: list[Node] = []  # Nodes of constants, unbound names and globals, which function copies share.
    containers: list[tuple[str, int]] = []  # Kind and number of elements, -1 if unknown.
    unbound_uses: list[tuple[Place, str]] = []  # Names that are read and not bound in the file: place, name.
    # Reason why the file could not be compiled; then it has only the places of its calls.
    failure: str | None = None
    unresolved_calls: list[Place] = []
    # Spans of the identifiers of definitions, each with the span of the definition.
    names: list[tuple[int, int, int, int]] = []
    # Occurrences of the SCIP index: first byte, byte after the last, symbol, roles.
    scip: list[tuple[int, int, str, int]] = []
    # Call targets of the type checker, in the order of CALL_TARGETS.
    checker_calls: list[tuple[Any, ...]] = []
    scope_rows: bytes = b""  # Rows of the scopes, packed.
    # Decorators: place, kind of the decorated definition, its index, node.
    decorators: list[tuple[Place, str, int, Node]] = []
    arguments: dict[int, list[Place]] = {}  # Places of the arguments of calls, by site.
    # Places of the names of keyword arguments, by site and index of the argument.
    keywords: dict[int, dict[int, Place]] = {}
    scope_names: dict[str, list[str]] = {}  # Names in the scope rows or symbol tables of classes, by scope.
    # Strings that may be qualified names of definitions: place, AST id, text, key in a dict display.
    dotted_texts: list[tuple[Place, int, str, str]] = []
    # Constant arguments by site, those by position first, as Python literals, of calls whose result depends
    # on them (`getattr`).
    constant_arguments: dict[int, list[str | None]] = {}
    # Names in quoted annotations: place, AST id of the string, dotted name up to this one, definitions of its
    # first name (None if the file does not bind it).
    quoted_uses: list[tuple[Place, int, str, list[int] | None]] = []


# Bit of the roles in `Program.scip`: the occurrence is a definition.
SCIP_DEFINITION = 1
# Fields that only the emission of the file itself reads.
OF_OWN_ROWS = ("uses", "unbound_uses", "checker_calls", "arguments", "keywords", "quoted_uses")


def solved_part(program: Program) -> Program:
    """Return what the solve and the emission of other files read of a program.

    This is two fifths of the whole: of django's source distribution 370 of 930 MB.
    """
    sites: dict[tuple[str, int], Site] = {}
    nowhere: Place = (None, None, None)
    for site in program.sites:
        key = site.role, site.function
        if key not in sites:
            sites[key] = Site(0, site.role, nowhere, site.function)
    ids = program.ids
    return structs.replace(
        program,
        ids=PackedIds(ids.keys, [], ids.places, [], {}, ids.parameters),
        sites=[sites[site.role, site.function] for site in program.sites],
        scip=[row for row in program.scip if (row[3] or 0) & SCIP_DEFINITION],
        scope_rows=b"",
        **{name: type(getattr(program, name))() for name in OF_OWN_ROWS},
    )
