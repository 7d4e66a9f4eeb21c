"""Model pytest: marks of functions and classes, sets of parameters, expected exceptions.

    @pytest.fixture(name="x")           marks the function that it decorates, and returns it
    pytest.param(a, b, id="ab")         a tuple of a and b
    with pytest.raises(E) as info       `info.value` is an instance of E

A mark is the call `pytest.fixture(...)`; what it returns decorates and holds the mark. Without parentheses
the application of the decorator is the mark. `rules.fixtures` reads the marks.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.models.builtins import Model, return_argument, return_instance
from codeanatomy.relate.values.models.library import import_module
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.rules.objects import add_instance
from codeanatomy.relate.values.solver import Object, strong

PARAMETER_SET = "pytest.param"
FIXTURE_DECORATORS = ("pytest.fixture", "pytest.yield_fixture", "pytest_asyncio.fixture")
MARKS = ("pytest.mark.parametrize", "pytest.mark.usefixtures")
# Other marks that are called: they return what they decorate.
PLAIN_MARKS = "asyncio django_db filterwarnings skip skipif slow timeout xfail"


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


TESTING_MODELS: Mapping[str, Model] = {
    **{f"{name}{end}": mark for name in (*FIXTURE_DECORATORS, *MARKS) for end in ("", "()")},
    **{f"pytest.mark.{name}{end}": mark for name in PLAIN_MARKS.split() for end in ("", "()")},
    PARAMETER_SET: parameter_set,
    "pytest.raises": raises,
    "pytest.warns": partial(return_instance, cls="pytest.WarningsRecorder"),
    "pytest.importorskip": import_module,
}
