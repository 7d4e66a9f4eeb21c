"""Model builtin functions: which arguments they call, and what they return.

    map(f, xs)                calls f with the elements of xs, returns a generator of its results
    str(x)                    calls `__str__` or `__repr__` of x, returns a string

A model is called with the value analysis, the pending call and the called object. Only functions that pass
functions or objects of the repository on need one. The standard library is in `library`.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from codeanatomy.relate.program import (
    OBJ_CLASS,
    OBJ_CONTAINER,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_INSTANCE,
    OBJ_PROPERTY,
    OBJ_STATIC_OR_CLASS_METHOD,
    OBJ_STRING,
    OBJ_STRING_PREFIX,
    OBJ_SUPER,
    POSITIONAL,
)
from codeanatomy.relate.values.containers import KEYS
from codeanatomy.relate.values.pending_call import positional
from codeanatomy.relate.values.solver import Object

if TYPE_CHECKING:
    from codeanatomy.relate.values.calls import Calls
    from codeanatomy.relate.values.pending_call import Call

RECEIVER_KINDS = (OBJ_INSTANCE, OBJ_CLASS)

Model: TypeAlias = "Callable[[Calls, Call, Object], None]"


def run_callback(values: Calls, call: Call, callee: int, args: list[int], dst: int = -1) -> None:
    """Call a function that the caller passed, at the site of the call."""
    values.call_node(callee, call.with_args([positional(arg) for arg in args], dst, "callback"))


def element_node(values: Calls, call: Call, src: int) -> int:
    """Return a new node with what iteration over the objects of a node yields."""
    node = values.new_node()
    values.iterate(src, node, call.where)
    return node


def _model_map(values: Calls, call: Call, callee: Object) -> None:
    created = values.new_container("generator", call.where)
    result = values.new_node()
    sources = [node for how, _, node in call.args if how == POSITIONAL][1:]
    run_callback(
        values, call, call.argument(0), [element_node(values, call, each) for each in sources], result
    )
    values.put(created, None, result)
    values.add(call.dst, created)


def model_filter(values: Calls, call: Call, callee: Object) -> None:
    created = values.new_container("generator", call.where)
    element = element_node(values, call, call.argument(1))
    run_callback(values, call, call.argument(0), [element])
    values.put(created, None, element)
    values.add(call.dst, created)


def collect_elements(kind: str, *, compares: bool = False) -> Model:
    """Return a model of `sorted` and the like: a new container with the elements of the argument."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        created = values.new_container(kind, call.where)
        element = element_node(values, call, call.argument(0))
        if compares:
            call_comparisons(values, call, element, "__lt__", "__gt__")
        values.put(created, None, element)
        values.add(call.dst, created)

    return model


def call_comparisons(values: Calls, call: Call, element: int, *names: str) -> None:
    """Call the key function with the elements, or else these comparison methods on them."""
    key = call.argument(-1, "key")
    if key >= 0:
        run_callback(values, call, key, [element])
    else:
        values.subscribe(
            element, values.call_special_method, names, call.with_args([positional(element)], -1, "builtin")
        )


