"""Model functions of the standard library and pytest: which arguments they call, and what they return.

    functools.partial(f, a)   returns an object that calls f with a as first argument
    contextlib.closing(x)     `with` binds x, and calls x.close at the end
    pytest.param(a, b)        a tuple of a and b

A mark of pytest is the call `pytest.fixture(...)`; what it returns decorates and holds the mark. Without
parentheses the application of the decorator is the mark. `rules.fixtures` reads the marks.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.models.builtins import return_argument, return_instances
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.rules.containers import FACTORY
from codeanatomy.relate.values.rules.functions import remember_wrapped
from codeanatomy.relate.values.rules.imports import module
from codeanatomy.relate.values.rules.objects import add_instance
from codeanatomy.relate.values.rules.protocols import enter_context
from codeanatomy.relate.values.solver import Object, strong

# External name of a decorator that returns the function it decorates.
IDENTITY = "functools.lru_cache()"
# Class of a set of parameters.
PARAMETER_SET = "pytest.param"


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


def record_class(c: ModelCall, form: str) -> None:
    """Model a decorator that makes a constructor of the fields of a class."""
    if c.argument(0) >= 0:
        c.each(c.argument(0), _set_form, form)
        return_argument(c)
    else:
        c.returns(c.object(ir.OBJ_EXTERNAL, f"{c.name}()"))


def _set_form(c: ModelCall, cls: Object, form: str) -> None:
    if c.state.kind[cls] == ir.OBJ_CLASS:
        c.state.classes.records[strong(cls)] = form


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


def enter(c: ModelCall) -> None:
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


# -- pytest


def mark(c: ModelCall) -> None:
    """Mark a decorated function or class; without one return the mark, which decorates later."""
    c.each(c.argument(0), _add_mark)
    if c.pending.is_decorator:
        return_argument(c)
    else:
        c.returns(c.object(ir.OBJ_EXTERNAL, f"{c.name}()", c))


def _add_mark(c: ModelCall, obj: Object) -> None:
    if c.state.kind[obj] in (ir.OBJ_FUNCTION, ir.OBJ_CLASS):
        call: ModelCall = c.state.objects[c.callee].second or c
        c.state.marks.setdefault(strong(obj), {})[call] = None


def parameter_set(c: ModelCall) -> None:
    created = c.container("tuple", cls=PARAMETER_SET)
    for position, node in enumerate(c.positional):
        c.put(created, str(position), node)
    c.returns(created)


def raises(c: ModelCall) -> None:
    """Return what holds the expected exception; call the function in the second argument."""
    info = c.object(ir.OBJ_EXTERNAL_INSTANCE, "pytest.ExceptionInfo", c.pending.where)
    c.state.subscribe(c.argument(0, "expected_exception"), add_instance, c.field(info, "value"), False)
    c.call_with(c.argument(1), c.pending.args[2:])
    c.returns(info)
