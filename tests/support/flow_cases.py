"""Programs of one construct each with their control flow and reaching definitions, drawn by hand.

A picture speaks of source lines, so that it can be drawn by reading the program:

    flow     "2 yes 3"    the test in line 2 is true (`no`: false), control goes on in line 3
             "2 body 3"   line 2 has a next item (`done`: no more), control goes on in line 3
             "3 to 4"     line 3 is done, plainly or by a jump
             "3 raise 5"  an exception of line 3 is handled in line 5; `exit` leaves the function
    reaches  "x 2-3"      the `x` defined in line 2 is what line 3 may use; a parameter is defined in the
                          line of its `def`; "closure x 2-3" and "global x 2-3" between scopes
    unbound  "x 3"        line 3 uses or deletes `x`, and there is a way to it on which `x` has no value

Lines count from 1. The pictures are those of 3.11; `drawn` has them of the running Python. Tests:
`tests/unit/normalize/test_flow_cases.py`, `tests/unit/graph/test_control_dependence.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

from oracles.flow_oracle import Step

ARROWS = {
    "next": "to",
    "jump": "to",
    "branch_true": "yes",
    "branch_false": "no",
    "loop_body": "body",
    "loop_exit": "done",
    "exception": "raise",
}
PASSING_ON = {"COPY", "POP_EXCEPT", "RERAISE", "POP_TOP", "SWAP"}


class Case(NamedTuple):
    code: str
    flow: str
    reaches: str
    unbound: str = ""
    of: str = "f"


def passes_on(steps: list[Step]) -> bool:
    """The block only gets rid of a handled exception, or of its name, and raises again."""
    made_up = all(step.line is None or step.opname in PASSING_ON for step in steps)
    return steps[-1].opname == "RERAISE" and made_up


CASES = {
    "straight line": Case(
        """
def f(a):
    x = a
    y = x
    return y
""",
        "2 to 3, 3 to 4, 4 to exit",
        "a 1-2, x 2-3, y 3-4",
    ),
    "if, elif, else": Case(
        """
def f(a):
    if a:
        x = 1
    elif g():
        x = 2
    else:
        x = 3
    return x
""",
        # The entry block is the `def` line and the first test.
        "2 yes 3, 2 no 4, 4 yes 5, 4 no 7, 3 to 8, 5 to 8, 7 to 8, 8 to exit",
        "a 1-2, x 3-8, x 5-8, x 7-8",
    ),
    "if without else": Case(
        """
def f(a):
    if a:
        x = 1
    return x
""",
        "2 yes 3, 2 no 4, 3 to 4, 4 to exit",
        "a 1-2, x 3-4",
        "x 4",
    ),
    "and, or, not": Case(
        """
def f(a, b, c):
    if (a and (x := b)) or not (y := c):
        return x, y
    return x, y
""",
        # Line 3 follows a true b or a true `not c`, line 4 only a false one.
        "2 yes 3, 2 no 4, 3 to exit, 4 to exit",
        "a 1-2, b 1-2, c 1-2, x 2-3, x 2-4, y 2-3, y 2-4",
        "x 3, x 4, y 3",
    ),
    "and, or as values": Case(
        """
def f(a, b, c):
    z = a and (x := b) or (y := c)
    return x, y, z
""",
        "2 yes 3, 2 no 3, 3 to exit",
        "a 1-2, b 1-2, c 1-2, x 2-3, y 2-3, z 2-3",
        "x 3, y 3",
    ),
    "ternary": Case(
        """
def f(a):
    z = (x := 1) if a else (y := 2)
    return x, y, z
""",
        "2 yes 3, 2 no 3, 3 to exit",
        "a 1-2, x 2-3, y 2-3, z 2-3",
        "x 3, y 3",
    ),
    "while with else, break and continue": Case(
        """
def f(a):
    while a:
        a = g(a)
        if a:
            break
        x = 1
        if h():
            continue
        y = x
    else:
        x = 2
    return x
