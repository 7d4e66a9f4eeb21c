"""Hold everything that the rules of the value analysis read and change.

    state = State(programs)
    state.kind[obj], state.objects[obj]      # OBJ_FUNCTION, ObjectKey(OBJ_FUNCTION, file, number)
    state.flow(state.node(file, 3), state.field(obj, "name"))

A file is its index in `programs`, which are sorted by path. The state owns the solver with the nodes of all
programs, the table of abstract objects with their fields, and a table for each group of rules; rules are
functions over it. What identifies an object of each kind is listed in `relate.program`. `objects` and `kind`
are indexed by object number and by the number of its hint alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from msgspec import Struct, field

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.arguments import ArgumentMatch
from codeanatomy.relate.values.modules import Modules, module_names_by_path
from codeanatomy.relate.values.solver import MAX_OBJECTS, Object, Solver, strong

# File and index in its `sites`; negative for calls by attribute access, which are recorded elsewhere.
SiteKey: TypeAlias = tuple[int, int]
NOWHERE: SiteKey = (-1, -1)
# Role of a callee that is a member of an external object.
EXTERNAL_MEMBER = "member"
# Roles of callees that the source calls itself, rather than an external function on its behalf.
DIRECT_ROLES = frozenset({"call", "decorator"})
# Operand of an OBJ_INSTANCE that has the attributes stored on those of all sites.
ANY_SITE = "*"
# A rule for an operation of a file, and the rules of a round by operation code.
OperationRule: TypeAlias = "Callable[[State, int, ir.Op], None]"
Round: TypeAlias = "Mapping[str, OperationRule]"
# A rule that calls an object.
CallRule: TypeAlias = "Callable[[State, Object, Call], None]"


class Call(Struct, eq=False):
    """A call that waits for the objects of its callee: call site, arguments, node of the result.

    One call may lead to others: a partial calls its function, a class its constructors, `map` its argument.
    These keep the site, so that callees are recorded at the call in the source.
    """

    where: SiteKey
    # Nodes are the solver's, not local to the file.
    args: Sequence[ir.Arg]
    dst: int
    role: str = ""
    # Calls between the call in the source and this one (partial of a partial), to bound recursion.
    depth: int = 0

    @property
    def is_decorator(self) -> bool:
        """Whether the source applies a decorator; not the calls that this leads to."""
        return self.role == "decorator" and not self.depth

    def with_args(self, args: Sequence[ir.Arg], dst: int | None = None, role: str = "") -> Call:
        """Derive the call of a partial's function, constructor or callback, at the same site."""
        return Call(self.where, args, self.dst if dst is None else dst, role or self.role, self.depth + 1)

    def argument(self, position: int, keyword: str | None = None) -> int:
        """Return the node of an argument by keyword or position; NOTHING if it is not passed."""
        for _, name, node in self.args if keyword is not None else ():
            if name == keyword:
                return node
        given = [node for how, _, node in self.args if how == ir.POSITIONAL]
        return given[position] if 0 <= position < len(given) else ir.NOTHING


def positional(node: int) -> ir.Arg:
    """Make a positional argument."""
    return (ir.POSITIONAL, None, node)


class RuleTables(NamedTuple):
    """Tables of rules: by operation, in rounds; and how objects of a kind are called and have attributes."""

    rounds: Sequence[Round] = ()
    calls: Mapping[str, CallRule] = {}
    attributes: Mapping[str, Callable[[State, Object, str, int], None]] = {}


class ObjectKey(NamedTuple):
    """The identity of an abstract object: its kind, and up to two operands listed with the kind."""

    kind: str
    first: Any = None
    second: Any = None
    # Of a function or container, the function copy it belongs to (`function_copies`); None if it is no copy.
    copy: int | None = None


class ForwardingCall(NamedTuple):
    """A call that passes the variadic arguments of its function on (`forwarding`)."""

    op: ir.Op
    # Whether the called value is a variable of the function around, a parameter or an attribute of one; or
    # an attribute of `self`. All of them were given to the function.
    is_variable: bool
    is_parameter: bool
    is_attribute: bool


# Attribute name, function to call, its arguments.
Watcher: TypeAlias = tuple[str, Callable[..., None], tuple[Any, ...]]


