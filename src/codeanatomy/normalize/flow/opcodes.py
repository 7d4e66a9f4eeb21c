"""Describe the effect of bytecode instructions on control and data flow, by Python version.

Keyed by the operation's name, which is more descriptive than its number and changes less:

>>> rules = opcodes_of("3.11.7")
>>> rules.jumps_if["POP_JUMP_FORWARD_IF_FALSE"], "LOAD_CONST" in rules.never_raises
(False, True)
>>> rules.accesses["STORE_FAST"]
(Access(kind='def', space='fast'),)
>>> opcodes_of("2.7.18") is None
True

How an argument is encoded in an instruction is not needed here: the extractor resolves names and jump
targets. An operation that is not listed may raise, accesses no variable and continues with the next one; a
jump must be listed. That is why a Python that is not in KNOWN_VERSIONS is rejected instead of guessed at. Its
files get a diagnostic.

- `jumps_if`: the truth of the tested value with which a conditional jump jumps. `*_IF_NONE` tests "is None".
- `iterations` advance an iterator: one edge leads into the loop's body, the jump out of it. SEND is the
  iteration of `await` and `yield from`.
- `offset_markers` carry an offset that is no jump target: from 3.14 on the end of an `async for` refers to
  the beginning of the loop.
- `never_raises` decides whether a handler is reachable, and where other code may run in between. Ignored are
  failures that only exhausted memory, a signal or a destructor can cause, except where signals are checked
  (RESUME, JUMP_BACKWARD).
- `accesses`: how an operation accesses the variables it names. 3.13 has operations that name two. A fast slot
  that holds a cell is passed to an inner function, which is no use of its value (`LOAD_CLOSURE`, from 3.13
  on LOAD_FAST). `save` is what 3.12 does to a variable that an inlined comprehension hides; the store that
  restores it is recognised by its span (`events`).

Tests: `tests/unit/normalize/test_opcodes.py`,
`tests/unit/normalize/test_other_pythons.py` (recorded bytecode of 3.12 to 3.14).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

KNOWN_VERSIONS = ("3.11", "3.12", "3.13", "3.14")

EventKind: TypeAlias = Literal["def", "use", "del", "save"]
# Where the name is looked up: deref is a cell, of the code object itself or of an enclosing one.
Space: TypeAlias = Literal["fast", "deref", "name", "global"]


class Access(NamedTuple):
    """One access of one variable by an instruction."""

    kind: EventKind
    space: Space


class Opcodes(Struct, frozen=True):
    """The effects of the operations of one Python version."""

    returns: frozenset[str]
    raises: frozenset[str]
    jumps: frozenset[str]
    iterations: frozenset[str]
    offset_markers: frozenset[str]
    jumps_if: Mapping[str, bool]
    never_raises: frozenset[str]
    accesses: Mapping[str, tuple[Access, ...]]


RETURNS = frozenset({"RETURN_VALUE", "RETURN_CONST", "INTERPRETER_EXIT"})
RAISES = frozenset({"RAISE_VARARGS", "RERAISE"})
JUMPS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})
ITERATIONS = frozenset({"FOR_ITER", "SEND"})
OFFSET_MARKERS = frozenset({"END_ASYNC_FOR"})
JUMPS_IF: Mapping[str, bool] = {
    "JUMP_IF_FALSE_OR_POP": False,
    "JUMP_IF_TRUE_OR_POP": True,
    **{
        f"POP_JUMP_{direction}IF_{test}": truth
        for direction in ("", "FORWARD_", "BACKWARD_")
        for test, truth in (("TRUE", True), ("FALSE", False), ("NONE", True), ("NOT_NONE", False))
    },
}
NEVER_RAISES = frozenset(
    {
        "NOP",
        "POP_TOP",
        "PUSH_NULL",
        "COPY",
        "SWAP",
        "LOAD_CONST",
        "STORE_FAST",
        "LOAD_CLOSURE",
        "STORE_DEREF",
        "MAKE_CELL",
        "COPY_FREE_VARS",
        "KW_NAMES",
        "PRECALL",
        "JUMP_FORWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
        "PUSH_EXC_INFO",
        "POP_EXCEPT",
        "RETURN_VALUE",
        "RETURN_CONST",
        "RETURN_GENERATOR",
        "LOAD_ASSERTION_ERROR",
        *(name for name in JUMPS_IF if name.endswith("NONE")),
    }
)
# From 3.12 on a variable that may be unbound has an operation of its own, LOAD_FAST_CHECK.
NEVER_RAISES_312 = frozenset(
    {
        "LOAD_FAST",
        "LOAD_FAST_AND_CLEAR",
        "LOAD_FAST_BORROW",
        "LOAD_FAST_LOAD_FAST",
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
        "STORE_FAST_LOAD_FAST",
        "STORE_FAST_STORE_FAST",
        "END_FOR",
        "END_SEND",
        "POP_ITER",
        "NOT_TAKEN",
        "LOAD_SMALL_INT",
        "LOAD_COMMON_CONSTANT",
    }
)
VERBS: Mapping[str, EventKind] = {"LOAD": "use", "STORE": "def", "DELETE": "del"}
SPACES: Mapping[str, Space] = {"FAST": "fast", "DEREF": "deref", "NAME": "name", "GLOBAL": "global"}
ACCESSES: Mapping[str, tuple[Access, ...]] = {
    **{
        f"{verb}_{suffix}": (Access(kind, space),)
        for verb, kind in VERBS.items()
        for suffix, space in SPACES.items()
    },
    "LOAD_CLASSDEREF": (Access("use", "deref"),),
    "LOAD_FROM_DICT_OR_DEREF": (Access("use", "deref"),),
    "LOAD_FROM_DICT_OR_GLOBALS": (Access("use", "global"),),
    "LOAD_FAST_CHECK": (Access("use", "fast"),),
    "LOAD_FAST_AND_CLEAR": (Access("save", "fast"),),
    "LOAD_FAST_BORROW": (Access("use", "fast"),),
    "LOAD_FAST_LOAD_FAST": (Access("use", "fast"), Access("use", "fast")),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": (Access("use", "fast"), Access("use", "fast")),
    "STORE_FAST_LOAD_FAST": (Access("def", "fast"), Access("use", "fast")),
    "STORE_FAST_STORE_FAST": (Access("def", "fast"), Access("def", "fast")),
    # Names no variable, but defines `__annotations__`.
    "SETUP_ANNOTATIONS": (Access("def", "name"),),
}


@cache
def opcodes_of(python_version: str) -> Opcodes | None:
    """Return the operations of a Python version; None if the version is unknown."""
    release = ".".join(python_version.split(".")[:2])
    if release not in KNOWN_VERSIONS:
        return None
    never_raises = NEVER_RAISES if release == "3.11" else NEVER_RAISES | NEVER_RAISES_312
    return Opcodes(RETURNS, RAISES, JUMPS, ITERATIONS, OFFSET_MARKERS, JUMPS_IF, never_raises, ACCESSES)
