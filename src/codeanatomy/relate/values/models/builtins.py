"""Model builtin functions and methods of containers: which arguments they call, and what they return.

    map(f, xs)                calls f with the elements of xs, returns a generator of its results
    str(x)                    calls `__str__` or `__repr__` of x, returns a string
    names.append(x)           x is an element at an unknown key

A model is called with a `ModelCall`. Only functions that pass functions or objects of the repository on need
one. Which functions each models is in `models.txt`. The standard library is in `library`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import call_special_method, load_attribute
from codeanatomy.relate.values.hierarchy import mro
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.rules.attributes import store_attribute
from codeanatomy.relate.values.rules.containers import (
    ALL_ELEMENTS,
    KEYS,
    element_nodes,
    forget_keys,
    merge_from,
)
from codeanatomy.relate.values.rules.objects import add_instance
from codeanatomy.relate.values.rules.protocols import call_next, iterate
from codeanatomy.relate.values.solver import Object, strong

Model: TypeAlias = Callable[[ModelCall], None]
CONVERSIONS = ("__str__", "__repr__")
# Decorators that only declare the kind of a method; their application is not reported as a call.
DECLARATIONS = frozenset({"builtins.property", "builtins.staticmethod", "builtins.classmethod"})
RECEIVER_KINDS = (ir.OBJ_INSTANCE, ir.OBJ_CLASS)


# -- models that are parametrized


def return_argument(c: ModelCall, position: int = 0) -> None:
    c.flow(c.argument(position), c.result)


def return_instance(c: ModelCall, cls: str) -> None:
    """Return an instance of an external class."""
    c.returns(c.instance(cls), c.callee)


def return_instances(c: ModelCall, position: int = 0, *, weak: bool = False) -> None:
    """Return instances of the classes in an argument, as `object.__new__` does."""
    c.state.subscribe(c.argument(position), add_instance, c.result, weak)


def collect(c: ModelCall, kind: str, cls: str = "", *, compares: bool = False) -> None:
    """Return a new container with the elements of the argument, as `list` and `sorted` do."""
    element = c.iterate(c.argument(0))
    if compares:
        compare(c, element, ("__lt__", "__gt__"))
    c.returns(c.container(kind, element, cls=cls))


def compare(c: ModelCall, element: int, names: Sequence[str]) -> None:
    """Call the key function with the elements, or else these comparison methods on them."""
    key = c.argument(-1, "key")
    if key >= 0:
        c.call(key, [element])
    else:
        c.call_special(element, names, [element])


def choose(c: ModelCall, names: tuple[str, ...]) -> None:
    """Return one of the elements or arguments, as `min` does."""
    given, element = c.positional, c.node()
    if len(given) == 1:
        c.iterate(given[0], element)
    for node in given if len(given) > 1 else ():
        c.flow(node, element)
    compare(c, element, names)
    c.flow(element, c.result)
    c.flow(c.argument(-1, "default"), c.result)


def run_special(c: ModelCall, names: Sequence[str], result: str | None = None) -> None:
    """Call a special method of the argument; return an instance of a builtin class."""
    for node in c.positional[:1]:
        c.call_special(node, names, c.positional[1:])
    if result is not None:
        c.returns(c.instance(result))


def run_special_of_all(c: ModelCall, names: Sequence[str], result: str | None = None) -> None:
    """Call a special method of each argument; of those by keyword only if the result depends on them."""
    for how, _, node in c.pending.args:
        if how == ir.POSITIONAL or result is not None:
            c.call_special(node, names)
    if result is not None:
        c.returns(c.instance(result))


def return_special(c: ModelCall, names: Sequence[str]) -> None:
    """Return the result of a special method of the argument."""
    for node in c.positional[:1]:
        c.call_special(node, names, c.positional[1:], c.result)


def wrap(c: ModelCall, kind: str, fields: Sequence[str], mark: str | None = None) -> None:
    """Return an object with the arguments in fields."""
    created = c.object(kind, c.pending.where, mark)
    for position, name in enumerate(fields):
        c.flow(c.argument(position, name), c.field(created, name))
    c.returns(created)


# -- iteration and containers


def map_(c: ModelCall) -> None:
    elements = [c.iterate(each) for each in c.positional[1:]]
    c.returns(c.container("generator", c.call(c.argument(0), elements, c.node())))


def filter_(c: ModelCall) -> None:
    element = c.iterate(c.argument(1))
    c.call(c.argument(0), [element])
    c.returns(c.container("generator", element))


def enumerate_(c: ModelCall) -> None:
    pair = c.container("tuple", mark="pair")
    c.put(pair, "1", c.iterate(c.argument(0)))
    c.returns(c.container("generator", c.node(pair)))


def zip_(c: ModelCall) -> None:
    row = c.container("tuple", mark="row")
    for index, (_, _, node) in enumerate(c.pending.args):
        c.put(row, str(index), c.iterate(node))
    c.returns(c.container("generator", c.node(row)))


def next_(c: ModelCall) -> None:
    c.state.subscribe(c.argument(0), call_next, "__next__", c.result, c.pending.where)
    return_argument(c, 1)


def iter_(c: ModelCall) -> None:
    if c.argument(1) >= 0:
        c.returns(c.container("generator", c.call(c.argument(0), [], c.node())))
    else:
        c.each(c.argument(0), _make_iterator)


def _make_iterator(c: ModelCall, obj: Object) -> None:
    if c.state.kind[obj] == ir.OBJ_INSTANCE:
        call_special_method(c.state, obj, ["__iter__"], c.pending.with_args([], role="builtin"))
    else:
        c.returns(obj)


def consume(c: ModelCall) -> None:
    c.iterate(c.argument(0))


def dict_(c: ModelCall) -> None:
    created = c.container("dict", cls=c.name)
    merge(c, created)
    c.returns(created)


def merge(c: ModelCall, container: Object) -> None:
    """Add the keyword arguments, and the entries of the first argument: a dict or an iterable of pairs."""
    for keyword, node in c.keywords:
        c.put(container, repr(keyword), node)
    c.each(c.argument(0), _merge_entries, container)


def _merge_entries(c: ModelCall, obj: Object, container: Object) -> None:
    if c.is_container(obj, "dict"):
        merge_from(c.state, obj, container)
    else:
        pair = c.node()
        iterate(c.state, obj, pair, c.pending.where)
        c.each(pair, _merge_pair, container)


def _merge_pair(c: ModelCall, pair: Object, container: Object) -> None:
    if c.is_container(pair, "tuple", "list"):
        for node in element_nodes(c.state, pair, "0"):
            c.flow(node, c.field(container, KEYS))
        for node in element_nodes(c.state, pair, "1"):
            c.put(container, None, node)


# -- attributes and classes


def getattr_(c: ModelCall) -> None:
    c.each(c.argument(1), _load_named)
    return_argument(c, 2)


def _load_named(c: ModelCall, obj: Object) -> None:
    """Return the attributes of the first argument that a string names."""
    kind, text, _, _ = c.state.objects[obj]
    if kind == ir.OBJ_STRING:
        c.state.subscribe(c.argument(0), load_attribute, text, c.result)
    elif kind == ir.OBJ_STRING_PREFIX:
        c.each(c.argument(0), _load_prefixed, text)


def _load_prefixed(c: ModelCall, obj: Object, prefix: str) -> None:
    """Return the attributes of an instance whose names start with a prefix."""
    state = c.state
    kind, cls, _, _ = state.objects[obj]
    if kind != ir.OBJ_INSTANCE:
        return
    own = [each for each in mro(state, cls) if state.kind[each] == ir.OBJ_CLASS]
    for name in dict.fromkeys(name for each in own for name in state.cls(each)[1].attrs):
        if name.startswith(prefix):
            load_attribute(state, obj, name, c.result)


def setattr_(c: ModelCall) -> None:
    name = c.text(1)
    if name is not None and c.argument(2) >= 0:
        c.state.subscribe(c.argument(0), store_attribute, name, c.argument(2))


def type_(c: ModelCall) -> None:
    if len(c.pending.args) == 1:
        c.each(c.argument(0), _return_class)


def _return_class(c: ModelCall, obj: Object) -> None:
    kind, cls, _, _ = c.state.objects[obj]
    if kind == ir.OBJ_INSTANCE:
        c.returns(cls, obj)
    elif kind == ir.OBJ_EXTERNAL_INSTANCE:
        c.returns(c.object(ir.OBJ_EXTERNAL, cls), obj)


def super_(c: ModelCall) -> None:
    given = c.positional
    if len(given) == 2:
        c.each(given[0], _explicit_super, given[1])
        return
    file, site = c.pending.where
    program = c.state.programs[file]
    number = program.sites[site].function
    while number >= 0 and program.functions[number].owner < 0:
        number = program.functions[number].outer
    if number >= 0 and program.functions[number].parameters:
        function = program.functions[number]
        receiver = c.state.node(file, function.parameters[0].node)
        c.each(receiver, _return_super, c.object(ir.OBJ_CLASS, file, function.owner))


def _explicit_super(c: ModelCall, cls: Object, receiver: int) -> None:
    if c.state.kind[cls] == ir.OBJ_CLASS:
        c.each(receiver, _return_super, strong(cls))


def _return_super(c: ModelCall, receiver: Object, cls: Object) -> None:
    if c.state.kind[receiver] in RECEIVER_KINDS:
        c.returns(c.object(ir.OBJ_SUPER, cls, strong(receiver)), receiver)


# -- strings


def split(c: ModelCall) -> None:
    c.returns(c.container("list", c.node(c.instance("builtins.str"))))


# -- methods of containers: `c.callee` is the container, `c.name` the name of the method


def add(c: ModelCall, position: int = 0, *, moves: bool = False) -> None:
    """Add an argument at an unknown key; `insert` moves the other elements."""
    c.put(c.callee, None, c.argument(position))
    if moves:
        forget_keys(c.state, c.callee)


def extend(c: ModelCall) -> None:
    c.put(c.callee, None, c.iterate(c.argument(0)))
    c.returns(c.callee)


def reorder(c: ModelCall) -> None:
    forget_keys(c.state, c.callee)
    if c.name == "sort":
        compare(c, c.field(c.callee, ALL_ELEMENTS), ["__lt__"])


def update(c: ModelCall) -> None:
    if c.is_container(c.callee, "set"):
        extend(c)
    else:
        merge(c, c.callee)


def return_container(c: ModelCall) -> None:
    c.returns(c.callee)


def return_element(c: ModelCall) -> None:
    c.flow(c.field(c.callee, ALL_ELEMENTS), c.result)


def take(c: ModelCall) -> None:
    is_dict = c.is_container(c.callee, "dict")
    key = c.constant(0) if is_dict else None
    if not is_dict and c.name == "pop":
        forget_keys(c.state, c.callee)
    for node in element_nodes(c.state, c.callee, key):
        c.flow(node, c.result)
    if c.name != "pop" or is_dict:
        c.flow(c.argument(1), c.result)
    if c.name == "setdefault":
        c.put(c.callee, key, c.argument(1))


def view(c: ModelCall) -> None:
    c.returns(c.object(ir.OBJ_DICT_VIEW, c.callee, c.name))


def pop_item(c: ModelCall) -> None:
    c.iterate(c.node(c.object(ir.OBJ_DICT_VIEW, c.callee, "items")), c.result)