class ClassTable(Struct, eq=False):
    """What `hierarchy` has computed of classes."""

    mros: dict[Object, list[Object]] = {}
    # Defining classes by class and attribute name, valid until the MRO changes.
    lookups: dict[Object, dict[str, Object | None]] = field(default_factory=lambda: defaultdict(dict))
    # Lookups to repeat, by class.
    watchers: dict[Object, list[Watcher]] = field(default_factory=lambda: defaultdict(list))
    subclasses: dict[Object, dict[Object, None]] = {}
    # Attributes stored on classes whose bodies do not define them.
    added_fields: set[tuple[Object, str]] = set()
    # Attributes that methods assign on their first parameter, by class.
    assigned: dict[Object, set[str]] = field(default_factory=lambda: defaultdict(set))
    # Classes without a consistent MRO, and forms of those whose decorator makes a constructor of fields.
    inconsistent: dict[Object, None] = {}
    records: dict[Object, str] = {}
    # Classes whose instances wrap functions, with the number of those that are distinguished.
    wrapping: dict[Object, int] = {}


class NameTable(Struct, eq=False):
    """What `rules.imports` and `rules.attributes` have looked up."""

    # By file: modules that it star-imports, and names that these bind; None before the first use.
    stars: dict[int, list[str]] = {}
    star_names: dict[int, set[str]] | None = None
    # Nodes of attributes, by name and object.
    attributes: dict[str, dict[Object, int]] = field(default_factory=lambda: defaultdict(dict))


class Container(NamedTuple):
    """A container: list, dict...; its qualified class if it is no builtin; its size if known."""

    kind: str
    cls: str = ""
    size: int = -1


class FunctionCopy(NamedTuple):
    """A copy of a function, with those nested in it (`function_copies`)."""

    file: int
    function: ir.Function
    # The solver's nodes by the local nodes of the file.
    nodes: Mapping[int, int]
    ops: list[ir.Op]
    # Number of copies around it.
    depth: int


class CopyTable(Struct, eq=False):
    """Function copies (`function_copies`)."""

    # Functions to copy by (file, number), each with the functions nested in it.
    copyable: dict[tuple[int, int], list[int]] = {}
    by_site: dict[tuple[Object, tuple[int, Any]], Object] = {}
    counts: dict[tuple[int, int], int] = {}
    made: list[FunctionCopy] = []
    # Copies of a node of the solver.
    by_node: dict[int, list[int]] = {}
    # By function (file, number), its calls that pass its variadic arguments on.
    forwarding: dict[tuple[int, int], list[ForwardingCall]] = {}
    # Of the solved values: what a wrapper runs, each with the way there (`forwarding.Way`).
    ways: dict[Object, dict[Object, Any]] = {}


class CallTable(Struct, eq=False):
    """Calls found so far."""

    # By site: callees with their roles. By site and callee: arguments, and number of bound parameters.
    callees: dict[SiteKey, dict[Object, str]] = field(default_factory=lambda: defaultdict(dict))
    arguments: dict[tuple[SiteKey, Object], tuple[Sequence[ir.Arg], int]] = {}
    # By site: called functions that pass their arguments on; the call, number of bound parameters.
    wrappers: dict[SiteKey, dict[Object, tuple[Call, int]]] = {}
    # Functions called by attribute access: by attribute name and kind of access, then object.
    by_access: dict[tuple[str, str], dict[Object, dict[Object, None]]] = {}
    # Sites with more callees than the limit, and functions that are called.
    truncated_sites: set[SiteKey] = set()
    invoked: set[Object] = set()
    # By file and place of a parameter, classes of objects that its annotation excludes.
    excluded: dict[int, dict[ir.Place, dict[Object, None]]] = {}
    # Caches: arguments matched to parameters, and nodes of parameters.
    matches: dict[tuple[Any, ...], ArgumentMatch] = {}
    parameter_nodes: dict[Object, list[int]] = {}


