"""The flow tables against what really happens when programs of these tests are run.

`step()` counts its calls. Each program is run without a fault, and once for every n with `step` raising Boom
at its n-th call; after a fault it is run again in the same module. Everything that is observed must be told
by the tables, and of what the tables tell, most must be observed.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.bytecode_oracle import compiled, source_of
from oracles.flow_oracle import Rows, facts_of, rows_of
from oracles.flow_programs import LONG, QUICK, World, programs
from oracles.flow_tracer import READS_FRAMES, Trace, unexplained

pytestmark = pytest.mark.skipif(not READS_FRAMES, reason="frames are read as CPython 3.11 lays them out")

PROGRAMS = {
    "straight line": """
def main():
    x = step()
    y = x
    x = step() + y
    return x
""",
    "branches": """
def main():
    for a in (0, 1, None):
        if a:
            x = step()
        elif a is None:
            y = 1
        else:
            x = y = 2
        use(x, y)
""",
    "while": """
def main():
    n = 0
    while n < 3:
        n += 1
        if n == 1:
            continue
        last = step()
        if n == 3:
            break
    else:
        last = 0
    return last, n
""",
    "loops": """
def main():
    total = 0
    for a in range(3):
        for b in range(a):
            total = total + step()
        else:
            c = a
    return total, a, b, c
""",
    "empty loop": """
def main():
    for x in []:
        step()
    try:
        return x
    except UnboundLocalError:
        x = step()
    return x
""",
    "except": """
def main():
    x = 0
    try:
        x = step()
        x = step()
        y = step()
    except Boom as e:
        use(x, e)
        try:
            use(y)
        except NameError:
            y = 5
    use(x, y)
    use(e)
""",
    "finally": """
def work():
    x = 0
    try:
        x = step()
        y = x
        return step() + y
    except ZeroDivisionError:
        x = 7
    else:
        x = 8
    finally:
        use(x)
        step()
def main():
    try:
        work()
    except Boom:
        pass
    work()
""",
    "return in finally": """
def work(n):
    while True:
        x = n
        try:
            x = step()
            if n:
                continue
            return x
        finally:
            n = n - 1
            if n < 0:
                return x
def main():
    work(0)
    work(2)
""",
    "nested handlers": """
def main():
    x = 0
    try:
        x = 1
        try:
            x = step()
        except Boom:
            x = step()
            raise
        finally:
            y = x
            step()
    except Boom as e:
        x = e
    use(x, y)
""",
    "exception groups": """
def main():
    x = 0
    try:
        x = step()
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as e:
        x = e
        step()
    except* (KeyError, Boom) as e:
        y = x
        x = step()
    use(x)
    use(y)
""",
    "with": """
class Swallow:
    def __enter__(self):
        return step()
    def __exit__(self, *error):
        step()
        return True
def main():
    with Swallow() as a, Swallow() as b:
        x = step()
        y = x
        x = step()
    use(a)
    use(b)
    use(x)
    use(y)
""",
    "match": """
class Point:
    __match_args__ = ("x", "y")
    def __init__(self, x, y):
        self.x, self.y = x, y
def look(a):
    match a:
        case [x, y] if step():
            pass
        case [x, *y]:
            pass
        case {"k": x, **rest}:
            y = rest
        case Point(x, y=0) | Point(0, x):
            y = step()
        case int(x) | str(x) as y if x:
            pass
        case None:
            y = 1
    return x, y
def main():
    points = [Point(1, 0), Point(0, 1), Point(1, 1)]
    for a in (*points, [1, 2], [1], [1, 2, 3], {"k": 1}, {"m": 1}, 5, 0, "s", None):
        try:
            look(a)
        except UnboundLocalError:
            pass
""",
    "del": """
def main():
    for n in range(3):
        x = n
        if n:
            del x
        try:
            use(x)
            del x
        except UnboundLocalError:
            x = step()
    try:
        del x
        del x
    except NameError:
        use(step())
""",
    "walrus and short cuts": """
def main():
    for a in (0, 1, 2):
        if (x := a) and (y := step()) or (z := a):
            use(x, y)
        b = 0 < (w := a) < (v := 2)
        c = a and (u := 1) or (t := 2)
        use(c, t, b, w)
    use(v, u)
""",
    "closures": """
def counter(start):
    n = start
    def bump():
        nonlocal n
        m = n
        n = step() + m
        return n
    def reset():
        nonlocal n
        n = 0
    bump()
    return bump, reset, n
def main():
    one, again, n = counter(1)
    two, _, n = counter(n)
    one()
    two()
    again()
    one()
    one()
""",
    "deleted by a closure": """
def main():
    x = step()
    def drop():
        nonlocal x
        del x
    drop()
    try:
        use(x)
    except NameError:
        x = step()
    drop()
    try:
        drop()
    except NameError:
        x = 1
    use(x)
""",
    "cells through scopes": """