def copy_elements(kind: str) -> Model:
    """Return a model of list(xs), tuple(xs), deque(xs): a copy that keeps its class."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        created = values.new_container(kind, call.where, cls=values.objects[callee >> 1].first)
        if call.argument(0) >= 0:
            values.put(created, None, element_node(values, call, call.argument(0)))
        values.add(call.dst, created)

    return model


def model_dict(values: Calls, call: Call, callee: Object) -> None:
    created = values.new_container("dict", call.where, cls=values.objects[callee >> 1].first)
    for _, keyword, node in call.args:
        if keyword is not None:
            values.put(created, repr(keyword), node)
    if call.argument(0) >= 0:
        values.subscribe(call.argument(0), merge_entries, values, created, call)
    values.add(call.dst, created)


def merge_entries(objects: list[Object], values: Calls, created: Object, call: Call) -> None:
    """Add the entries of another dict, or of an iterable of pairs."""
    for obj in objects:
        if values.objects[obj >> 1].kind == OBJ_CONTAINER and values.container_kind(obj) == "dict":
            values.merge_from([obj], created)
            continue
        pair = values.new_node()
        values.iterate_objects([obj], pair, call.where)
        values.subscribe(pair, _merge_pairs, values, created)


def _merge_pairs(objects: list[Object], values: Calls, created: Object) -> None:
    """Add pairs of keys and values."""
    for obj in objects:
        if values.objects[obj >> 1].kind == OBJ_CONTAINER and values.container_kind(obj) in ("tuple", "list"):
            for node in values.element_nodes(obj, "0"):
                values.flow(node, values.field(created, KEYS))
            for node in values.element_nodes(obj, "1"):
                values.put(created, None, node)


def _model_min_max(*names: str) -> Model:
    """Return a model of `min` or `max`: one of the elements or arguments."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        given = [node for how, _, node in call.args if how == POSITIONAL]
        element = values.new_node()
        if len(given) == 1:
            values.iterate(given[0], element, call.where)
        for node in given if len(given) > 1 else ():
            values.flow(node, element)
        call_comparisons(values, call, element, *names)
        values.flow(element, call.dst)
        values.flow(call.argument(-1, "default"), call.dst)

    return model


def _model_enumerate(values: Calls, call: Call, callee: Object) -> None:
    pair = values.new_container("tuple", call.where, "pair")
    values.put(pair, "1", element_node(values, call, call.argument(0)))
    return_generator_of(values, call, pair)


def model_zip(values: Calls, call: Call, callee: Object) -> None:
    row = values.new_container("tuple", call.where, "row")
    for index, (_, _, node) in enumerate(call.args):
        values.put(row, str(index), element_node(values, call, node))
    return_generator_of(values, call, row)


def return_generator_of(values: Calls, call: Call, obj: Object) -> None:
    """Return a generator that yields the object."""
    created = values.new_container("generator", call.where)
    node = values.new_node()
    values.add(node, obj)
    values.put(created, None, node)
    values.add(call.dst, created)


def _model_next(values: Calls, call: Call, callee: Object) -> None:
    values.subscribe(call.argument(0), values.call_next, "__next__", call.dst, call.where)
    values.flow(call.argument(1), call.dst)


def _model_iter(values: Calls, call: Call, callee: Object) -> None:
    if call.argument(1) >= 0:
        created, result = values.new_container("generator", call.where), values.new_node()
        run_callback(values, call, call.argument(0), [], result)
        values.put(created, None, result)
        values.add(call.dst, created)
        return

    def each(objects: list[Object]) -> None:
        for obj in objects:
            if values.objects[obj >> 1].kind == OBJ_INSTANCE:
                values.call_special_method([obj], ["__iter__"], call.with_args([], call.dst, "builtin"))
            else:
                values.add(call.dst, obj)

    values.subscribe(call.argument(0), each)


def _model_getattr(values: Calls, call: Call, callee: Object) -> None:
    if call.dst >= 0:
        values.subscribe(call.argument(1), _load_named, values, call)
    values.flow(call.argument(2), call.dst)


def _load_named(objects: list[Object], values: Calls, call: Call) -> None:
    """Read the attributes of the first argument whose names are these strings."""
    for obj in objects:
        kind, text, _, _ = values.objects[obj >> 1]
        if kind == OBJ_STRING:
            values.subscribe(call.argument(0), values.load_attribute, text, call.dst)
        elif kind == OBJ_STRING_PREFIX:
            values.subscribe(call.argument(0), _load_prefixed, values, text, call.dst)


def _load_prefixed(objects: list[Object], values: Calls, prefix: str, dst: int) -> None:
    """Read the attributes of instances whose names start with a prefix."""
    for obj in objects:
        kind, cls, _, _ = values.objects[obj >> 1]
        own = (
            [each for each in values.mro(cls) if values.objects[each >> 1].kind == OBJ_CLASS]
            if kind == OBJ_INSTANCE
            else []
        )
        names = dict.fromkeys(name for each in own for name in values.cls(each)[1].attrs)
        for name in names:
            if name.startswith(prefix):
                values.load_attribute([obj], name, dst)


