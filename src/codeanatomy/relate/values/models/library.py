"""Model functions of the standard library: which arguments they call, and what they return.

    functools.partial(f, a)   returns an object that calls f with a as first argument
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
from codeanatomy.relate.values.containers import FACTORY
from codeanatomy.relate.values.models.builtins import (
    Model,
    collect_elements,
    copy_elements,
    element_node,
    model_dict,
    model_filter,
    model_property,
    model_zip,
    return_first_argument,
    return_generator_of,
    return_instance,
    run_callback,
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
# External names of decorators that return the function they decorate.
IDENTITY = "functools.lru_cache()"
DECORATORS = frozenset({IDENTITY})


def _model_chain(values: Calls, call: Call, callee: Object) -> None:
    created = values.new_container("generator", call.where)
    for _, _, node in call.args:
        values.put(created, None, element_node(values, call, node))
    values.add(call.dst, created)


def _model_chain_from_iterable(values: Calls, call: Call, callee: Object) -> None:
    created = values.new_container("generator", call.where)
    values.put(created, None, element_node(values, call, element_node(values, call, call.argument(0))))
    values.add(call.dst, created)


def _model_starmap(values: Calls, call: Call, callee: Object) -> None:
    created, result = values.new_container("generator", call.where), values.new_node()
    spread = [(STAR, None, element_node(values, call, call.argument(1)))]
    values.call_node(call.argument(0), call.with_args(spread, result, "callback"))
    values.put(created, None, result)
    values.add(call.dst, created)


def _model_groupby(values: Calls, call: Call, callee: Object) -> None:
    element, key = element_node(values, call, call.argument(0)), values.new_node()
    run_callback(values, call, call.argument(1, "key"), [element], key)
    group, pair = (
        values.new_container("generator", call.where, "group"),
        values.new_container("tuple", call.where, "pair"),
    )
    node = values.new_node()
    values.put(group, None, element)
    values.add(node, group)
    values.put(pair, "0", key)
    values.put(pair, "1", node)
    return_generator_of(values, call, pair)


def _model_reduce(values: Calls, call: Call, callee: Object) -> None:
    element = element_node(values, call, call.argument(1))
    accumulated, result = values.new_node(), values.new_node()
    values.flow(element if call.argument(2) < 0 else call.argument(2), accumulated)
    values.flow(result, accumulated)
    run_callback(values, call, call.argument(0), [accumulated, element], result)
    values.flow(result, call.dst)
    values.flow(call.argument(2), call.dst)


def _model_partial(kind: str) -> Model:
    """Return a model of partial or partialmethod: a function with its first arguments."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        created = values.object(kind, call.where, call.with_args(call.args[1:]))
        values.flow(call.argument(0), values.field(created, "callee"))
        values.add(call.dst, created)

    return model


def _wrap_argument(kind: str, field: str) -> Model:
    """Return a model of a function that returns an object with its argument in a field."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        created = values.object(kind, call.where)
        values.flow(call.argument(0), values.field(created, field))
        values.add(call.dst, created)

    return model


def _model_update_wrapper(values: Calls, call: Call, callee: Object) -> None:
    values.subscribe(call.argument(0), values.remember_wrapped, call.argument(1))
    values.flow(call.argument(0), call.dst)


def _model_cache(values: Calls, call: Call, callee: Object) -> None:
    """Model `lru_cache` and `lru_cache(maxsize=1)`, which both return the function."""
    if call.is_decorator or call.argument(0) >= 0:
        values.flow(call.argument(0), call.dst)
    if call.dst >= 0 and not call.is_decorator:
        values.add(call.dst, values.object(OBJ_EXTERNAL, IDENTITY))


def _model_dataclass(values: Calls, call: Call, callee: Object) -> None:
    def mark(objects: list[Object]) -> None:
        for obj in objects:
            if values.objects[obj >> 1].kind == OBJ_CLASS:
                values.dataclasses.add(obj & ~1)

    if call.argument(0) >= 0:
        values.subscribe(call.argument(0), mark)
        values.flow(call.argument(0), call.dst)
    elif call.dst >= 0:
        values.add(call.dst, values.object(OBJ_EXTERNAL, f"{values.objects[callee >> 1].first}()"))


def _model_contextmanager(values: Calls, call: Call, callee: Object) -> None:
    def each(objects: list[Object]) -> None:
        for obj in objects:
            if values.objects[obj >> 1].kind == OBJ_FUNCTION:
                values.add(call.dst, values.object(OBJ_CONTEXT_FUNCTION, obj & ~1) | obj & 1)

    values.subscribe(call.argument(0), each)


def _model_defaultdict(values: Calls, call: Call, callee: Object) -> None:
    created = values.new_container("dict", call.where, cls=values.objects[callee >> 1].first)
    if call.argument(0) >= 0:
        # Called where a key is missing, not here.
        values.flow(call.argument(0), values.field(created, FACTORY))
    values.add(call.dst, created)


def _model_field(values: Calls, call: Call, callee: Object) -> None:
    created = values.object(OBJ_DATACLASS_FIELD, call.where)
    for name in ("default", "default_factory"):
        values.flow(call.argument(-1, name), values.field(created, name))
    if call.dst >= 0:
        values.add(call.dst, created)


def _model_import_module(values: Calls, call: Call, callee: Object) -> None:
    name = values.string_argument(call, 0)
    if name is not None and call.dst >= 0 and not name.startswith("."):
        values.add(call.dst, values.module(name))


def _model_enter_context(values: Calls, call: Call, callee: Object) -> None:
    values.subscribe(call.argument(0), values.enter_context, call.dst, call.where)


def _run_later(position: int, keyword: str | None = None, cls: str | None = None) -> Model:
    """Return a model of a function that calls an argument later, with those that follow or are in `args`."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        given = [(STAR, None, call.argument(-1, "args"))] if call.argument(-1, "args") >= 0 else []
        following = (
            [arg for arg in call.args if arg[0] == POSITIONAL][position + 1 :] if keyword is None else []
        )
        run = call.with_args([*following, *given], -1, "callback")
        values.call_node(call.argument(position, keyword), run)
        values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, cls or values.objects[callee >> 1].first))

    return model