def main():
    x = 1
    class C:
        y = x
        def m(self):
            nonlocal x
            x = step()
            return [x + i for i in range(2) if x]
    use(C().m())
    use(x)
    def deep():
        def deeper():
            return lambda: (x, step())
        return deeper()
    f = deep()
    f()
    x = 3
    f()
""",
    "class with super": """
class A:
    def m(self):
        return step()
class B(A):
    z = step()
    def m(self):
        return super().m(), __class__, self.z
def main():
    B().m()
""",
    "parameters that are cells": """
def make(a, *b, c=1, **d):
    def inner(e=a):
        nonlocal c
        c = (a, b, c, d, e, step())
        return c
    a = 5
    return inner
def main():
    f = make(1, 2, k=3)
    f()
    f(4)
""",
    "globals rewritten by callees": """
count = 0
def bump():
    global count
    old = count
    count = old + step()
def read():
    return count
def main():
    global count
    count = 1
    bump()
    use(count)
    bump()
    read()
    count = 2
    use(count)
    bump()
main()
use(count)
""",
    "globals deleted by callees": """
g = 1
def drop():
    global g
    del g
def read():
    return g
def main():
    global g
    g = step()
    read()
    drop()
    try:
        read()
    except NameError:
        g = 2
    try:
        step()
        drop()
        drop()
    except NameError:
        pass
    g = 3
""",
    "class bodies and globals": """
v = 1
def main():
    global v
    class C:
        use(v)
        v = v
        v = v + step()
        del v
        w = v
    v = step()
    class D:
        if step():
            v = 2
        w = v
        del w
        try:
            w
        except NameError:
            w = v
    use(C, D)
""",
    "module level": """
try:
    a = step()
    b = step()
except Boom:
    b = 0
for i in range(2):
    c = i
    try:
        a
    except NameError:
        a = step()
use(a, b, c, i)
del a
try:
    a
except NameError:
    pass
class K:
    n: int = b
    m: int
def main():
    use(b, c)
""",
    "generator with throw": """
def gen(n):
    x = n
    while n:
        try:
            x = yield x
            y = step()
        except ValueError as e:
            y = x
            x = yield e
        finally:
            z = x
        n -= 1
    return x, y, z
def main():
    for bad in range(4):
        g = gen(2)
        try:
            value = next(g)
            for turn in range(4):
                value = g.throw(ValueError()) if turn == bad else g.send(turn)
        except StopIteration as stop:
            value = stop
        use(value)
    g = gen(1)
    next(g)
    g.close()
    try:
        gen(1).throw(ValueError)
    except ValueError:
        pass
""",
    "yield from": """
def inner():
    x = 0
    try:
        x = yield step()
        y = yield x
    except KeyError:
        return x
    return y
def outer():
    r = 1
    try:
        r = yield from inner()
        r = yield from inner()
    finally:
        s = r
    yield s
def main():
    for bad in range(5):
        g = outer()
        try:
            next(g)
            for turn in range(4):
                if turn == bad:
                    g.throw(KeyError())
                else:
                    g.send(turn)
        except (StopIteration, KeyError):
            pass
        g.close()
""",
    "generator with shared cells": """
def main():
    x = 1
    def gen():
        nonlocal x
        while x < 6:
            seen = x
            x = x + 1
            yield seen
            step()
    g, h = gen(), gen()
    use(next(g), next(h), x)
    x = x + 1
    use(next(g), x)
    for item in h:
        use(item, x)
""",
    "async by hand": """
class Wait:
    def __await__(self):
        got = yield step()
        return got
class Manager:
    async def __aenter__(self):
        return await Wait()
    async def __aexit__(self, *error):
        await Wait()
        return error[0] is not Boom
async def numbers():
    for n in range(2):
        try:
            got = await Wait()
        except ValueError:
            got = -1
        yield n, got
async def work():
    last = 0
    async for n, got in numbers():
        last = n
        async with Manager() as m:
            last = await Wait()
            extra = [k async for k in numbers()]
        use(m, got)
    else:
        end = last
    return last, extra, end
def main():
    for bad in range(5):
        c = work()
        try:
            value = c.send(None)
            for turn in range(25):
                value = c.throw(ValueError()) if turn == bad else c.send(turn)
        except (StopIteration, ValueError, UnboundLocalError):
            pass
        c.close()
""",
    "comprehensions": """
def main():
    n = 2
    a = [x * y for x in range(n) if step() for y in range(x) if y < n]
    b = {x: (z := step()) for x in a}
    c = (n + x for x in range(3))
    first = next(c)
    n = 5
    return sorted(c), first, b, z, {i for i in range(n) if i is not None}
""",
    "recursion": """
depth = 0
def walk(n, seen=None):
    global depth
    seen = [] if seen is None else seen
    def visit(m):
        nonlocal n
        seen.append(m)
        if m:
            walk(m - 1, seen)
        n = n - 1
        return n
    depth = depth + 1
    while n > 0:
        visit(n)
    depth -= step()
    return seen
