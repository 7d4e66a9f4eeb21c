"""Model functions of the standard library: which arguments they call, and what they return.

    functools.partial(f, a)   returns an object that calls f with a as first argument
    contextlib.closing(x)     `with` binds x, and calls x.close at the end

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.models.builtins import (
    Model,
    collect,
    copy,
    dict_,
    filter_,
    property_,
    return_argument,
    return_instance,
    return_instances,
    wrap,
    zip_,
)
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.records import RECORD_DECORATORS
from codeanatomy.relate.values.rules.containers import FACTORY
from codeanatomy.relate.values.rules.functions import remember_wrapped
from codeanatomy.relate.values.rules.imports import module
from codeanatomy.relate.values.rules.protocols import enter_context
from codeanatomy.relate.values.solver import Object, strong

# External name of a decorator that returns the function it decorates.
IDENTITY = "functools.lru_cache()"


# -- itertools and functools


def chain(c: ModelCall) -> None:
    c.returns(c.container("generator", *[c.iterate(node) for _, _, node in c.pending.args]))


def chain_from_iterable(c: ModelCall) -> None:
    c.returns(c.container("generator", c.iterate(c.iterate(c.argument(0)))))


def starmap(c: ModelCall) -> None:
    result = c.node()
    c.call_with(c.argument(0), [(ir.STAR, None, c.iterate(c.argument(1)))], result)
    c.returns(c.container("generator", result))


def groupby(c: ModelCall) -> None:
    element = c.iterate(c.argument(0))
    key = c.call(c.argument(1, "key"), [element], c.node())
    pair = c.container("tuple", mark="pair")
    c.put(pair, "0", key)
    c.put(pair, "1", c.node(c.container("generator", element, mark="group")))
    c.returns(c.container("generator", c.node(pair)))


def reduce(c: ModelCall) -> None:
    element, initial = c.iterate(c.argument(1)), c.argument(2)
    accumulated, result = c.node(), c.node()
    c.flow(element if initial < 0 else initial, accumulated)
    c.flow(result, accumulated)
    c.call(c.argument(0), [accumulated, element], result)
    c.flow(result, c.result)
    c.flow(initial, c.result)


def partial_(c: ModelCall, kind: str) -> None:
    """Return a function with its first arguments: partial or partialmethod."""
    created = c.object(kind, c.pending.where, c.pending.with_args(c.pending.args[1:]))
    c.flow(c.argument(0), c.field(created, "callee"))
    c.returns(created)


def update_wrapper(c: ModelCall) -> None:
    c.state.subscribe(c.argument(0), remember_wrapped, c.argument(1))
    return_argument(c)


def cache(c: ModelCall) -> None:
    """Model `lru_cache` and `lru_cache(maxsize=1)`, which both return the function."""
    return_argument(c)
    if not c.pending.is_decorator:
        c.returns(c.object(ir.OBJ_EXTERNAL, IDENTITY))


# -- dataclasses and contextlib


def dataclass(c: ModelCall) -> None:
    if c.argument(0) >= 0:
        c.each(c.argument(0), _mark_dataclass)
        return_argument(c)
    else:
        c.returns(c.object(ir.OBJ_EXTERNAL, f"{c.name}()"))


def _mark_dataclass(c: ModelCall, cls: Object) -> None:
    if c.state.kind[cls] == ir.OBJ_CLASS:
        c.state.classes.records[strong(cls)] = RECORD_DECORATORS[c.name.removesuffix("()")]


def field(c: ModelCall) -> None:
    created = c.object(ir.OBJ_DATACLASS_FIELD, c.pending.where)
    for name in ("factory", "default_factory"):
        c.flow(c.argument(-1, name), c.field(created, "default_factory"))
    c.each(c.argument(0, "default"), _set_default, created)
    c.returns(created)


def _set_default(c: ModelCall, default: Object, created: Object) -> None:
    """Set the default of a field; `attr.Factory(f)` is one that calls f."""
    if c.state.kind[default] == ir.OBJ_DATACLASS_FIELD:
        c.flow(c.field(default, "default_factory"), c.field(created, "default_factory"))
    else:
        c.add(c.field(created, "default"), default)


def named_tuple(c: ModelCall) -> None:
    names = (c.text(1) or "").replace(",", " ").split()
    c.returns(c.object(ir.OBJ_NAMED_TUPLE, c.pending.where, tuple(names)))


def contextmanager(c: ModelCall) -> None:
    c.each(c.argument(0), _return_context_function)


def _return_context_function(c: ModelCall, function: Object) -> None:
    if c.state.kind[function] == ir.OBJ_FUNCTION:
        c.returns(c.object(ir.OBJ_CONTEXT_FUNCTION, strong(function)), function)


def with_(c: ModelCall) -> None:
    """Enter a context manager now."""
    c.state.subscribe(c.argument(0), enter_context, c.result, c.pending.where)


# -- the rest


def defaultdict(c: ModelCall) -> None:
    created = c.container("dict", cls=c.name)
    if c.argument(0) >= 0:
        # Called where a key is missing, not here.
        c.flow(c.argument(0), c.field(created, FACTORY))
    c.returns(created)


def import_module(c: ModelCall) -> None:
    name = c.text(0)
    if name is not None and not name.startswith("."):
        c.returns(module(c.state, name))


def run_later(c: ModelCall, position: int, keyword: str | None = None, cls: str | None = None) -> None:
    """Call an argument later, with those that follow or are in `args`."""
    args = [] if keyword else [arg for arg in c.pending.args if arg[0] == ir.POSITIONAL][position + 1 :]
    if c.argument(-1, "args") >= 0:
        args.append((ir.STAR, None, c.argument(-1, "args")))
    c.call_with(c.argument(position, keyword), args)
    c.returns(c.instance(cls or c.name))


def substitute(c: ModelCall, position: int) -> None:
    """Call a function with each match, as `re.sub` does."""
    c.call(c.argument(position, "repl"), [c.node(c.instance("re.Match"))])
    c.returns(c.instance("builtins.str"))


def cast(c: ModelCall) -> None:
    return_argument(c, 1)
    return_instances(c, weak=True)


# Functions that return their first argument: decorators, and those that hand an object on.
RETURN_ARGUMENT = (
    "functools.total_ordering abc.abstractmethod typing.overload typing.final typing.no_type_check"
    " typing.runtime_checkable copy.copy copy.deepcopy dataclasses.replace asyncio.run asyncio.create_task"
    f" asyncio.ensure_future asyncio.wait_for {IDENTITY}"
)
FIELD_SPECIFIERS = (
    "dataclasses.field attr.ib attr.attrib attr.field attrs.field msgspec.field"
    " pydantic.Field pydantic.PrivateAttr"
)
# Functions that return instances of these classes.
INSTANCES = {
    "builtins.str": (
        "os.path.join os.path.basename os.path.dirname os.path.abspath os.path.normpath os.path.realpath"
        " os.path.expanduser os.getcwd json.dumps re.Match.group pathlib.Path.read_text time.strftime"
        " io.TextIOWrapper.read io.TextIOWrapper.readline textwrap.dedent"
    ),
    "pathlib.Path": (
        "pathlib.Path.cwd pathlib.Path.home pathlib.Path.absolute pathlib.Path.expanduser"
        " pathlib.Path.joinpath pathlib.Path.resolve pathlib.Path.with_name pathlib.Path.with_suffix"
        " pathlib.Path.with_stem"
    ),
    "re.Match": "re.match re.search re.fullmatch re.Pattern.match re.Pattern.search re.Pattern.fullmatch",
    "re.Pattern": "re.compile",
    "io.TextIOWrapper": "pathlib.Path.open",
    "logging.Logger": "logging.getLogger",
}
DATE_CONSTRUCTORS = "today now utcnow fromtimestamp utcfromtimestamp fromisoformat strptime combine"
LIBRARY_MODELS: Mapping[str, Model] = {
    **dict.fromkeys(RETURN_ARGUMENT.split(), return_argument),
    **{name: partial(return_instance, cls=cls) for cls, names in INSTANCES.items() for name in names.split()},
    **{
        f"datetime.{cls}.{name}": partial(return_instance, cls=f"datetime.{cls}")
        for cls in ("date", "datetime")
        for name in DATE_CONSTRUCTORS.split()
    },
    "collections.deque": partial(copy, kind="list"),
    "collections.OrderedDict": dict_,
    "collections.defaultdict": defaultdict,
    "itertools.chain": chain,
    "itertools.chain.from_iterable": chain_from_iterable,
    "itertools.islice": partial(collect, kind="generator"),
    "itertools.cycle": partial(collect, kind="generator"),
    "itertools.takewhile": filter_,
    "itertools.dropwhile": filter_,
    "itertools.filterfalse": filter_,
    "itertools.starmap": starmap,
    "itertools.groupby": groupby,
    "itertools.zip_longest": zip_,
    "itertools.product": zip_,
    "functools.reduce": reduce,
    "functools.cached_property": property_,
    "abc.abstractproperty": property_,
    "functools.partial": partial(partial_, kind=ir.OBJ_PARTIAL),
    "functools.partialmethod": partial(partial_, kind=ir.OBJ_PARTIAL_METHOD),
    "functools.wraps": partial(wrap, kind=ir.OBJ_WRAPS, field="wrapped"),
    "functools.update_wrapper": update_wrapper,
    "functools.lru_cache": cache,
    "functools.cache": cache,
    "functools.singledispatch": partial(wrap, kind=ir.OBJ_SINGLEDISPATCH, field="any"),
    "functools.singledispatchmethod": partial(wrap, kind=ir.OBJ_SINGLEDISPATCH, field="any"),
    "typing.cast": cast,
    **{f"{name}{call}": dataclass for name in RECORD_DECORATORS for call in ("", "()")},
    **dict.fromkeys(FIELD_SPECIFIERS.split(), field),
    **{
        f"{lib}.Factory": partial(wrap, kind=ir.OBJ_DATACLASS_FIELD, field="default_factory")
        for lib in ("attr", "attrs")
    },
    "collections.namedtuple": named_tuple,
    "typing.NamedTuple": named_tuple,
    "contextlib.contextmanager": contextmanager,
    "contextlib.asynccontextmanager": contextmanager,
    "contextlib.closing": partial(wrap, kind=ir.OBJ_CLOSING, field="inner"),
    "contextlib.nullcontext": partial(wrap, kind=ir.OBJ_CLOSING, field="inner"),
    "contextlib.ExitStack.enter_context": with_,
    "contextlib.ExitStack.callback": partial(run_later, position=0),
    "importlib.import_module": import_module,
    "re.sub": partial(substitute, position=1),
    "re.Pattern.sub": partial(substitute, position=0),
    **{
        f"concurrent.futures.{pool}.submit": partial(run_later, position=0, cls="concurrent.futures.Future")
        for pool in ("ThreadPoolExecutor", "ProcessPoolExecutor")
    },
    "threading.Thread": partial(run_later, position=1, keyword="target"),
    "threading.Timer": partial(run_later, position=1, keyword="function"),
    "atexit.register": partial(run_later, position=0),
}