class State:
    """The programs of a repository in one solver, their objects, and the tables of the rules."""

    def __init__(
        self,
        programs: Sequence[ir.Program],
        rules: RuleTables | None = None,
        limit: int = MAX_OBJECTS,
        package: str = "",
    ) -> None:
        self.rules = rules or RuleTables()
        # Number of the round that runs.
        self.round = 0
        self.limit = limit
        solver = self.solver = Solver(self, limit)
        # The verbs of the rules; a rule that subscribes to a node is called with the state first.
        self.new_node, self.add, self.flow = solver.new_node, solver.add, solver.flow
        self.subscribe, self.defer, self.objects_at = solver.subscribe, solver.defer, solver.objects_at
        self.points_to, self.truncated = solver.points_to, solver.truncated

        self.programs = sorted(programs, key=lambda program: program.path)
        self.offsets = [solver.reserve(program.nodes) for program in self.programs]
        self.files = {program.path: number for number, program in enumerate(self.programs)}
        self.modules = Modules(module_names_by_path(self.programs, package))
        self.names = [self.modules.names[program.path] for program in self.programs]

        # By object, and by its hint.
        self.objects: list[ObjectKey] = []
        self.kind: list[str] = []
        self._numbers: dict[tuple[Any, ...], Object] = {}
        # Nodes of attributes and elements, by object and name.
        self.fields: dict[Object, dict[str, int]] = defaultdict(dict)

        # The function copy that operations apply to at the moment, with its nodes; empty if to no copy.
        self.active_copy_number: int | None = None
        self.active_copy: Mapping[int, int] = {}
        # Nodes of all raised exceptions, and of those raised in each file.
        self.raised = self.new_node()
        self.raised_in = [self.new_node() for _ in self.programs]

        self.classes, self.lookups = ClassTable(), NameTable()
        self.copies, self.calls = CopyTable(), CallTable()
        self.containers: dict[Object, Container] = {}
        # What rules have done, so that they do it once.
        self._done: set[tuple[Any, ...]] = set()
        # Marks of pytest by the function or class that they decorate: each a `ModelCall` (`models.testing`).
        self.marks: dict[Object, dict[Any, None]] = {}

    def object(self, kind: str, first: Any = None, second: Any = None, copy: int | None = None) -> Object:
        """Return the object with this identity; create it on first use."""
        # A plain tuple is the same key, and is made in a fraction of the time.
        number = self._numbers.get((kind, first, second, copy))
        if number is None:
            key = ObjectKey(kind, first, second, copy)
            number = self._numbers[key] = len(self.objects)
            self.objects += (key, key)
            self.kind += (kind, kind)
        return number

    def node(self, file: int, node: int) -> int:
        """Map a local node of a file to the solver's node, in the active function copy if it is in it."""
        if node < 0:
            return node
        return self.active_copy[node] if node in self.active_copy else self.offsets[file] + node

    def is_first(self, *work: Any) -> bool:
        """Whether a rule does this work for the first time: its name, and the operands."""
        before = len(self._done)
        self._done.add(work)
        return len(self._done) > before

    def field(self, obj: Object, name: str) -> int:
        """Return the node of an attribute or element of an object; create it on first use."""
        own = self.fields[strong(obj)]
        node = own.get(name)
        if node is None:
            node = own[name] = self.new_node()
        return node

    def function(self, obj: Object) -> tuple[int, ir.Function]:
        """Return the file and the definition of an OBJ_FUNCTION."""
        _, file, number, _ = self.objects[obj]
        return file, self.programs[file].functions[number]

    def function_node(self, obj: Object, node: int) -> int:
        """Map a local node to the solver's node for this function object, which may be a copy."""
        if node < 0:
            return node
        _, file, _, copy = self.objects[obj]
        shared = self.offsets[file] + node
        return shared if copy is None else self.copies.made[copy].nodes.get(node, shared)

    def file_of(self, module: str) -> int | None:
        """Return the file of a module of the repository, by absolute name."""
        paths = self.modules.paths.get(module)
        return self.files[paths[0]] if paths else None

    def cls(self, obj: Object) -> tuple[int, ir.Class]:
        """Return the file and the definition of an OBJ_CLASS."""
        _, file, number, _ = self.objects[obj]
        return file, self.programs[file].classes[number]

    def is_repository_class(self, holder: Object | None) -> TypeGuard[Object]:
        """Whether the result of a lookup is a class of the repository."""
        return holder is not None and self.kind[holder] == ir.OBJ_CLASS

    def qualified_name(self, obj: Object) -> str:
        """Return the qualified name of a function or class."""
        kind, file, number, _ = self.objects[obj]
        program = self.programs[file]
        own = program.functions if kind == ir.OBJ_FUNCTION else program.classes
        return f"{self.names[file]}.{own[number].qualname}"