""",
        "2 yes 3, 2 no 11, 3 to 4, 4 yes 5, 4 no 6, 5 to 12, 6 to 7, 7 yes 8, 7 no 9, 8 to 2, 9 to 2, "
        "11 to 12, 12 to exit",
        "a 1-2, a 1-3, a 3-2, a 3-3, a 3-4, x 6-9, x 6-12, x 11-12",
        "x 12",
    ),
    "while True": Case(
        """
def f():
    while True:
        x = g()
        if x:
            break
    return x
""",
        "2 to 3, 3 to 4, 4 yes 5, 4 no 2, 5 to 6, 6 to exit",
        "x 3-4, x 3-6",
    ),
    "for with else": Case(
        """
def f(a):
    for x in a:
        if x:
            break
    else:
        y = 1
    return y
""",
        "2 body 3, 3 yes 4, 3 no 2, 4 to 7, 2 done 6, 6 to 7, 7 to exit",
        "a 1-2, x 2-3, y 6-7",
        "y 7",
    ),
    "nested loops": Case(
        """
def f(a):
    n = 0
    for x in a:
        for y in x:
            n = n + y
        n = n + 1
    return n
""",
        "2 to 3, 3 body 4, 3 done 7, 4 body 5, 4 done 6, 5 to 4, 6 to 3, 7 to exit",
        "a 1-3, x 3-4, y 4-5, n 2-5, n 5-5, n 6-5, n 2-6, n 5-6, n 6-6, n 2-7, n 6-7",
    ),
    "a loop's variable after the loop": Case(
        """
def f(a):
    for x, *y in a:
        pass
    return x, y
""",
        "2 body 3, 3 to 2, 2 done 4, 4 to exit",
        "a 1-2, x 2-4, y 2-4",
        "x 4, y 4",
    ),
    "try, except": Case(
        """
def f():
    try:
        x = g()
        y = x
    except E:
        x = 2
    return x
""",
        # `y = x` loads x, which may raise by the rules; so its x is one the handler may see.
        "2 to 3, 3 to 4, 3 raise 5, 4 raise 5, 4 to 7, 5 yes 6, 6 to 7, 7 to exit",
        "x 3-4, x 3-7, x 6-7",
    ),
    "unbound in a handler": Case(
        """
def f():
    try:
        x = g()
        h()
    except E:
        return x
    return x
""",
        "2 to 3, 3 to 4, 3 raise 5, 4 raise 5, 4 to 7, 5 yes 6, 6 to exit, 7 to exit",
        "x 3-6, x 3-7",
        "x 6",
    ),
    "a definition that raises has not happened": Case(
        """
def f():
    x = 0
    try:
        x = g()
    except E:
        return x
    return x
""",
        "2 to 3, 3 to 4, 4 raise 5, 5 yes 6, 6 to exit, 4 to 7, 7 to exit",
        # Nothing after the store of line 4 can raise inside of the try.
        "x 2-6, x 4-7",
    ),
    "try, except, else": Case(
        """
def f():
    try:
        x = g()
    except E:
        x = 1
    except F:
        return 0
    else:
        x = h(x)
    return x
""",
        "2 to 3, 3 raise 4, 4 yes 5, 4 no 6, 6 yes 7, 3 to 9, 5 to 10, 7 to exit, 9 to 10, 10 to exit",
        "x 3-9, x 5-10, x 9-10",
    ),
    "try, finally": Case(
        """
def f():
    x = 1
    try:
        x = g()
        h()
    finally:
        k(x)
    return x
""",
        "2 to 3, 3 to 4, 4 to 5, 4 raise 7, 5 raise 7, 5 to 7, 7 to 8, 8 to exit",
        "x 2-7, x 4-7, x 4-8",
    ),
    "try, except, finally": Case(
        """
def f():
    try:
        x = g()
    except E:
        x = h()
    finally:
        y = 1
    return x, y
""",
        "2 to 3, 3 raise 4, 3 to 7, 4 yes 5, 4 raise 7, 5 raise 7, 5 to 7, 7 to 8, 8 to exit",
        "x 3-8, x 5-8, y 7-8",
    ),
    "try, except, else, finally": Case(
        """
