"""Generate random programs that always compile and terminate, and the world they run in.

    p = q = 1
    def f(a, b=1):
        global p
        for c in items():
            try:
                a = use(b)
            except E as d:
                continue
        ...

Every loop calls the world to decide whether to go on, and every use of a variable passes through it. The
world answers by a throw of the dice: true, false, or by raising E; and after so many answers it only raises
Stop. So a program cannot run for ever, whatever it catches. Tests:
`tests/unit/normalize/test_flow_oracle.py`, `tests/unit/normalize/test_flow_execution.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from random import Random
from textwrap import indent
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from support.marks import examples

Draw = Callable[[st.SearchStrategy[Any]], Any]
SHARED = ("a", "b", "c", "d")
GLOBALS = ("p", "q")
CAUGHT = ("E", "Exception", "NameError", "(E, NameError)")
HEADERS = {"function": "def", "generator": "def", "coroutine": "async def"}


class Scope(NamedTuple):
    """The scope of a statement, and what it may contain."""

    kind: str
    names: tuple[str, ...]
    in_loop: bool = False
    in_except_star: bool = False
    # The kind of a class does not include the enclosing function, whose names may be declared nonlocal.
    enclosed: bool = False

    @property
    def in_function(self) -> bool:
        return self.kind in HEADERS


class Writer:
    """Write statements; hypothesis draws every choice."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.count = 0

    def one_of(self, *choices: str) -> str:
        chosen: str = self.draw(st.sampled_from(choices))
        return chosen

    def often(self) -> bool:
        chosen: bool = self.draw(st.booleans())
        return chosen

    def body(self, scope: Scope, depth: int) -> str:
        size: int = self.draw(st.integers(1, 3))
        return "".join(self.statement(scope, depth) for _ in range(size))

    def nested(self, scope: Scope, depth: int) -> str:
        return indent(self.body(scope, depth - 1), "    ")

    def statement(self, scope: Scope, depth: int) -> str:
        kinds: list[Callable[[Scope, int], str]] = [self.simple] * 4
        if depth > 0:
            kinds += [self.if_, self.loop, self.try_, self.try_, self.with_, self.match, self.inner]
        chosen: Callable[[Scope, int], str] = self.draw(st.sampled_from(kinds))
        return chosen(scope, depth)

    def simple(self, scope: Scope, depth: int) -> str:
        v, w = self.one_of(*scope.names), self.one_of(*scope.names)
        choices = [
            f"{v} = ask()",
            f"{v} = use({w})",
            f"{v} = 1",
            f"{v} = {w}",
            f"{v} += 1",
            f"use({v})",
            f"use({v}, {w})",
            f"{v} = use({v}, {w})",
            f"del {v}",
            f"del {v}, {w}",
            f"use(({v} := ask()) and {w})",
            f"{v} = [({w}, k) for k in items() if ask() if {v}]",
            f"{v} = ({w} for k in items())",
            f"{v} = lambda k=0: use({w})",
            f"{v} = {w} if ask() else use({v})",
            f"{v}, {w} = ask(), use({v})",
            f"assert ask(), {v}",
            f"{v} = 0 if {w} is None else 1",
            "if ask(): raise E",
            f"if ask(): raise E from E({v})",
        ]
        choices += ["break", "continue"] * (scope.in_loop and not scope.in_except_star)
        choices += ["raise E"] * (scope.in_loop or depth == 0)
        choices += [f"return {v}"] * (scope.in_function and not scope.in_except_star)
        choices += [f"{v} = yield {w}", f"yield from items({w})"] * (scope.kind == "generator")
        choices += [f"{v} = await later({w})"] * (scope.kind == "coroutine")
        return self.one_of(*choices) + "\n"

    def test(self, scope: Scope) -> str:
        v = self.one_of(*scope.names)
        return self.one_of(
            "ask()",
            f"ask() and {v}",
            f"not ask() or use({v})",
            f"{v} is None",
            f"{v} is not None",
            f"not (ask() or not {v})",
            f"0 < use({v}) < 2",
        )

    def if_(self, scope: Scope, depth: int) -> str:
        text = f"if {self.test(scope)}:\n{self.nested(scope, depth)}"
        if self.often():
            text += f"elif {self.test(scope)}:\n{self.nested(scope, depth)}"
        return text + (f"else:\n{self.nested(scope, depth)}" if self.often() else "")

    def loop(self, scope: Scope, depth: int) -> str:
        v, w = self.one_of(*scope.names), self.one_of(*scope.names)
        heads = [
            f"while ask() and use({v}):",
            "while ask():",
            f"for {v} in items():",
            f"for {v}, {w} in pairs():",
        ]
        heads += [f"async for {v} in stream():"] * 2 * (scope.kind == "coroutine")
        text = self.one_of(*heads, "while True:")
        within = scope._replace(in_loop=True, in_except_star=False)
        leaving = "    if not ask(): break\n" if text == "while True:" else ""
        if scope.in_except_star:
            # No return, even in a loop.
            within = within._replace(kind="class", enclosed=scope.enclosed or scope.in_function)
        text += f"\n{leaving}{self.nested(within, depth)}"
        return text + (f"else:\n{self.nested(scope, depth)}" if self.often() else "")

    def try_(self, scope: Scope, depth: int) -> str:
        text = f"try:\n{self.nested(scope, depth)}"
        form = self.one_of("except", "finally", "both", "bare", "star")
        if form == "star":
            within = scope._replace(in_except_star=True)
            return text + f"except* E as {self.one_of(*scope.names)}:\n{self.nested(within, min(depth, 1))}"
        if form in {"except", "both"}:
            for caught in self.draw(st.lists(st.sampled_from(CAUGHT), min_size=1, max_size=2)):
                name = f" as {self.one_of(*scope.names)}" if self.often() else ""
                text += f"except {caught}{name}:\n{self.nested(scope, depth)}"
        if form == "bare":
            text += f"except:\n{self.nested(scope, depth)}"
        if form in {"except", "both"} and self.often():
            text += f"else:\n{self.nested(scope, depth)}"
        return text + (f"finally:\n{self.nested(scope, depth)}" if form in {"finally", "both"} else "")

    def with_(self, scope: Scope, depth: int) -> str:
        v, w = self.one_of(*scope.names), self.one_of(*scope.names)
        heads = ["with manager():", f"with manager() as {v}:", f"with manager() as {v}, manager({v}) as {w}:"]
        heads += [f"async with manager() as {v}:"] * 2 * (scope.kind == "coroutine")
        return f"{self.one_of(*heads)}\n{self.nested(scope, depth)}"

    def match(self, scope: Scope, depth: int) -> str:
        v = self.one_of(*scope.names)
        w = self.one_of(*(name for name in scope.names if name != v))
        patterns = [
            f"[{v}, *{w}]",
            f"[{v}, {w}]",
            f"[{v}] | ({v}, _)",
            f'{{"k": {v}, **{w}}}',
            f"Point({v}, y={w})",
            f"int({v}) as {w}",
            f"{v} if use({v})",
            f"[{v}] if ask()",
            "None",
        ]
        text = "match subject():\n"
        for pattern in self.draw(st.lists(st.sampled_from(patterns), min_size=1, max_size=3)):
            text += indent(f"case {pattern}:\n{self.nested(scope, depth)}", "    ")
        return text + (indent(f"case _:\n{self.nested(scope, depth)}", "    ") if self.often() else "")

    def inner(self, scope: Scope, depth: int) -> str:
        """A function or a class in the scope; a function is called through its name at once or later."""
        self.count += 1
        name = f"g{self.count}"
        enclosed = scope.enclosed or scope.in_function
        if self.often() and scope.kind != "class":
            body = self.nested(Scope("class", scope.names, enclosed=enclosed), depth)
            return f"class {name.upper()}:\n{body}"
        kind = self.one_of("function", "function", "generator")
        told = ""
        if enclosed:
            told += "".join(f"nonlocal {v}\n" for v in SHARED if self.often())
        told += "".join(f"global {v}\n" for v in GLOBALS if self.often())
        body = indent(told, "    ") + self.nested(Scope(kind, (*SHARED, *GLOBALS), enclosed=enclosed), depth)
        ends = "    yield 1\n" if kind == "generator" else ""
        call = f"use({name})\n" if self.often() else f"{self.one_of(*scope.names)} = {name}\n"
        return f"def {name}():\n{body}{ends}{call}"

    def module(self) -> str:
        kind = self.one_of(*HEADERS)
        told = "".join(f"    global {v}\n" for v in GLOBALS if self.often())
        body = self.nested(Scope(kind, (*SHARED, *GLOBALS)), 3)
        # Binds all shared names, so that the functions inside may call them nonlocal.
        ends = "    if ask(): c = d = 1\n" + ("    yield a\n" if kind == "generator" else "")
        begins = self.one_of("    c = d = 0\n", "    c = a\n", "")
        function = f"{HEADERS[kind]} f(a, b=1):\n{told}{begins}{body}{ends}"
        module = Scope("module", GLOBALS)
        return f"p = q = 1\n{function}{self.body(module, 1)}"