def _model_setattr(values: Calls, call: Call, callee: Object) -> None:
    name = values.string_argument(call, 1)
    if name is not None and call.argument(2) >= 0:
        values.subscribe(call.argument(0), values.store_attribute, name, call.argument(2))


def _model_type(values: Calls, call: Call, callee: Object) -> None:
    if len(call.args) != 1 or call.dst < 0:
        return

    def each(objects: list[Object]) -> None:
        for obj in objects:
            kind, first, _, _ = values.objects[obj >> 1]
            if kind == OBJ_INSTANCE:
                values.add(call.dst, first | obj & 1)
            elif kind == OBJ_EXTERNAL_INSTANCE:
                values.add(call.dst, values.object(OBJ_EXTERNAL, first) | obj & 1)

    values.subscribe(call.argument(0), each)


def _model_super(values: Calls, call: Call, callee: Object) -> None:
    if call.dst < 0:
        return
    given = [node for how, _, node in call.args if how == POSITIONAL]
    if len(given) == 2:
        values.subscribe(given[0], _model_explicit_super, values, given[1], call.dst)
        return
    file, site = call.where
    program = values.programs[file]
    number = program.sites[site].function
    while number >= 0 and program.functions[number].owner < 0:
        number = program.functions[number].outer
    if number < 0 or not program.functions[number].parameters:
        return
    function = program.functions[number]
    cls = values.object(OBJ_CLASS, file, function.owner)
    values.subscribe(
        values.global_node(file, function.parameters[0].node), _add_super_objects, values, cls, call.dst
    )


def _model_explicit_super(objects: list[Object], values: Calls, receiver: int, dst: int) -> None:
    for obj in objects:
        if values.objects[obj >> 1].kind == OBJ_CLASS:
            values.subscribe(receiver, _add_super_objects, values, obj & ~1, dst)


def _add_super_objects(objects: list[Object], values: Calls, cls: Object, dst: int) -> None:
    for obj in objects:
        if values.objects[obj >> 1].kind in RECEIVER_KINDS:
            values.add(dst, values.object(OBJ_SUPER, cls, obj & ~1) | obj & 1)


def model_property(values: Calls, call: Call, callee: Object) -> None:
    created = values.object(OBJ_PROPERTY, call.where)
    for position, name in enumerate(("fget", "fset", "fdel")):
        values.flow(call.argument(position, name), values.field(created, name))
    values.add(call.dst, created)


def _wrap_method(how: str) -> Model:
    def model(values: Calls, call: Call, callee: Object) -> None:
        created = values.object(OBJ_STATIC_OR_CLASS_METHOD, call.where, how)
        values.flow(call.argument(0), values.field(created, "inner"))
        values.add(call.dst, created)

    return model


def _model_object_new(values: Calls, call: Call, callee: Object) -> None:
    """Model `object.__new__(cls)`."""
    values.subscribe(call.argument(0), values.add_instances, call.dst, 0)


def return_first_argument(values: Calls, call: Call, callee: Object) -> None:
    values.flow(call.argument(0), call.dst)


def return_instance(cls: str) -> Model:
    """Return a model of a function that returns an instance of an external class."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        if call.dst >= 0:
            values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, cls) | callee & 1)

    return model


def _model_split(values: Calls, call: Call, callee: Object) -> None:
    created = values.new_container("list", call.where)
    node = values.new_node()
    values.add(node, values.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    values.put(created, None, node)
    if call.dst >= 0:
        values.add(call.dst, created)


def _call_special(*names: str, result: str | None = None, returns_result: bool = False) -> Model:
    """Return a model of a builtin that calls a special method of its argument and may return its result."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        args = [node for how, _, node in call.args if how == POSITIONAL]
        for node in args[:1]:
            inner = call.with_args(
                [positional(arg) for arg in args[1:]], call.dst if returns_result else -1, "builtin"
            )
            values.subscribe(node, values.call_special_method, names, inner)
        if result is not None:
            values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, f"builtins.{result}"))

    return model


def _model_print(values: Calls, call: Call, callee: Object) -> None:
    for how, _, node in call.args:
        if how == POSITIONAL:
            values.subscribe(
                node, values.call_special_method, ("__str__", "__repr__"), call.with_args([], -1, "builtin")
            )