def f():
    try:
        g()
    except E:
        x = 1
    else:
        x = h()
    finally:
        k(x)
    return x
""",
        "2 to 3, 3 raise 4, 3 to 7, 4 yes 5, 4 raise 9, 5 to 9, 7 to 9, 7 raise 9, 9 to 10, 10 to exit",
        "x 5-9, x 7-9, x 5-10, x 7-10",
        "x 9",
    ),
    "return in try and in finally": Case(
        """
def f():
    try:
        return g()
    finally:
        return 2
""",
        "2 to 3, 3 to 5, 3 raise 5, 5 to exit",
        "",
    ),
    "return through finally": Case(
        """
def f(a):
    x = 1
    for y in a:
        try:
            return y
        finally:
            x = y
    return x
""",
        "2 to 3, 3 body 4, 3 done 8, 4 to 5, 5 to 7, 5 raise 7, 7 to exit, 8 to exit",
        "a 1-3, y 3-5, y 3-7, x 2-8",
    ),
    "bare except and raise": Case(
        """
def f():
    try:
        g()
    except:
        x = 1
        raise
    return x
""",
        "2 to 3, 3 raise 4, 3 to 7, 4 to 5, 5 to 6, 7 to exit",
        "",
        "x 7",
    ),
    "nested try": Case(
        """
def f():
    x = 0
    try:
        try:
            x = g()
        except E:
            x = h()
    except F:
        return x
    return x
""",
        "2 to 3, 3 to 4, 4 to 5, 5 raise 6, 5 to 10, 6 yes 7, 6 raise 8, 7 to 10, 7 raise 8, 8 yes 9, "
        "9 to exit, 10 to exit",
        "x 2-9, x 5-10, x 7-10",
    ),
    "exception name cleanup": Case(
        """
def f():
    e = 1
    try:
        g()
    except E as e:
        h(e)
    return e
""",
        "2 to 3, 3 to 4, 4 raise 5, 4 to 7, 5 yes 6, 6 to 7, 7 to exit",
        # The name of the exception is set to None and deleted after the handler.
        "e 2-7, e 5-6",
        "e 7",
    ),
    "raise from": Case(
        """
def f():
    try:
        g()
    except E as e:
        raise F() from e
""",
        "2 to 3, 3 raise 4, 4 yes 5, 3 to exit",
        "e 4-5",
    ),
    "raise": Case(
        """
def f(a):
    if a:
        raise a
    return 1
""",
        "2 yes 3, 2 no 4, 3 raise exit, 4 to exit",
        "a 1-2, a 1-3",
    ),
    "assert": Case(
        """
def f(a):
    assert a and (x := 1), g()
    return x
""",
        "2 yes 3, 2 raise exit, 3 to exit",
        "a 1-2, x 2-3",
    ),
    "except star": Case(
        """
def f():
    x = 0
    try:
        g()
    except* E as e:
        x = e
    return x
""",
        # The part of the group that matches is None (yes, no). Code without a line, drawn as line 7, collects
        # what is to be raised again, and goes on if that is None.
        "2 to 3, 3 to 4, 4 raise 5, 4 to 7, 5 no 6, 5 yes 7, 6 to 7, 6 raise 7, 7 yes exit, 7 to exit",
        "x 2-7, e 5-6, x 6-7",
    ),
    "with": Case(
        """
def f(a):
    with a as b:
        x = g(b)
        h()
    return x
""",
        # Line 2 is also the end of the with; yes: the context manager swallows the exception.
        "2 to 3, 3 to 4, 3 raise 2, 4 raise 2, 4 to 2, 2 to 5, 2 yes 5, 5 to exit",
        "a 1-2, b 2-3, x 3-5",
        "x 5",
    ),
    "return in with": Case(
        """
def f(a):
    with a:
        return g()
""",
        "2 to 3, 3 raise 2, 3 to 2, 2 to exit, 2 yes exit",
        "a 1-2",
    ),
    "async with": Case(
        """
