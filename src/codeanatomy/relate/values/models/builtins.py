"""What the builtins do with the values they are given.

    map(f, xs)                f is called with the elements of xs, the result has what f returns
    str(x)                    `__str__` or `__repr__` of x is called, the result is a string

Only what passes functions or objects of the repository on is told; of everything else the name is enough. The
standard library is in `library_models`.

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
from codeanatomy.relate.values.pending_call import positional
from codeanatomy.relate.values.solver import Object

if TYPE_CHECKING:
    from codeanatomy.relate.values.calls import Calls
    from codeanatomy.relate.values.pending_call import Call

Model: TypeAlias = "Callable[[Calls, Call, Object], None]"


def callback(values: Calls, call: Call, callee: int, args: list[int], dst: int = -1) -> None:
    """A function that is run on behalf of the caller."""
    values.call_node(callee, call.with_args([positional(arg) for arg in args], dst, "callback"))


def element_of(values: Calls, call: Call, src: int) -> int:
    """The node of what iteration over another gives."""
    node = values.new_node()
    values.iterate(src, node, call.where)
    return node


def _map(values: Calls, call: Call, obj: Object) -> None:
    made = values.new_container("generator", call.where)
    result = values.new_node()
    sources = [node for how, _, node in call.args if how == POSITIONAL][1:]
    callback(values, call, call.argument(0), [element_of(values, call, each) for each in sources], result)
    values.put(made, None, result)
    values.add(call.dst, made)


def filtered(values: Calls, call: Call, obj: Object) -> None:
    made = values.new_container("generator", call.where)
    element = element_of(values, call, call.argument(1))
    callback(values, call, call.argument(0), [element])
    values.put(made, None, element)
    values.add(call.dst, made)


def ordered(kind: str, *, compares: bool = False) -> Model:
    """Of sorted, and what else makes a container of another's elements."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        made = values.new_container(kind, call.where)
        element = element_of(values, call, call.argument(0))
        if compares:
            compared(values, call, element, "__lt__", "__gt__")
        values.put(made, None, element)
        values.add(call.dst, made)

    return model


def compared(values: Calls, call: Call, element: int, *names: str) -> None:
    """Elements are compared by their keys, or with each other."""
    key = call.argument(-1, "key")
    if key >= 0:
        callback(values, call, key, [element])
    else:
        values.subscribe(
            element, values.call_special_method, names, call.with_args([positional(element)], -1, "builtin")
        )


def copied(kind: str) -> Model:
    """Of list(xs), tuple(xs), deque(xs)."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        made = values.new_container(kind, call.where, cls=values.objects[obj >> 1].first)
        if call.argument(0) >= 0:
            values.put(made, None, element_of(values, call, call.argument(0)))
        values.add(call.dst, made)

    return model


def keyed(values: Calls, call: Call, obj: Object) -> None:
    made = values.new_container("dict", call.where, cls=values.objects[obj >> 1].first)
    for _, word, node in call.args:
        if word is not None:
            values.put(made, repr(word), node)
    if call.argument(0) >= 0:
        values.subscribe(call.argument(0), entries, values, made, call)
    values.add(call.dst, made)


def entries(objects: list[Object], values: Calls, made: Object, call: Call) -> None:
    """The entries of another dict, or of what gives pairs."""
    for obj in objects:
        if values.objects[obj >> 1].kind == OBJ_CONTAINER and values.container_kind(obj) == "dict":
            values.merge_from([obj], made)
            continue
        pair = values.new_node()
        values.iterate_objects([obj], pair, call.where)
        values.subscribe(pair, _pairs, values, made)


def _pairs(objects: list[Object], values: Calls, made: Object) -> None:
    """Pairs of keys and values."""
    for obj in objects:
        if values.objects[obj >> 1].kind == OBJ_CONTAINER and values.container_kind(obj) in ("tuple", "list"):
            for node in values.element_nodes(obj, "0"):
                values.flow(node, values.field(made, "[keys]"))
            for node in values.element_nodes(obj, "1"):
                values.put(made, None, node)


def _best(*names: str) -> Model:
    """Of min and max: one of the elements or arguments."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        given = [node for how, _, node in call.args if how == POSITIONAL]
        element = values.new_node()
        if len(given) == 1:
            values.iterate(given[0], element, call.where)
        for node in given if len(given) > 1 else ():
            values.flow(node, element)
        compared(values, call, element, *names)
        values.flow(element, call.dst)
        values.flow(call.argument(-1, "default"), call.dst)

    return model