def _model_format(values: Calls, call: Call, callee: Object) -> None:
    for _, _, node in call.args:
        names = ("__format__", "__str__", "__repr__")
        values.subscribe(node, values.call_special_method, names, call.with_args([], -1, "builtin"))
    values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))


def _model_consume(values: Calls, call: Call, callee: Object) -> None:
    """Model `sum`, `any` and `all`, which iterate over their argument."""
    element_node(values, call, call.argument(0))


# Decorators that only declare the kind of a method; their application is not reported as a call.
DECLARATIONS = frozenset({"builtins.property", "builtins.staticmethod", "builtins.classmethod"})
STRING_METHODS = (
    *(
        "capitalize",
        "casefold",
        "center",
        "expandtabs",
        "format",
        "format_map",
        "join",
        "ljust",
        "lower",
        "lstrip",
    ),
    *(
        "removeprefix",
        "removesuffix",
        "replace",
        "rjust",
        "rstrip",
        "strip",
        "swapcase",
        "title",
        "translate",
    ),
    *("upper", "zfill"),
)
BUILTIN_MODELS: Mapping[str, Model] = {
    "builtins.map": _model_map,
    "builtins.filter": model_filter,
    "builtins.sorted": collect_elements("list", compares=True),
    "builtins.reversed": collect_elements("generator"),
    "builtins.list": copy_elements("list"),
    "builtins.tuple": copy_elements("tuple"),
    "builtins.set": copy_elements("set"),
    "builtins.frozenset": copy_elements("set"),
    "builtins.dict": model_dict,
    "builtins.min": _model_min_max("__lt__", "__gt__"),
    "builtins.max": _model_min_max("__gt__", "__lt__"),
    "builtins.enumerate": _model_enumerate,
    "builtins.zip": model_zip,
    "builtins.iter": _model_iter,
    "builtins.aiter": _model_iter,
    "builtins.next": _model_next,
    "builtins.getattr": _model_getattr,
    "builtins.setattr": _model_setattr,
    "builtins.type": _model_type,
    "builtins.super": _model_super,
    "builtins.property": model_property,
    "builtins.staticmethod": _wrap_method("staticmethod"),
    "builtins.classmethod": _wrap_method("classmethod"),
    "builtins.object.__new__": _model_object_new,
    "builtins.len": _call_special("__len__", result="int"),
    "builtins.str": _call_special("__str__", "__repr__", result="str"),
    "builtins.repr": _call_special("__repr__", result="str"),
    "builtins.format": _call_special("__format__", "__str__", "__repr__", result="str"),
    "builtins.bool": _call_special("__bool__", "__len__", result="bool"),
    "builtins.int": _call_special("__int__", "__index__", result="int"),
    "builtins.float": _call_special("__float__", "__index__", result="float"),
    "builtins.complex": _call_special("__complex__", "__float__", result="complex"),
    "builtins.bytes": _call_special("__bytes__", "__iter__", result="bytes"),
    "builtins.hash": _call_special("__hash__", result="int"),
    "builtins.abs": _call_special("__abs__", returns_result=True),
    "builtins.round": _call_special("__round__", returns_result=True),
    "builtins.divmod": _call_special("__divmod__", returns_result=True),
    "builtins.pow": _call_special("__pow__", returns_result=True),
    "builtins.dir": _call_special("__dir__"),
    "builtins.print": _model_print,
    "builtins.sum": _model_consume,
    "builtins.any": _model_consume,
    "builtins.all": _model_consume,
    "builtins.open": return_instance("io.TextIOWrapper"),
    "builtins.input": return_instance("builtins.str"),
    **{f"builtins.str.{name}": return_instance("builtins.str") for name in STRING_METHODS},
    **{
        f"builtins.str.{name}": _model_split
        for name in ("split", "rsplit", "splitlines", "partition", "rpartition")
    },
    "builtins.str.format": _model_format,
    "builtins.str.encode": return_instance("builtins.bytes"),
    "builtins.bytes.decode": return_instance("builtins.str"),
}