async def f(a):
    async with a as b:
        x = g(b)
    return x
""",
        "2 done 3, 3 raise 2, 3 to 2, 2 done 4, 2 yes 4, 4 to exit",
        "a 1-2, b 2-3, x 3-4",
        "x 4",
    ),
    "async for": Case(
        """
async def f(a):
    async for x in a:
        y = x
    return y
""",
        # An item is there when the awaiting is done; the end of the items is an exception.
        "2 done 3, 3 to 2, 2 raise 4, 4 to exit",
        "a 1-2, x 2-3, y 3-4",
        "y 4",
    ),
    "await": Case(
        """
async def f(a):
    x = await a
    return x
""",
        "2 done 3, 3 to exit",
        "a 1-2, x 2-3",
    ),
    "yield": Case(
        """
def f(a):
    try:
        x = yield a
        y = yield x
    finally:
        g(x)
    return y
""",
        "2 to 3, 3 to 4, 3 raise 6, 4 raise 6, 4 to 6, 6 to 7, 7 to exit",
        "a 1-3, x 3-4, x 3-6, y 4-7",
        "x 6",
    ),
    "yield from": Case(
        """
def f(a):
    x = yield from a
    return x
""",
        "2 done 3, 3 to exit",
        "a 1-2, x 2-3",
    ),
    "match on sequences": Case(
        """
def f(a):
    match a:
        case [x, y]:
            return x
        case [x, *y]:
            return y
    return x
""",
        "2 to 3, 3 no 5, 3 yes 4, 4 to exit, 5 no 7, 5 yes 6, 6 to exit, 7 to exit",
        # Names are bound only when the whole pattern has matched.
        "a 1-2, x 3-4, y 5-6",
        "x 7",
    ),
    "match on mappings": Case(
        """
def f(a):
    match a:
        case {"k": x, **y}:
            z = x
        case _:
            z = 1
    return z
""",
        # It is a mapping (yes, no), and what the keys lead to is None (yes, no).
        "2 to 3, 3 no 5, 3 yes 5, 3 no 4, 4 to 7, 5 to 6, 6 to 7, 7 to exit",
        "a 1-2, x 3-4, z 4-7, z 6-7",
    ),
    "match on classes, or, as": Case(
        """
def f(a):
    match a:
        case C(x, k=1) | D(k=x) as y:
            return x, y
    return a
""",
        # Line 4: k is 1 (yes), or the attributes of a D are None (no). Line 5: they are.
        "2 to 3, 3 yes 4, 3 no 4, 3 yes 5, 4 to exit, 5 to exit",
        "a 1-2, a 1-5, x 3-4, y 3-4",
    ),
    "match with a guard": Case(
        """
def f(a):
    match a:
        case [x] if x:
            return 1
        case None:
            return x
    return x
""",
        # A failed guard leaves its names bound.
        "2 to 3, 3 yes 4, 3 no 5, 4 to exit, 5 yes 6, 5 no 7, 6 to exit, 7 to exit",
        "a 1-2, x 3-3, x 3-6, x 3-7",
        "x 6, x 7",
    ),
    "comprehension with conditions": Case(
        """
def f(a, b):
    return [(x, y) for x in a if x if (y := b)]
""",
        "2 to exit",
        # The walrus fills a cell of the function; its one use is in the same code, so not between scopes.
        "a 1-2, x 2-2, .0 2-2, y 2-2, closure b 1-2",
    ),
    "a comprehension's variable and another one of its name": Case(
        """
def f(x):
    y = [x for x in x if x]
    return x, y
""",
        "2 to 3, 3 to exit",
        "x 1-2, .0 2-2, x 2-2, x 1-3, y 2-3",
    ),
    "a comprehension's cell and another variable of its name": Case(
        """
def f(x):
    y = [lambda: x for x in x]
    return x, y
""",
        "2 to 3, 3 to exit",
        # Only the comprehension's x is the lambda's.
        "x 1-2, .0 2-2, closure x 2-2, x 1-3, y 2-3",
    ),
    "a comprehension's variable and a cell of its name": Case(
        """
