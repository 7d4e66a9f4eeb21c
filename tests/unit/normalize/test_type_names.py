"""What names in types mean, by the bindings of their file."""

from __future__ import annotations

import pytest

from codeanatomy.file_view import LIBCST, FileView
from codeanatomy.normalize.types.names import ResolvedName, TypeScope, TypeScopes
from codeanatomy.normalize.types.tables import type_expressions, type_exprs_norm_v1, type_nodes_v1
from support.libcst_rows import extract_libcst


def file_of(code: str, path: str = "pkg/a.py") -> FileView:
    said = extract_libcst(code)
    assert not said.problems, said.problems
    return FileView("repo", path, path, {LIBCST: said.cells})


def meaning(code: str, name: str, path: str = "pkg/a.py") -> ResolvedName:
    """What a name means in the module."""
    return TypeScopes(file_of(code, path)).module.resolve(name)


def reprs(code: str) -> list[str]:
    """The normal forms of the types in a file; of those at the top, names that were not found have a `?`."""
    found = type_expressions(file_of(code))
    nodes = type_nodes_v1(found)
    certain = {
        expr: qualified
        for expr, index, qualified in zip(
            nodes["expr_id"], nodes["node_index"], nodes["is_qualified"], strict=True
        )
        if index == 0
    }
    rows = type_exprs_norm_v1(found)
    return [
        text if certain[expr] else f"{text}?"
        for expr, text in zip(rows["expr_id"], rows["type_repr"], strict=True)
    ]


@pytest.mark.parametrize(
    ("code", "name", "text"),
    [
        ("import numpy", "numpy.ndarray", "numpy.ndarray"),
        ("import numpy as np", "np.ndarray", "numpy.ndarray"),
        ("import a.b", "a.b.C", "a.b.C"),
        ("import a.b", "a.C", "a.C"),
        ("import a.b, a.c, a", "a.C", "a.C"),
        ("import a.b as c", "c.D", "a.b.D"),
        ("from a.b import C", "C", "a.b.C"),
        ("from a.b import C as D", "D.E", "a.b.C.E"),
        ("from . import models", "models.User", ".models.User"),
        ("from .models import User", "User", ".models.User"),
        ("from ... import x as y", "y", "...x"),
        ("from ..p.q import x", "x", "..p.q.x"),
        ("if TYPE_CHECKING:\n    from a import C", "C", "a.C"),
        ("try:\n    from a import C\nexcept ImportError:\n    from a import C", "C", "a.C"),
        ("import builtins", "builtins.int", "builtins.int"),
        ("from ﬁle import ﬁrst", "first", "file.first"),
        ("def f():\n    global int\n    from a import int", "int", "a.int"),
        ("", "int", "builtins.int"),
        ("", "str.join", "builtins.str.join"),
        ("from x import *", "int", "builtins.int"),
        ("def f():\n    int = 1", "int", "builtins.int"),
        ("def f(int): pass", "int", "builtins.int"),
        ("class A:\n    int = 1", "int", "builtins.int"),
        ("class A[int]: pass", "int", "builtins.int"),
        ("def f[int](a: int): pass", "int", "builtins.int"),
        ("x = lambda int: (y := int)", "int", "builtins.int"),
    ],
)
def test_names_that_are_found(code: str, name: str, text: str) -> None:
    found = meaning(code, name)
    assert (found.text, found.is_qualified) == (text, True)
    assert found.shown == text.removeprefix("builtins.")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("", "Unknown"),
        ("", "__name__"),
        ("from x import *", "Foo"),
        ("class C: pass", "C"),
        ("def C(): pass", "C"),
        ("C = 1", "C"),
        ("for C in x: pass", "C"),
        ("with x as C: pass", "C"),
        ("try: pass\nexcept E as C: pass", "C"),
        ("match x:\n    case C: pass", "C"),
        ("type C = int", "C"),
        ("x = (C := 1)", "C"),
        ("int: str = 1", "int"),
        ("import a as C, b as C", "C"),
        ("try:\n    from a import C\nexcept ImportError:\n    from b import C", "C"),
        ("try:\n    from a import C\nexcept ImportError:\n    class C: pass", "C"),
        ("try:\n    from a import C\nexcept ImportError:\n    C = None", "C.D"),
        ("from a import C\ndef f():\n    global C\n    C = 1", "C"),
        ("def f():\n    from a import C", "C"),
        ("class A:\n    from a import C", "C"),
        (f"from {'a' * 300} import C", "C"),
        ("from m import X\ndef f(a=(X := 1)): pass", "X"),
    ],
)
def test_names_that_stay_as_written(code: str, name: str) -> None:
    found = meaning(code, name)
    assert (found.text, found.shown, found.is_qualified) == (name, name, False)


