"""What parts of the standard library do with the values they are given.

    functools.partial(f, a)   a call of it calls f with a first
    contextlib.closing(x)     `with` binds x, and calls x.close at the end

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from codeanatomy.relate.program import (
    OBJ_CLASS,
    OBJ_CLOSING,
    OBJ_CONTEXT_FUNCTION,
    OBJ_DATACLASS_FIELD,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_FUNCTION,
    OBJ_PARTIAL,
    OBJ_PARTIAL_METHOD,
    OBJ_SINGLEDISPATCH,
    OBJ_WRAPS,
    POSITIONAL,
    STAR,
)
from codeanatomy.relate.values.models.builtins import (
    Model,
    callback,
    copied,
    element_of,
    filtered,
    gives,
    keyed,
    made_property,
    ordered,
    same,
    yielding,
    zipped,
)
from codeanatomy.relate.values.solver import WEAK, Object

if TYPE_CHECKING:
    from codeanatomy.relate.values.calls import Calls
    from codeanatomy.relate.values.pending_call import Call

# Functions of the standard library that return strings, and methods of paths that return paths.
STRING_FUNCTIONS = (
    *(
        f"os.path.{name}"
        for name in ("join", "basename", "dirname", "abspath", "normpath", "realpath", "expanduser")
    ),
    *("os.getcwd", "json.dumps", "re.Match.group", "pathlib.Path.read_text", "time.strftime"),
    *("io.TextIOWrapper.read", "io.TextIOWrapper.readline", "textwrap.dedent"),
)
PATHS = ("absolute", "expanduser", "joinpath", "resolve", "with_name", "with_suffix", "with_stem")
IDENTITY = "functools.lru_cache()"
DECORATORS = frozenset({IDENTITY})


def _chain(values: Calls, call: Call, obj: Object) -> None:
    made = values.new_container("generator", call.where)
    for _, _, node in call.args:
        values.put(made, None, element_of(values, call, node))
    values.add(call.dst, made)


def _flattened(values: Calls, call: Call, obj: Object) -> None:
    made = values.new_container("generator", call.where)
    values.put(made, None, element_of(values, call, element_of(values, call, call.argument(0))))
    values.add(call.dst, made)


def _starmap(values: Calls, call: Call, obj: Object) -> None:
    made, result = values.new_container("generator", call.where), values.new_node()
    spread = [(STAR, None, element_of(values, call, call.argument(1)))]
    values.call_node(call.argument(0), call.with_args(spread, result, "callback"))
    values.put(made, None, result)
    values.add(call.dst, made)


def _grouped(values: Calls, call: Call, obj: Object) -> None:
    element, key = element_of(values, call, call.argument(0)), values.new_node()
    callback(values, call, call.argument(1, "key"), [element], key)
    group, pair = (
        values.new_container("generator", call.where, "group"),
        values.new_container("tuple", call.where, "pair"),
    )
    node = values.new_node()
    values.put(group, None, element)
    values.add(node, group)
    values.put(pair, "0", key)
    values.put(pair, "1", node)
    yielding(values, call, pair)


def _reduce(values: Calls, call: Call, obj: Object) -> None:
    element = element_of(values, call, call.argument(1))
    so_far, result = values.new_node(), values.new_node()
    values.flow(element if call.argument(2) < 0 else call.argument(2), so_far)
    values.flow(result, so_far)
    callback(values, call, call.argument(0), [so_far, element], result)
    values.flow(result, call.dst)
    values.flow(call.argument(2), call.dst)


def _partial(kind: str) -> Model:
    """Of partial and partialmethod: a function, and the arguments it has already."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        made = values.object(kind, call.where, call.with_args(call.args[1:]))
        values.flow(call.argument(0), values.field(made, "callee"))
        values.add(call.dst, made)

    return model


def _holds(kind: str, field: str) -> Model:
    """Something that keeps its first argument: what is dispatched, wrapped or closed."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        made = values.object(kind, call.where)
        values.flow(call.argument(0), values.field(made, field))
        values.add(call.dst, made)

    return model


def _update_wrapper(values: Calls, call: Call, obj: Object) -> None:
    values.subscribe(call.argument(0), values.remember_wrapped, call.argument(1))
    values.flow(call.argument(0), call.dst)


def _decorator_factory(values: Calls, call: Call, obj: Object) -> None:
    """`lru_cache` and `lru_cache(maxsize=1)` alike give the function back."""
    if call.is_decorator or call.argument(0) >= 0:
        values.flow(call.argument(0), call.dst)
    if call.dst >= 0 and not call.is_decorator:
        values.add(call.dst, values.object(OBJ_EXTERNAL, IDENTITY))


def _dataclass(values: Calls, call: Call, obj: Object) -> None:
    def mark(objects: list[Object]) -> None:
        for obj in objects:
            if values.objects[obj >> 1].kind == OBJ_CLASS:
                values.dataclasses.add(obj & ~1)

    if call.argument(0) >= 0:
        values.subscribe(call.argument(0), mark)
        values.flow(call.argument(0), call.dst)
    elif call.dst >= 0:
        values.add(call.dst, values.object(OBJ_EXTERNAL, f"{values.objects[obj >> 1].first}()"))


def _context(values: Calls, call: Call, obj: Object) -> None:
    def each(objects: list[Object]) -> None:
        for obj in objects:
            if values.objects[obj >> 1].kind == OBJ_FUNCTION:
                values.add(call.dst, values.object(OBJ_CONTEXT_FUNCTION, obj & ~1) | obj & 1)

    values.subscribe(call.argument(0), each)


def _defaultdict(values: Calls, call: Call, obj: Object) -> None:
    made = values.new_container("dict", call.where, cls=values.objects[obj >> 1].first)
    if call.argument(0) >= 0:
        # It runs where a key is missing, not here.
        values.flow(call.argument(0), values.field(made, "[factory]"))
    values.add(call.dst, made)


def _field(values: Calls, call: Call, obj: Object) -> None:
    made = values.object(OBJ_DATACLASS_FIELD, call.where)
    for name in ("default", "default_factory"):
        values.flow(call.argument(-1, name), values.field(made, name))
    if call.dst >= 0:
        values.add(call.dst, made)


def _import_module(values: Calls, call: Call, obj: Object) -> None:
    name = values.string_argument(call, 0)
    if name is not None and call.dst >= 0 and not name.startswith("."):
        values.add(call.dst, values.module(name))


def _enter_context(values: Calls, call: Call, obj: Object) -> None:
    values.subscribe(call.argument(0), values.enter_context, call.dst, call.where)


def _runs(place: int, word: str | None = None, gives: str | None = None) -> Model:
    """Something that runs one of its arguments later, with those that follow or are in `args`."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        given = [(STAR, None, call.argument(-1, "args"))] if call.argument(-1, "args") >= 0 else []
        following = [arg for arg in call.args if arg[0] == POSITIONAL][place + 1 :] if word is None else []
        run = call.with_args([*following, *given], -1, "callback")
        values.call_node(call.argument(place, word), run)
        values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, gives or values.objects[obj >> 1].first))

    return model