def f(a):
    x = 1
    b = lambda: x
    c = [x for x in a]
    return x, b, c
""",
        "2 to 3, 3 to 4, 4 to 5, 5 to exit",
        "closure x 2-3, a 1-4, .0 4-4, x 4-4, x 2-5, b 3-5, c 4-5",
    ),
    "a comprehension's variable and a free one of its name": Case(
        """
def f(x):
    x = 1
    def g(a):
        b = [x for x in a]
        return x, b
    return g
""",
        "4 to 5, 5 to exit",
        "closure x 1-5, closure x 2-5, a 3-4, .0 4-4, x 4-4, b 4-5, g 3-6",
        of="g",
    ),
    "nested comprehension": Case(
        """
def f(a):
    return {x: y for x in a for y in x}
""",
        "2 to exit",
        "a 1-2, .0 2-2, x 2-2, y 2-2",
    ),
    "generator expression": Case(
        """
def f(a, b):
    c = (b + x for x in a)
    b = 2
    return c
""",
        "2 to 3, 3 to 4, 4 to exit",
        # It runs whenever its items are requested, so both values of b may be seen.
        "a 1-2, x 2-2, .0 2-2, c 2-4, closure b 1-2, closure b 3-2",
    ),
    "lambda and its default": Case(
        """
def f(a):
    b = 1
    c = lambda x=b: (x,
                     b)
    b = 2
    return c
""",
        "2 to 3, 3 to 5, 5 to 6, 6 to exit",
        # The default is taken at once; the body runs after the def of line 5 at the earliest, but line 3 has
        # calls during which it might run as far as the analysis knows.
        "b 2-3, x 3-3, c 3-6, closure b 2-4, closure b 5-4",
    ),
    "class body": Case(
        """
x = 1
def f():
    class C:
        x = x
        y = x
    return C
""",
        "3 to 6, 6 to exit",
        # The first x of the class is the module's, the second its own.
        "C 3-6, x 4-5, global x 1-4",
        "x 4",
    ),
    "closure and nonlocal": Case(
        """
def f():
    x = 1
    def g():
        nonlocal x
        y = x
        x = 2
        return y
    g()
    return x
""",
        "2 to 3, 3 to 8, 8 to 9, 9 to exit",
        # Line 6 may have run in an earlier call when line 5 runs.
        "x 2-9, g 3-8, y 5-7, closure x 2-5, closure x 6-9, closure x 6-5",
    ),
    "a cell of a parameter": Case(
        """
def f(x):
    def g():
        return x
    x = x + 1
    return g
""",
        "2 to 4, 4 to 5, 5 to exit",
        "x 1-4, g 2-5, closure x 1-3, closure x 4-3",
    ),
    "through a scope between": Case(
        """
def f():
    x = 1
    def g():
        def h():
            nonlocal x
            x = 2
        return h
    def k():
        return x
    return g, k
""",
        "2 to 3, 3 to 8, 8 to 10, 10 to exit",
        "h 4-7, g 3-10, k 8-10, closure x 2-9, closure x 6-9",
    ),
    "same name in another function": Case(
        """
def f():
    x = 1
    return lambda: x
def g():
    x = 2
    return lambda: x
""",
        "2 to 3, 3 to exit",
        "closure x 2-3, closure x 5-6",
    ),
    "global": Case(
        """
x = 0
def f():
    global x
    y = x
    x = y
    return x
x
""",
        "4 to 5, 5 to 6, 6 to exit",
        # Nothing can come between line 5 and the use in line 6.
        "x 1-7, y 4-5, x 5-6, global x 1-4, global x 5-4, global x 5-7",
    ),
    "del": Case(
        """
def f(a):
    x = 1
    if a:
        del x
    return x
""",
        "2 to 3, 3 yes 4, 3 no 5, 4 to 5, 5 to exit",
        "a 1-3, x 2-5",
        "x 5",
    ),
    "del twice": Case(
        """
def f(x):
    del x
    del x
    return 1