@pytest.mark.parametrize(
    ("code", "name", "form"),
    [
        ("from typing import Optional", "Optional", "optional"),
        ("from typing import Optional as Opt", "Opt", "optional"),
        ("import typing as t", "t.Union", "union"),
        ("import typing_extensions", "typing_extensions.Literal", "literal"),
        ("from collections.abc import Callable", "Callable", "callable"),
        ("import types", "types.NoneType", "none"),
        ("", "Optional", "optional"),
        ("", "typing.Optional", "optional"),
        ("from typing import *", "Union", "union"),
        (
            "try:\n    from typing import Literal\nexcept E:\n    from typing_extensions import Literal",
            "Literal",
            "literal",
        ),
        ("class Optional: pass", "Optional", None),
        ("from compat import Optional", "Optional", None),
        ("from . import typing", "typing.Optional", None),
        ("try:\n    from typing import Literal\nexcept E:\n    Literal = None", "Literal", None),
        ("try:\n    from typing import Union\nexcept E:\n    from compat import Union", "Union", None),
        ("", "compat.Optional", None),
        ("", "NoneType", None),
    ],
)
def test_special_forms(code: str, name: str, form: str | None) -> None:
    assert meaning(code, name).form == form


SCOPES = """
from m import A, B, C
a: A
class K:
    from k import B
    C = 1
    b: B
    c: C
    def method(self, x: B, y: 'C') -> A:
        z: B
        from f import A
        self.w: A
        def inner(x: A, y: B): pass
    class Inner:
        d: B
        def method(self) -> B: pass
    def decorated(self, x: Inner): pass
d: B
def f(A, x: A) -> B:
    A: A
    global B
    B: B
def g[A](x: A) -> B:
    y: A
class G[B](A):
    x: B
    def h[C](self, y: C, z: B): pass
e: int
"""


def test_scopes() -> None:
    assert reprs(SCOPES) == [
        "m.A",  # a
        "k.B",  # b
        "C?",  # c
        "k.B",  # method: x
        "C?",  # y
        "m.A",  # result
        "B?",  # z: the function does not see the class, and `f` changes the module's B
        "f.A",  # self.w
        "f.A",  # inner: x
        "B?",  # y
        "B?",  # Inner: d
        "B?",  # Inner.method
        "Inner?",
        "B?",  # d
        "m.A",  # f: x
        "B?",
        "A?",  # the parameter
        "B?",  # the module's
        "A?",  # g: x, the type parameter
        "B?",
        "A?",  # y
        "B?",  # G: x, the type parameter
        "C?",
        "B?",
        "int",
    ]


def test_a_comprehension_is_thought_to_bind_around_it() -> None:
    assert not meaning("from a import C\nx = [C for C in y]", "C").is_qualified


def test_a_comment_after_the_last_statement_is_in_its_function() -> None:
    code = "def f():\n    from a import C\n    x = 1  # type: C\n"
    assert reprs(code) == ["a.C"]


# Identity.


def identity(code: str, name: str, path: str) -> str:
    return meaning(code, name, path).identity


def test_a_relative_import_is_seen_from_its_folder() -> None:
    one = identity("from .models import User", "User", "pkg/a.py")
    assert one == identity("from .models import User as U", "U", "pkg/__init__.py")
    assert one == identity("from ..models import User", "User", "pkg/sub/b.py")
    assert one == identity("from .. import models", "models.User", "pkg/sub/b.py")
    assert one != identity("from .models import User", "User", "other/a.py")
    assert one != identity("from .models import User", "User", "a.py")
    assert one != identity("from models import User", "User", "pkg/a.py")


def test_a_relative_import_may_leave_the_repository() -> None:
    code = "from ...x import y"
    assert identity(code, "y", "a.py") == identity(code, "y", "b.py") != identity(code, "y", "pkg/a.py")


def test_local_names_belong_to_their_file_and_scope() -> None:
    inner = "    class Foo: pass\n    x: Foo\n"
    code = f"class Foo: pass\ndef f():\n{inner}class K:\n{inner}x: Foo\n"
    types = type_exprs_norm_v1(type_expressions(file_of(code)))
    again = type_exprs_norm_v1(type_expressions(file_of(f"# moved\n{code}")))
    other = type_exprs_norm_v1(type_expressions(file_of(code, "pkg/b.py")))
    assert types["type_repr"] == ["Foo"] * 3
    assert len({*types["type_id"], *other["type_id"]}) == 6
    assert types["type_id"] == again["type_id"]


def test_builtins_and_locals_of_one_name_differ() -> None:
    assert identity("", "int", "a.py") != identity("class int: pass", "int", "a.py")
    assert identity("import int", "int", "a.py") != identity("", "int", "a.py")


def test_a_scope_without_bindings() -> None:
    scope = TypeScope("module", "a.py")
    assert scope.resolve("int").text == "builtins.int"
    assert scope.resolve("x.y") == ResolvedName("x.y", False, "x.y", scope.local_identity("x.y"))


def test_a_nonlocal_name_has_two_meanings_in_its_function() -> None:
    code = "def f():\n from m import X\n def g(a: X):\n  nonlocal X\n  X = 1\n  b: X\n"
    assert reprs(code) == ["X?", "X?"]


def test_a_name_that_the_compiler_mangles_stays_as_written() -> None:
    code = "from m import __X\nclass K:\n y: __X\n def f(self, a: __X): pass\nz: __X\n"
    assert reprs(code) == ["__X?", "__X?", "m.__X"]