def _enumerate(values: Calls, call: Call, obj: Object) -> None:
    pair = values.new_container("tuple", call.where, "pair")
    values.put(pair, "1", element_of(values, call, call.argument(0)))
    yielding(values, call, pair)


def zipped(values: Calls, call: Call, obj: Object) -> None:
    row = values.new_container("tuple", call.where, "row")
    for place, (_, _, node) in enumerate(call.args):
        values.put(row, str(place), element_of(values, call, node))
    yielding(values, call, row)


def yielding(values: Calls, call: Call, obj: Object) -> None:
    made = values.new_container("generator", call.where)
    node = values.new_node()
    values.add(node, obj)
    values.put(made, None, node)
    values.add(call.dst, made)


def _next(values: Calls, call: Call, obj: Object) -> None:
    values.subscribe(call.argument(0), values.call_next, "__next__", call.dst, call.where)
    values.flow(call.argument(1), call.dst)


def _iter(values: Calls, call: Call, obj: Object) -> None:
    if call.argument(1) >= 0:
        made, result = values.new_container("generator", call.where), values.new_node()
        callback(values, call, call.argument(0), [], result)
        values.put(made, None, result)
        values.add(call.dst, made)
        return

    def each(objects: list[Object]) -> None:
        for obj in objects:
            if values.objects[obj >> 1].kind == OBJ_INSTANCE:
                values.call_special_method([obj], ["__iter__"], call.with_args([], call.dst, "builtin"))
            else:
                values.add(call.dst, obj)

    values.subscribe(call.argument(0), each)


def _getattr(values: Calls, call: Call, obj: Object) -> None:
    if call.dst >= 0:
        values.subscribe(call.argument(1), _named, values, call)
    values.flow(call.argument(2), call.dst)


def _named(objects: list[Object], values: Calls, call: Call) -> None:
    """Attributes whose names are known strings."""
    for obj in objects:
        kind, text, _, _ = values.objects[obj >> 1]
        if kind == OBJ_STRING:
            values.subscribe(call.argument(0), values.load_attribute, text, call.dst)
        elif kind == OBJ_STRING_PREFIX:
            values.subscribe(call.argument(0), _beginning, values, text, call.dst)


def _beginning(objects: list[Object], values: Calls, prefix: str, dst: int) -> None:
    """The methods whose names begin so, of instances."""
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


def _setattr(values: Calls, call: Call, obj: Object) -> None:
    name = values.string_argument(call, 1)
    if name is not None and call.argument(2) >= 0:
        values.subscribe(call.argument(0), values.store_attribute, name, call.argument(2))


def _type(values: Calls, call: Call, obj: Object) -> None:
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


def _super(values: Calls, call: Call, obj: Object) -> None:
    if call.dst < 0:
        return
    given = [node for how, _, node in call.args if how == POSITIONAL]
    if len(given) == 2:
        values.subscribe(given[0], _explicit_super, values, given[1], call.dst)
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
    values.subscribe(values.global_node(file, function.parameters[0].node), _proxies, values, cls, call.dst)


def _explicit_super(objects: list[Object], values: Calls, receiver: int, dst: int) -> None:
    for obj in objects:
        if values.objects[obj >> 1].kind == OBJ_CLASS:
            values.subscribe(receiver, _proxies, values, obj & ~1, dst)


def _proxies(objects: list[Object], values: Calls, cls: Object, dst: int) -> None:
    for obj in objects:
        if values.objects[obj >> 1].kind in (OBJ_INSTANCE, OBJ_CLASS):
            values.add(dst, values.object(OBJ_SUPER, cls, obj & ~1) | obj & 1)


def made_property(values: Calls, call: Call, obj: Object) -> None:
    made = values.object(OBJ_PROPERTY, call.where)
    for place, name in enumerate(("fget", "fset", "fdel")):
        values.flow(call.argument(place, name), values.field(made, name))
    values.add(call.dst, made)


def _wrapped(how: str) -> Model:
    def model(values: Calls, call: Call, obj: Object) -> None:
        made = values.object(OBJ_STATIC_OR_CLASS_METHOD, call.where, how)
        values.flow(call.argument(0), values.field(made, "inner"))
        values.add(call.dst, made)

    return model


def _instance(values: Calls, call: Call, obj: Object) -> None:
    """`object.__new__(cls)`."""
    values.subscribe(call.argument(0), values.add_instances, call.dst, 0)