""",
        "2 to 3, 3 to 4, 4 to exit",
        "",
        "x 3",
    ),
    "star-args": Case(
        """
def f(a, /, b, *c, d, **e):
    return a, b, c, d, e
""",
        "2 to exit",
        "a 1-2, b 1-2, c 1-2, d 1-2, e 1-2",
    ),
    "walrus": Case(
        """
def f(a):
    if (n := g(a)) and (m := n):
        return m
    return n, m
""",
        "2 yes 3, 2 no 4, 3 to exit, 4 to exit",
        "a 1-2, n 2-2, n 2-4, m 2-3, m 2-4",
        "m 4",
    ),
    "walrus in a comprehension": Case(
        """
def f(a):
    g(any((y := x) for x in a))
    return y
""",
        "2 to 3, 3 to exit",
        "a 1-2, .0 2-2, x 2-2, closure y 2-3",
        # It is a cell of the function that only the generator fills.
        "",
    ),
    "chained comparison": Case(
        """
def f(a, b, c):
    if a < (x := b) < (y := c):
        return x, y
    return x, y
""",
        "2 yes 3, 2 no 4, 3 to exit, 4 to exit",
        "a 1-2, b 1-2, c 1-2, x 2-3, x 2-4, y 2-3, y 2-4",
        "y 4",
    ),
    "is None": Case(
        """
def f(a, b):
    if a is None:
        return 1
    if b is not None:
        return 2
    return 3
""",
        "2 yes 3, 2 no 4, 4 yes 5, 4 no 6, 3 to exit, 5 to exit, 6 to exit",
        "a 1-2, b 1-4",
    ),
    "dead code after return": Case(
        """
def f():
    x = 1
    return x
    x = 2
    return x
""",
        "2 to 3, 3 to exit",
        "x 2-3",
    ),
    "augmented assignment": Case(
        """
def f(a):
    n = 0
    for x in a:
        n += x
    return n
""",
        "2 to 3, 3 body 4, 4 to 3, 3 done 5, 5 to exit",
        "a 1-3, x 3-4, n 2-4, n 4-4, n 2-5, n 4-5",
    ),
    "imports": Case(
        """
def f():
    import a.b
    from c import d as e
    return a, e
""",
        "2 to 3, 3 to 4, 4 to exit",
        "a 2-4, e 3-4",
    ),
    "continue in finally": Case(
        """
def f(a):
    for x in a:
        try:
            y = g(x)
        finally:
            continue
    return y
""",
        "2 body 3, 2 done 7, 3 to 4, 4 raise 6, 4 to 6, 6 to 2, 7 to exit",
        "a 1-2, x 2-4, y 4-7",
        "y 7",
    ),
    "a del that raises has not happened": Case(
        """
def f(x):
    try:
        del x
        x = 1
    except E:
        return x
    return x
""",
        # Only the del may raise, and then x is still there.
        "2 to 3, 3 to 4, 3 raise 5, 4 to 7, 5 yes 6, 6 to exit, 7 to exit",
        "x 1-6, x 4-7",
    ),
    "a store of a global that raises has not happened": Case(
        """
x = 0
def f():
    global x
    try:
        x = 1
    except E:
        return x
    return x
""",
        "4 to 5, 5 raise 6, 5 to 8, 6 yes 7, 7 to exit, 8 to exit",
        # During the store and in line 6 other code may run; after the store and up to line 8 it may not.
        "x 5-8, global x 1-7, global x 5-7",
    ),
    "overwritten before anybody could look": Case(
        """
def f():
    x = 1
    x = 2
    return lambda: x
""",
        "2 to 3, 3 to 4, 4 to exit",
        "closure x 3-4",
    ),
    "a handler of nothing": Case(
        """
def f():
    x = 0
    try:
        x = 1
    except E:
        x = 2
    return lambda: x
""",
        # Neither a constant nor a cell's store raises, so that nothing leads to line 5.
        "2 to 3, 3 to 4, 4 to 7, 5 yes 6, 6 to 7, 7 to exit",
        "closure x 4-7",
    ),
    "class body with calls": Case(
        """