def _model_sub(position: int) -> Model:
    """Return a model of `re.sub`, which calls a function with each match."""

    def model(values: Calls, call: Call, callee: Object) -> None:
        match = values.new_node()
        values.add(match, values.object(OBJ_EXTERNAL_INSTANCE, "re.Match"))
        run_callback(values, call, call.argument(position, "repl"), [match])
        values.add(call.dst, values.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))

    return model


def _model_cast(values: Calls, call: Call, callee: Object) -> None:
    values.flow(call.argument(1), call.dst)
    values.subscribe(call.argument(0), values.add_instances, call.dst, WEAK)


LIBRARY_MODELS: Mapping[str, Model] = {
    "collections.deque": copy_elements("list"),
    "collections.OrderedDict": model_dict,
    "collections.defaultdict": _model_defaultdict,
    "itertools.chain": _model_chain,
    "itertools.chain.from_iterable": _model_chain_from_iterable,
    "itertools.islice": collect_elements("generator"),
    "itertools.cycle": collect_elements("generator"),
    "itertools.takewhile": model_filter,
    "itertools.dropwhile": model_filter,
    "itertools.filterfalse": model_filter,
    "itertools.starmap": _model_starmap,
    "itertools.groupby": _model_groupby,
    "itertools.zip_longest": model_zip,
    "itertools.product": model_zip,
    "functools.reduce": _model_reduce,
    "functools.cached_property": model_property,
    "abc.abstractproperty": model_property,
    "functools.partial": _model_partial(OBJ_PARTIAL),
    "functools.partialmethod": _model_partial(OBJ_PARTIAL_METHOD),
    "functools.wraps": _wrap_argument(OBJ_WRAPS, "wrapped"),
    "functools.update_wrapper": _model_update_wrapper,
    "functools.lru_cache": _model_cache,
    "functools.cache": _model_cache,
    "functools.singledispatch": _wrap_argument(OBJ_SINGLEDISPATCH, "any"),
    "functools.singledispatchmethod": _wrap_argument(OBJ_SINGLEDISPATCH, "any"),
    "functools.total_ordering": return_first_argument,
    "abc.abstractmethod": return_first_argument,
    "typing.overload": return_first_argument,
    "typing.final": return_first_argument,
    "typing.no_type_check": return_first_argument,
    "typing.runtime_checkable": return_first_argument,
    "typing.cast": _model_cast,
    "copy.copy": return_first_argument,
    "copy.deepcopy": return_first_argument,
    "dataclasses.dataclass": _model_dataclass,
    "dataclasses.dataclass()": _model_dataclass,
    "dataclasses.replace": return_first_argument,
    "contextlib.contextmanager": _model_contextmanager,
    "contextlib.asynccontextmanager": _model_contextmanager,
    "contextlib.closing": _wrap_argument(OBJ_CLOSING, "inner"),
    "contextlib.nullcontext": _wrap_argument(OBJ_CLOSING, "inner"),
    "contextlib.ExitStack.enter_context": _model_enter_context,
    "contextlib.ExitStack.callback": _run_later(0),
    "asyncio.run": return_first_argument,
    "asyncio.create_task": return_first_argument,
    "asyncio.ensure_future": return_first_argument,
    "asyncio.wait_for": return_first_argument,
    "dataclasses.field": _model_field,
    "importlib.import_module": _model_import_module,
    **{
        f"datetime.{cls}.{name}": return_instance(f"datetime.{cls}")
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
    "pathlib.Path.cwd": return_instance("pathlib.Path"),
    "pathlib.Path.home": return_instance("pathlib.Path"),
    "logging.getLogger": return_instance("logging.Logger"),
    "re.compile": return_instance("re.Pattern"),
    **{f"re.{name}": return_instance("re.Match") for name in ("match", "search", "fullmatch")},
    **{f"re.Pattern.{name}": return_instance("re.Match") for name in ("match", "search", "fullmatch")},
    "re.sub": _model_sub(1),
    "re.Pattern.sub": _model_sub(0),
    **{name: return_instance("builtins.str") for name in STRING_FUNCTIONS},
    "pathlib.Path.open": return_instance("io.TextIOWrapper"),
    **{f"pathlib.Path.{name}": return_instance("pathlib.Path") for name in PATHS},
    **{
        f"concurrent.futures.{pool}.submit": _run_later(0, cls="concurrent.futures.Future")
        for pool in ("ThreadPoolExecutor", "ProcessPoolExecutor")
    },
    "threading.Thread": _run_later(1, "target"),
    "threading.Timer": _run_later(1, "function"),
    "atexit.register": _run_later(0),
}