def _substitutes(place: int) -> Model:
    """`re.sub` calls a function with each match."""

    def model(values: Calls, call: Call, obj: Object) -> None:
        match = values.new_node()
        values.add(match, values.object(OBJ_EXTERNAL_INSTANCE, "re.Match"))
        callback(values, call, call.argument(place, "repl"), [match])
        values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))

    return model


def _cast(values: Calls, call: Call, obj: Object) -> None:
    values.flow(call.argument(1), call.dst)
    values.subscribe(call.argument(0), values.add_instances, call.dst, WEAK)


LIBRARY_MODELS: Mapping[str, Model] = {
    "collections.deque": copied("list"),
    "collections.OrderedDict": keyed,
    "collections.defaultdict": _defaultdict,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _flattened,
    "itertools.islice": ordered("generator"),
    "itertools.cycle": ordered("generator"),
    "itertools.takewhile": filtered,
    "itertools.dropwhile": filtered,
    "itertools.filterfalse": filtered,
    "itertools.starmap": _starmap,
    "itertools.groupby": _grouped,
    "itertools.zip_longest": zipped,
    "itertools.product": zipped,
    "functools.reduce": _reduce,
    "functools.cached_property": made_property,
    "abc.abstractproperty": made_property,
    "functools.partial": _partial(OBJ_PARTIAL),
    "functools.partialmethod": _partial(OBJ_PARTIAL_METHOD),
    "functools.wraps": _holds(OBJ_WRAPS, "wrapped"),
    "functools.update_wrapper": _update_wrapper,
    "functools.lru_cache": _decorator_factory,
    "functools.cache": _decorator_factory,
    "functools.singledispatch": _holds(OBJ_SINGLEDISPATCH, "any"),
    "functools.singledispatchmethod": _holds(OBJ_SINGLEDISPATCH, "any"),
    "functools.total_ordering": same,
    "abc.abstractmethod": same,
    "typing.overload": same,
    "typing.final": same,
    "typing.no_type_check": same,
    "typing.runtime_checkable": same,
    "typing.cast": _cast,
    "copy.copy": same,
    "copy.deepcopy": same,
    "dataclasses.dataclass": _dataclass,
    "dataclasses.dataclass()": _dataclass,
    "dataclasses.replace": same,
    "contextlib.contextmanager": _context,
    "contextlib.asynccontextmanager": _context,
    "contextlib.closing": _holds(OBJ_CLOSING, "inner"),
    "contextlib.nullcontext": _holds(OBJ_CLOSING, "inner"),
    "contextlib.ExitStack.enter_context": _enter_context,
    "contextlib.ExitStack.callback": _runs(0),
    "asyncio.run": same,
    "asyncio.create_task": same,
    "asyncio.ensure_future": same,
    "asyncio.wait_for": same,
    "dataclasses.field": _field,
    "importlib.import_module": _import_module,
    **{
        f"datetime.{cls}.{name}": gives(f"datetime.{cls}")
        for cls in ("date", "datetime")
        for name in (
            "today",
            "now",
            "utcnow",
            "fromtimestamp",
            "utcfromtimestamp",
            "fromisoformat",
            "strptime",
            "combine",
        )
    },
    "pathlib.Path.cwd": gives("pathlib.Path"),
    "pathlib.Path.home": gives("pathlib.Path"),
    "logging.getLogger": gives("logging.Logger"),
    "re.compile": gives("re.Pattern"),
    **{f"re.{name}": gives("re.Match") for name in ("match", "search", "fullmatch")},
    **{f"re.Pattern.{name}": gives("re.Match") for name in ("match", "search", "fullmatch")},
    "re.sub": _substitutes(1),
    "re.Pattern.sub": _substitutes(0),
    **{name: gives("builtins.str") for name in STRING_FUNCTIONS},
    "pathlib.Path.open": gives("io.TextIOWrapper"),
    **{f"pathlib.Path.{name}": gives("pathlib.Path") for name in PATHS},
    **{
        f"concurrent.futures.{pool}.submit": _runs(0, gives="concurrent.futures.Future")
        for pool in ("ThreadPoolExecutor", "ProcessPoolExecutor")
    },
    "threading.Thread": _runs(1, "target"),
    "threading.Timer": _runs(1, "function"),
    "atexit.register": _runs(0),
}