x = 1
def f():
    class C:
        if g():
            x = 2
        y = x
        x = 3
        g()
        y = x
    return C
""",
        "3 to 10, 10 to exit",
        # What g does to the module's x is of no concern to line 9: the class has its own.
        "C 3-10, x 5-6, x 7-9, global x 1-6",
        "x 6",
    ),
    "deleted by another function": Case(
        """
def f():
    x = 1
    y = x
    def g():
        nonlocal x
        del x
    g()
    y = x
    x = 2
    return x
""",
        "2 to 3, 3 to 4, 4 to 7, 7 to 8, 8 to 9, 9 to 10, 10 to exit",
        # Nothing runs between the def and the use of lines 2 and 3, or 9 and 10.
        "x 2-3, x 2-8, g 4-7, x 9-10",
        "x 8",
    ),
    "yield and the state before it": Case(
        """
def f():
    x = 1
    try:
        x = yield
        x = 2
    except E:
        pass
    return x
""",
        "2 to 3, 3 to 4, 4 to 5, 4 raise 6, 5 to 8, 6 yes 7, 7 to 8, 8 to exit",
        "x 2-8, x 5-8",
    ),
    "annotations of a class": Case(
        """
def f():
    class C:
        x: int = 1
        y: x
    return C
""",
        "2 to 5, 5 to exit",
        "__annotations__ 2-3, __annotations__ 2-4, C 2-5, x 3-4",
    ),
}


class Change(NamedTuple):
    """What another Python does besides, and what it does not do."""

    flow: str = ""
    reaches: str = ""
    not_flow: str = ""
    not_reaches: str = ""


# A value that is thrown into an awaited generator may end it: the waiting is over, too.
THROWN = Change(flow="2 raise 3")
# The loop of a comprehension runs in the function: the end of its items is the end of the line.
INLINED = Change(flow="2 done 3", not_flow="2 to 3", not_reaches=".0 2-2")
RETURNED = Change(flow="2 done exit", not_flow="2 to exit", not_reaches=".0 2-2")
SINCE_312: Mapping[str, Change] = {
    # A load of a variable that has a value never raises.
    "try, except": Change(not_flow="4 raise 5"),
    "return through finally": Change(not_flow="5 raise 7"),
    "except star": Change(not_flow="6 raise 7"),
    "async with": Change(flow="2 raise 3, 2 raise 4"),
    "async for": THROWN,
    "await": THROWN,
    "yield from": THROWN,
    "comprehension with conditions": RETURNED._replace(reaches="b 1-2", not_reaches=".0 2-2, closure b 1-2"),
    "nested comprehension": RETURNED,
    "a comprehension's variable and another one of its name": INLINED,
    "a comprehension's cell and another variable of its name": INLINED,
    "a comprehension's variable and a cell of its name": Change(
        flow="4 done 5", not_flow="4 to 5", not_reaches=".0 4-4"
    ),
    "a comprehension's variable and a free one of its name": Change(
        flow="4 done 5", not_flow="4 to 5", not_reaches=".0 4-4"
    ),
}
ONLY_312: Mapping[str, Change] = {
    # The jump back from a handler, which is at the end of the code, checks for signals.
    "try, except, else, finally": Change(flow="5 raise 9"),
}


def drawn(name: str) -> Case:
    """Return a case as the running Python compiles it."""
    case = CASES[name]
    changes = [SINCE_312.get(name)] if sys.version_info >= (3, 12) else []
    changes += [ONLY_312.get(name)] if sys.version_info[:2] == (3, 12) else []
    for change in changes:
        if change is not None:
            flow = parts(case.flow) - parts(change.not_flow) | parts(change.flow)
            reaches = parts(case.reaches) - parts(change.not_reaches) | parts(change.reaches)
            case = case._replace(flow=", ".join(flow), reaches=", ".join(reaches))
    return case


def parts(text: str) -> set[str]:
    return {part.strip() for part in text.replace("\n", ",").split(",") if part.strip()}