def main():
    walk(2)
    use(depth)
""",
    "decorators and defaults": """
def keep(f):
    calls = 0
    def inner(*args):
        nonlocal calls
        calls += 1
        return f(*args), calls
    return inner
def main():
    @keep
    def double(n, by=step()):
        return n * by
    use(double(1), double(2))
    triple = keep(lambda n, m=double: (n, m(n), step()))
    triple(3)
""",
    "assert and raise from": """
def work(n):
    try:
        assert n, step()
        x = n
    except AssertionError as e:
        try:
            raise ValueError(n) from e
        except ValueError as f:
            x = f
            step()
    return x
def main():
    use(work(0))
    use(work(1))
    use(work(step()))
""",
}

# Numbers of variables and distances of jumps that need a prefix.
MANY = "".join(f"        v{n} = last\n        last = use(v{n}, {n})\n" for n in range(300))
PROGRAMS["a long loop"] = f"""
def main():
    last = 0
    for turn in range(2):
        try:
            step()
        except Boom:
            continue
{MANY}
        if turn:
            step()
            break
    return last, v299
"""


class Boom(Exception):
    """The fault."""


class Faults:
    """The names the programs know; `step` raises at its n-th call."""

    def __init__(self, n: int) -> None:
        self.left = n

    def step(self) -> int:
        self.left -= 1
        if self.left == 0:
            raise Boom
        return 1

    def names(self) -> dict[str, Any]:
        return {"step": self.step, "use": lambda *values: values, "Boom": Boom, "__name__": "program"}


def observed(code: CodeType) -> Trace:
    """The program with a fault at every call that it makes."""
    trace = Trace(code)
    for n in range(200):
        faults = Faults(n)
        names = faults.names()
        trace.run(lambda names=names: exec(code, names))  # type: ignore[misc]
        for _ in range(2):
            if "main" in names:
                trace.run(names["main"])
        if n and faults.left > 0:
            break
    assert trace.left > 0
    return trace


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_happens_is_told(name: str) -> None:
    source = source_of(PROGRAMS[name].lstrip("\n"))
    trace = observed(compiled(source))
    assert trace.pairs
    for rows in (facts_of(source), rows_of(source)):
        assert unexplained(trace, rows) == []


def told_and_seen(trace: Trace, rows: Rows) -> tuple[set[Any], set[Any]]:
    told = {(d, use) for _, d, use in rows["reaches"]}
    return told, told & {(pair.definition, pair.use) for pair in trace.pairs}


@pytest.mark.system
def test_most_of_what_is_told_happens() -> None:
    """Not required by soundness: it shows that the tables do not tell of everything that could be."""
    told = seen = 0
    for text in PROGRAMS.values():
        source = source_of(text.lstrip("\n"))
        mine, happened = told_and_seen(observed(compiled(source)), rows_of(source))
        told += len(mine)
        seen += len(happened)
    assert seen > 0.8 * told


def test_the_tracer_notices_what_the_tables_leave_out() -> None:
    source = source_of(PROGRAMS["closures"].lstrip("\n"))
    trace, rows = observed(compiled(source)), facts_of(source)
    for kind, *pair in sorted(rows["reaches"]):
        if tuple(pair) in {(seen.definition, seen.use) for seen in trace.pairs}:
            assert unexplained(trace, {**rows, "reaches": rows["reaches"] - {(kind, *pair)}})
    for edge in sorted(rows["edges"]):
        if edge[1] == "jump":
            assert unexplained(trace, {**rows, "edges": rows["edges"] - {edge}})


SEEDS = st.integers(0, 1_000_000)


def drive(function: Any) -> None:
    """Call it; a generator is resumed and thrown into, a coroutine too."""
    found = function(1)
    if hasattr(found, "send"):
        for turn in range(8):
            if turn % 4 == 3:
                found.throw(ValueError(turn))
            else:
                found.send(turn or None)
        found.close()


def check_random(text: str, seed: int) -> int:
    """How many pairs of definition and use were observed, in several worlds."""
    source = source_of(text)
    code = compiled(source)
    trace = Trace(code, limit=20_000)
    for world in range(seed, seed + 6):
        names = World(world).names()
        trace.run(lambda names=names: exec(code, names))  # type: ignore[misc]
        for _ in range(2):
            if "f" in names:
                names.update(World(world).names())
                trace.run(lambda names=names: drive(names["f"]))  # type: ignore[misc]
    rows = rows_of(source)
    wrong = unexplained(trace, rows)
    assert not wrong, "\n".join([text, *wrong, *unexplained(trace, facts_of(source))])
    return len(trace.pairs)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
@QUICK
@given(programs(), SEEDS)
@pytest.mark.system
def test_what_happens_in_random_programs_is_told(text: str, seed: int) -> None:
    check_random(text, seed)


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
@LONG
@given(programs(), SEEDS)
def test_what_happens_in_many_random_programs_is_told(text: str, seed: int) -> None:
    check_random(text, seed)