@st.composite
def programs(draw: Draw) -> str:
    return Writer(draw).module()


# The world


class E(Exception):
    """The exception that programs raise."""


class Stop(BaseException):
    """The world has no more answers."""


class Point:
    __match_args__ = ("x",)

    def __init__(self) -> None:
        self.x, self.y = 1, None


class World:
    """The names that programs use; its answers follow from a number."""

    def __init__(self, seed: int, answers: int = 60) -> None:
        self.random = Random(seed)
        self.left = answers

    def names(self) -> dict[str, Any]:
        told = ("ask", "use", "items", "pairs", "manager", "subject", "later", "stream")
        return {"E": E, "Point": Point, **{name: getattr(self, name) for name in told}}

    def number(self) -> int:
        if self.left == 0:
            raise Stop
        self.left -= 1
        answer = self.random.randrange(60)
        if answer % 12 == 0:
            raise E(answer)
        return answer

    def ask(self) -> bool:
        return self.number() % 3 != 1

    def use(self, *values: Any) -> int:
        """Look at values; functions and generators among them are run."""
        answer = self.number()
        for value in values:
            if callable(value) and not isinstance(value, type):
                self.use(value())
            elif hasattr(value, "__next__"):
                for item in value:
                    self.use(item)
        return answer

    def items(self, *_: Any) -> Iterator[int]:
        return iter(range(self.number() % 3))

    def pairs(self) -> list[tuple[int, int]]:
        return [(1, 2)] * (self.number() % 3)

    def subject(self) -> Any:
        return ([1], [1, 2], (1, 2, 3), {"k": 1}, Point(), 5, None)[self.number() % 7]

    def manager(self, *_: Any) -> Manager:
        return Manager(self)

    async def later(self, value: Any) -> Any:
        await Pause(self.number())
        return value

    async def stream(self) -> Any:
        for item in self.items():
            await Pause(item)
            yield item


class Manager:
    """A context manager that swallows some exceptions."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __enter__(self) -> int:
        return self.world.number()

    def __exit__(self, *error: object) -> bool:
        return self.world.ask()

    async def __aenter__(self) -> int:
        return self.world.number()

    async def __aexit__(self, *error: object) -> bool:
        return self.world.ask()


class Pause(NamedTuple):
    value: int

    def __await__(self) -> Generator[int, None, None]:
        yield self.value


QUICK = settings(
    max_examples=examples(150),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


LONG = settings(QUICK, max_examples=examples(3000))
