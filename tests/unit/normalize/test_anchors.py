"""Where events stand in the source: the text under each, by construct, and over real packages."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from codeanatomy.file_view import BYTECODE, FileView
from codeanatomy.normalize.flow.tables import (
    FileFlow,
    analyze_flow,
    py_bc_blocks_norm_v1,
    py_bc_def_use_events_v1,
)
from support import corpus
from support.normalize_stage import file_of, source_of, sources_in

INLINES_COMPREHENSIONS = sys.version_info >= (3, 12)
# What a class is given besides its name and module.
MADE_UP = ("__firstlineno__", "__static_attributes__") if sys.version_info >= (3, 13) else ()


def events(text: str) -> set[str]:
    """`kind name text-under-it line` of every event, `-` where it has no place."""
    source = source_of(text)
    rows = py_bc_def_use_events_v1(analyze_flow(file_of(source)))
    found = set()
    for place, name in enumerate(rows["bc_var_name"]):
        start, end = rows["bstart"][place], rows["bend"][place]
        under = "-" if start is None else source.utf8[start:end].decode().partition("\n")[0]
        found.add(f"{rows['bc_event_kind'][place]} {name} [{under}] {rows['line'][place]}")
    return found


CASES = {
    "names": ("x = y\nx += 1\n", {"def x [x] 1", "use y [y] 1", "use x [x] 2", "def x [x] 2"}),
    "del": ("x = 1\ndel x\n", {"def x [x] 1", "del x [x] 2"}),
    "walrus": ("(n := 1)\n", {"def n [n] 1"}),
    "function": ("@d\ndef f(): pass\n", {"use d [d] 1", "def f [def f(): pass] 2"}),
    "class": (
        "class C: pass\n",
        {"def C [class C: pass] 1", "use __name__ [-] 1", "def __module__ [-] 1", "def __qualname__ [-] 1"}
        | {f"def {name} [-] 1" for name in MADE_UP},
    ),
    "imports": (
        "import a.b, a.c, d as e\nfrom x import (y,\n  z as w)\n",
        {"def a [a.b] 1", "def a [a.c] 1", "def e [d as e] 1", "def y [y] 2", "def w [z as w] 3"},
    ),
    "import again in a finally": (
        "try: f()\nfinally:\n import a.b, a.c\n",
        {"use f [f] 1", "def a [a.b] 3", "def a [a.c] 3"},
    ),
    "parameters": (
        "lambda a, /, b, *c, d=1, **e: 0\n",
        {"def a [a] 1", "def b [b] 1", "def c [c] 1", "def d [d] 1", "def e [e] 1"},
    ),
    "annotated parameter": (
        "def f(a: int): pass\n",
        {"use int [int] 1", "def f [def f(a: int): pass] 1"} | {"def a [a: int] 1"},
    ),
    "parameters of a lambda in a default": (
        "f = lambda *, k=lambda kw: kw, **kw: kw\n",
        {"def f [f] 1", "def k [k] 1", "def kw [kw] 1", "use kw [kw] 1"},
    ),
    "handler": (
        "try: f()\nexcept E as e: e\n",
        {"use f [f] 1", "use E [E] 2", "def e [except E as e: e] 2", "use e [e] 2"}
        | {"def e [-] 2", "del e [-] 2", "def e [-] None", "del e [-] None"},
    ),
    "handler that assigns its name last": (
        "try: f()\nexcept E as e: e = 1\n",
        {"use f [f] 1", "use E [E] 2", "def e [except E as e: e = 1] 2", "def e [e] 2"}
        | {"def e [-] 2", "del e [-] 2", "def e [-] None", "del e [-] None"},
    ),
    "sequence pattern": (
        "match z:\n case [a, *b]: pass\n",
        {"use z [z] 1", "def a [a] 2", "def b [*b] 2"},
    ),
    "mapping pattern": (
        "match z:\n case {'k': c, **d}: pass\n",
        {"use z [z] 1", "def c [c] 2", "def d [{'k': c, **d}] 2"},
    ),
    "class and as pattern": (
        "match z:\n case C(x=1) as C: pass\n",
        {"use z [z] 1", "use C [C] 2", "def C [C(x=1) as C] 2"},
    ),
    "or pattern": (
        "match z:\n case [x, 1] | (2, x): pass\n case y: pass\n",
        {"use z [z] 1", "def x [[x, 1] | (2, x)] 2", "def y [y] 3"},
    ),
    "mangled": (
        "def f():\n class C:\n  __x = 1\n  def g(self, __y): return __y, __x\n",
        {"def f [def f():] 1", "def C [class C:] 2", "use __name__ [-] 2", "def __module__ [-] 2"}
        | {"def __qualname__ [-] 2", "def _C__x [__x] 3", "def g [def g(self, __y): return __y, __x] 4"}
        | {"def self [self] 4", "def _C__y [__y] 4", "use _C__y [__y] 4", "use _C__x [__x] 4"}
        | {f"def {name} [-] {line}" for name, line in zip(MADE_UP, (2, 4), strict=False)},
    ),
    "comprehension": (
        "[i for i in s]\n",
        {"use s [s] 1", "def i [i] 1", "use i [i] 1"}
        | (set() if INLINES_COMPREHENSIONS else {"def .0 [-] None", "use .0 [-] 1"}),
    ),
    "bytes, not characters": ("é = 'ü'; ﬁ = é\n", {"def é [é] 1", "use é [é] 1", "def fi [ﬁ] 1"}),
    "global and nonlocal": (
        "def f():\n global g\n g = 1\n",
        {"def f [def f():] 1", "def g [g] 3"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_text_under_events(case: str) -> None:
    text, expected = CASES[case]
    assert events(text) == expected


def test_without_a_syntax_tree_nothing_is_anchored() -> None:
    file = file_of(source_of("def f(a):\n return a\n"))
    rows = py_bc_def_use_events_v1(
        analyze_flow(FileView("r", file.file_id, "a.py", {BYTECODE: file.row(BYTECODE)}))
    )
    assert rows["bstart"] == [None, None, None]
    assert rows["line"] == [1, None, 2]


BINDING = ("def ", "async def ", "class ", "except ", "except*", "lambda", "*", "{")


@pytest.mark.parametrize("name", ["requests", "flask"])
def test_every_place_of_a_package(name: str) -> None:
    """The text is the name, or syntax that binds it; and it lies in its unit."""
    checked = 0
    for source in sources_in(corpus.package(name)):
        flow = analyze_flow(file_of(source))
        checked += check_places(source.utf8, flow, source.path)
    assert checked > 5000


def check_places(utf8: bytes, flow: FileFlow, path: str) -> int:
    units = {unit.code_unit_id: (unit.code["bstart"], unit.code["bend"]) for unit in flow.units}
    events, blocks = py_bc_def_use_events_v1(flow), py_bc_blocks_norm_v1(flow)
    for rows in (events, blocks):
        for unit, start, end in zip(rows["code_unit_id"], rows["bstart"], rows["bend"], strict=True):
            low, high = units[unit]
            assert start is None or low is None or low <= start <= end <= high, path
    for place, name in enumerate(events["bc_var_name"]):
        start, end, line = events["bstart"][place], events["bend"][place], events["line"][place]
        if start is None:
            # From 3.12 on `super()` loads the first parameter.
            made_up = name.startswith((".", "__")) or events["bc_event_kind"][place] != "use"
            made_up |= INLINES_COMPREHENSIONS and b"super()" in utf8.splitlines()[(line or 1) - 1]
            assert made_up, (path, name, line)
            continue
        text = utf8[start:end].decode()
        assert line == utf8[:start].count(b"\n") + 1, (path, name)
        same = name.endswith(unicodedata.normalize("NFKC", text))
        if not same and events["bc_event_kind"][place] == "def":
            words = text.replace(",", " ").replace(":", " ").replace("(", " ").replace(".", " ").split()
            same = any(name.endswith(word) for word in words)
        assert same, (path, line, name, text)
    return len(events["line"])