def same(values: Calls, call: Call, obj: Object) -> None:
    values.flow(call.argument(0), call.dst)


def gives(cls: str) -> Model:
    """A call whose result is an instance of a class outside."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        if call.dst >= 0:
            values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, cls) | obj & 1)

    return model


def _splits(values: Calls, call: Call, obj: Object) -> None:
    made = values.new_container("list", call.where)
    node = values.new_node()
    values.add(node, values.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    values.put(made, None, node)
    if call.dst >= 0:
        values.add(call.dst, made)


def _asks(*names: str, result: str | None = None, gives: bool = False) -> Model:
    """A builtin that asks its argument by a special method, and may give what that returns."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        args = [node for how, _, node in call.args if how == POSITIONAL]
        for node in args[:1]:
            asked = call.with_args(
                [positional(arg) for arg in args[1:]], call.dst if gives else -1, "builtin"
            )
            values.subscribe(node, values.call_special_method, names, asked)
        if result is not None:
            values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, f"builtins.{result}"))

    return model


def _prints(values: Calls, call: Call, obj: Object) -> None:
    for how, _, node in call.args:
        if how == POSITIONAL:
            values.subscribe(
                node, values.call_special_method, ("__str__", "__repr__"), call.with_args([], -1, "builtin")
            )


def _formats(values: Calls, call: Call, obj: Object) -> None:
    for _, _, node in call.args:
        names = ("__format__", "__str__", "__repr__")
        values.subscribe(node, values.call_special_method, names, call.with_args([], -1, "builtin"))
    values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))


def _consumes(values: Calls, call: Call, obj: Object) -> None:
    """Of sum, any and all, which iterate."""
    element_of(values, call, call.argument(0))


# Applied to a function they say what it is; nobody thinks of them as calls.
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
    "builtins.map": _map,
    "builtins.filter": filtered,
    "builtins.sorted": ordered("list", compares=True),
    "builtins.reversed": ordered("generator"),
    "builtins.list": copied("list"),
    "builtins.tuple": copied("tuple"),
    "builtins.set": copied("set"),
    "builtins.frozenset": copied("set"),
    "builtins.dict": keyed,
    "builtins.min": _best("__lt__", "__gt__"),
    "builtins.max": _best("__gt__", "__lt__"),
    "builtins.enumerate": _enumerate,
    "builtins.zip": zipped,
    "builtins.iter": _iter,
    "builtins.aiter": _iter,
    "builtins.next": _next,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.type": _type,
    "builtins.super": _super,
    "builtins.property": made_property,
    "builtins.staticmethod": _wrapped("staticmethod"),
    "builtins.classmethod": _wrapped("classmethod"),
    "builtins.object.__new__": _instance,
    "builtins.len": _asks("__len__", result="int"),
    "builtins.str": _asks("__str__", "__repr__", result="str"),
    "builtins.repr": _asks("__repr__", result="str"),
    "builtins.format": _asks("__format__", "__str__", "__repr__", result="str"),
    "builtins.bool": _asks("__bool__", "__len__", result="bool"),
    "builtins.int": _asks("__int__", "__index__", result="int"),
    "builtins.float": _asks("__float__", "__index__", result="float"),
    "builtins.complex": _asks("__complex__", "__float__", result="complex"),
    "builtins.bytes": _asks("__bytes__", "__iter__", result="bytes"),
    "builtins.hash": _asks("__hash__", result="int"),
    "builtins.abs": _asks("__abs__", gives=True),
    "builtins.round": _asks("__round__", gives=True),
    "builtins.divmod": _asks("__divmod__", gives=True),
    "builtins.pow": _asks("__pow__", gives=True),
    "builtins.dir": _asks("__dir__"),
    "builtins.print": _prints,
    "builtins.sum": _consumes,
    "builtins.any": _consumes,
    "builtins.all": _consumes,
    "builtins.open": gives("io.TextIOWrapper"),
    "builtins.input": gives("builtins.str"),
    **{f"builtins.str.{name}": gives("builtins.str") for name in STRING_METHODS},
    **{
        f"builtins.str.{name}": _splits
        for name in ("split", "rsplit", "splitlines", "partition", "rpartition")
    },
    "builtins.str.format": _formats,
    "builtins.str.encode": gives("builtins.bytes"),
    "builtins.bytes.decode": gives("builtins.str"),
}
