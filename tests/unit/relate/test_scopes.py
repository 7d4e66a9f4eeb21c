"""What names mean: by construct, by hand; on real packages, against the compiler's instructions."""

from __future__ import annotations

import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.file_ids import FileIds, PackedIds
from codeanatomy.node_ids import binding_id, definition_key
from codeanatomy.relate.compile.bindings import add_binding_relations
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.scope_tree import build_scopes, name_scopes
from codeanatomy.relate.relation_rows import RelationRows
from codeanatomy.sources.source_file import Source
from codeanatomy.syntax_tree import Tree
from oracles.scope_oracle import Agreement, Bound, agreement, bound
from support import corpus
from support.normalize_stage import source_of, sources_in

OPTIONS = ExtractOptions()
# What the compiler inlines from 3.12 on reads and writes variables as the code around it does.
SINCE_312 = {
    "2 read global module.y": "2 read name module.y",
    "2 write deref f.b": "2 write fast f.b",
    "2 read deref f.b": "2 read fast f.b",
}
INLINES_COMPREHENSIONS = sys.version_info >= (3, 12)
SHORT = {"READS": "read", "WRITES": "write", "DELETES": "del"}


def read(code: str) -> Bound:
    found = bound(source_of(dedent(code).removeprefix("\n")))
    assert found is not None
    assert found.scopes.unmatched == ()
    return found


def homes(file: Bound) -> dict[str, str]:
    """Binding ids spelled as scope and name: `module.x`, `f.x`, `lambda.x`."""
    named = {}
    for scope in file.scopes.values():
        # A class has the cell `__class__` and no symbol of it.
        for name in scope.bound | scope.cells:
            named[binding_id(scope.key, name)] = f"{called(scope)}.{name}"
    return named


def called(scope: Scope) -> str:
    return "module" if scope.kind == "module" else scope.label[1]


def uses(code: str) -> list[str]:
    """Every touch of a name in the order of the text: `3 read fast f.x`, or `3 ? x` if nothing binds it."""
    file = read(code)
    named = homes(file)
    found = [
        (
            row["bstart"],
            at,
            f"{row['line']} {SHORT[row['relation_kind']]} {row['role']} {named[row['dst_id']]}",
        )
        for at, row in enumerate(file.rows.rows())
        if row["relation_kind"] in SHORT
    ]
    found += [(use.bstart, -1, f"{use.line} ? {use.name}") for use in file.unbound_uses]
    return [text for _, _, text in sorted(found)]


def definitions(code: str) -> list[str]:
    """What defines what: `FUNCTION 1 module.f`."""
    file = read(code)
    named = homes(file)
    rows = [row for row in file.rows.rows() if row["relation_kind"] == "DEFINES_BINDING"]
    rows.sort(key=lambda row: row["bstart"])
    return [f"{row['src_kind']} {row['line']} {named[row['dst_id']]}" for row in rows]


def resolved(code: str) -> list[str]:
    """Bindings that are those of another scope: `1 nonlocal f.x`."""
    file = read(code)
    named = homes(file)
    rows = [row for row in file.rows.rows() if row["relation_kind"] == "BINDING_RESOLVES_TO"]
    return [f"{row['line']} {row['role']} {named[row['dst_id']]}" for row in rows]


CASES: dict[str, tuple[str, list[str]]] = {
    "a global, a local, a cell and a free variable": (
        """
        n = 0
        def outer(a, b):
            return lambda: a + n + b.c
        outer
        """,
        [
            "1 write name module.n",
            "3 read deref outer.a",
            "3 read global module.n",
            "3 read deref outer.b",
            "4 read name module.outer",
        ],
    ),
    "builtins and unknown names are open": ("len(x)", ["1 ? len", "1 ? x"]),
    "the iterable of a comprehension is outside, the rest inside": (
        """
        x = y = [1]
        [x for x in x if y]
        """,
        [
            "1 write name module.x",
            "1 write name module.y",
            "2 read fast listcomp.x",
            "2 write fast listcomp.x",
            "2 read name module.x",
            "2 read global module.y",
        ],
    ),
    "equal comprehensions on a line are told apart": (
        "[a for a in [b for b in [c for c in d]]]; [e for e in f]",
        [
            "1 read fast listcomp.a",
            "1 write fast listcomp.a",
            "1 read fast listcomp.b",
            "1 write fast listcomp.b",
            "1 read fast listcomp.c",
            "1 write fast listcomp.c",
            "1 ? d",
            "1 read fast listcomp.e",
            "1 write fast listcomp.e",
            "1 ? f",
        ],
    ),
    "a dictionary's value before its key, defaults before the lambda": (
        "{(lambda k: k): (lambda v: v) for i in (lambda p=(lambda q: q): p)}",
        [
            "1 read fast lambda.k",
            "1 read fast lambda.v",
            "1 write fast dictcomp.i",
            "1 read fast lambda.q",
            "1 read fast lambda.p",
        ],
    ),
    "a walrus in a comprehension binds around it": (
        """
        def f(a):
            return [b := c for c in a], b
        [d := e for e in ()]
        """,
        [
            "2 write deref f.b",
            "2 read fast listcomp.c",
            "2 write fast listcomp.c",
            "2 read fast f.a",
            "2 read deref f.b",
            "3 write global module.d",
            "3 read fast listcomp.e",
            "3 write fast listcomp.e",
        ],
    ),
    "names of a class are not seen by its methods and comprehensions": (
        """
        x = 0
        class A:
            x = x
            def f(self): return x
            y = [x for _ in x]
        """,
        [
            "1 write name module.x",
            "3 write name A.x",
            "3 read name A.x",
            "4 read global module.x",
            "5 write name A.y",
            "5 read global module.x",
            "5 write fast listcomp._",
            "5 read name A.x",
        ],
    ),
    "a class in a function sees its variables": (
        """
        def f(a):
            class A:
                b = a
                class B(a): c = b, a
        """,
        [
            "3 write name A.b",
            "3 read deref f.a",
            "4 read deref f.a",
            "4 write name B.c",
            "4 ? b",
            "4 read deref f.a",
        ],
    ),
    "global and nonlocal": (
        """
        def f():
            global g
            g = n = 1
            def h():
                nonlocal n
                n += g
            class C:
                nonlocal n
                n = 2
        """,
        [
            "3 write global module.g",
            "3 write deref f.n",
            "6 read deref f.n",
            "6 write deref f.n",
            "6 read global module.g",
            "9 write deref f.n",
        ],
    ),
    "a global that is only declared is open": (
        """
        def f():
            global g
            return g
        """,
        ["2 ? g", "3 ? g"],
    ),
    "private names are mangled with the innermost class": (
        """
        class _A:
            __x = 1
            def f(self, __p):
                __l = __p, __x, __d__
                class B: __y = __l
            class _: __z = __x
        """,
        [
            "2 write name _A._A__x",
            "4 write fast f._A__l",
            "4 read fast f._A__p",
            "4 ? __x",
            "4 ? __d__",
            "5 write name B._B__y",
            "5 ? __l",
            "6 write name _.__z",
            "6 ? __x",
        ],
    ),
    "handlers, with, for, del and unpacking": (
        """
        def f(a):
            try: pass
            except E as e: e
            with a as (b, *c): del b, c[0]
            for d.e in a: pass
            for g, [h] in a: del (g)
        """,
        [
            "3 ? E",
            "3 write fast f.e",
            "3 read fast f.e",
            "4 read fast f.a",
            "4 write fast f.b",
            "4 write fast f.c",
            "4 del fast f.b",
            "4 read fast f.c",
            "5 ? d",
            "5 read fast f.a",
            "6 write fast f.g",
            "6 write fast f.h",
            "6 read fast f.a",
            "6 del fast f.g",
        ],
    ),
    "captures of patterns": (
        """
        def f(s):
            match s:
                case [a, *b] | {"k": a, **b}: pass
                case P(x=c) as d if c: pass
                case Q.r | _: lambda: d
        """,
        [
            "2 read fast f.s",
            "3 write fast f.a",
            "3 write fast f.b",
            "3 write fast f.a",
            "3 write fast f.b",
            "4 ? P",
            "4 write fast f.c",
            "4 write deref f.d",
            "4 read fast f.c",
            "5 ? Q",
            "5 read deref f.d",
        ],
    ),
    "decorators, defaults, annotations and bases are outside": (
        """
        a = b = c = d = 0
        @a
        def f(a: b = c, *, b=a) -> d:
            a, b, c
        @a
        class C(b, k=c): d = 0
        """,
        [
            *(f"1 write name module.{name}" for name in "abcd"),
            "2 read name module.a",
            "3 read name module.b",
            "3 read name module.c",
            "3 read name module.a",
            "3 read name module.d",
            "4 read fast f.a",
            "4 read fast f.b",
            "4 read global module.c",
            "5 read name module.a",
            "6 read name module.b",
            "6 read name module.c",
            "6 write name C.d",
        ],
    ),
    "annotations of variables": (
        """
        T = int
        class A:
            T: T
            x: T = T
            def f(self):
                y: T = x
                z: T
                return z
        """,
        [
            "1 write name module.T",
            "1 ? int",
            "3 read name A.T",
            "4 write name A.x",
            "4 read name A.T",
            "4 read name A.T",
            "6 write fast f.y",
            "6 read global module.T",
            "6 ? x",
            "7 read global module.T",
            "8 read fast f.z",
        ],
    ),
    "annotations that are never evaluated": (
        """
        from __future__ import annotations
        T = 0
        def f(a: T, *b: [x for x in (lambda T: T)]) -> U:
            c: a = (lambda: T)
            def g(d: a): pass
        class A:
            T = 1
            def h(self: T): T
        """,
        [
            "2 write name module.T",
            "3 read name module.T",
            "3 read fast listcomp.x",
            "3 write fast listcomp.x",
            "3 read fast lambda.T",
            "3 ? U",
            "4 write fast f.c",
            "4 read fast f.a",
            "4 read global module.T",
            "5 read fast f.a",
            "7 write name A.T",
            "8 read name A.T",
            "8 read global module.T",
        ],
    ),
    "async": (
        """
        async def f(a):
            async with a as b: return [c async for c in b]
            async for d in a: await d
            return (e for e in a)
        """,
        [
            "2 read fast f.a",
            "2 write fast f.b",
            "2 read fast listcomp.c",
            "2 write fast listcomp.c",
            "2 read fast f.b",
            "3 write fast f.d",
            "3 read fast f.a",
            "3 read fast f.d",
            "4 read fast genexpr.e",
            "4 write fast genexpr.e",
            "4 read fast f.a",
        ],
    ),
    "the class of a method": (
        """
        class A:
            def f(self): return __class__, super()
        """,
        ["2 read deref A.__class__", "2 ? super"],
    ),
    "the body of a class in a method is of the class around": (
        """
        class A:
            def f(self):
                class B:
                    x = __class__
                    def g(self): return __class__
        """,
        ["4 write name B.x", "4 read deref A.__class__", "5 read deref B.__class__"],
    ),
    "f-strings whose nodes have lost their places": (
        '''
        def f(a, b):
            return f"""
            {a, b} {(lambda b=a: b)} {[a for a in a] if b else {a: b}}"""
        ''',
        [
            "3 read fast f.a",
            "3 read fast f.b",
            "3 read fast f.a",
            "3 read fast lambda.b",
            "3 read fast listcomp.a",
            "3 write fast listcomp.a",
            "3 read fast f.a",
            "3 read fast f.b",
            "3 read fast f.a",
            "3 read fast f.b",
        ],
    ),
    "letters that are the same to CPython": (
        "def f(ﬁ): return fi, ſ",  # noqa: RUF001
        ["1 read fast f.fi", "1 ? s"],
    ),
    "imports": (
        """
        import os.path, sys as s
        def f():
            from a import b, c as d
            return os, s, b, d, c
        """,
        [
            "4 read global module.os",
            "4 read global module.s",
            "4 read fast f.b",
            "4 read fast f.d",
            "4 ? c",
        ],
    ),
}


@pytest.mark.parametrize("code", [code for code, _ in CASES.values()], ids=list(CASES))
def test_every_name_has_its_home(code: str) -> None:
    (expected,) = (uses for text, uses in CASES.values() if text is code)
    assert uses(code) == [SINCE_312.get(use, use) if INLINES_COMPREHENSIONS else use for use in expected]


@pytest.mark.parametrize("code", [code for code, _ in CASES.values()], ids=list(CASES))
def test_the_compiler_agrees(code: str) -> None:
    assert agreement(source_of(dedent(code).removeprefix("\n"))).disagreements == []


def test_what_defines_a_binding() -> None:
    code = """
    import os.path, sys as s
    from a import *
    @d
    class C:
        x: int
        def __m(self, *args, k=0, **kw):
            global g
            g = lambda p: 0
    def f(): pass
    def f(): pass
    """
    assert definitions(code) == [
        "IMPORT_ALIAS 1 module.os",
        "IMPORT_ALIAS 1 module.s",
        "CLASS 4 module.C",
        "NAME_REF 5 C.x",
        "FUNCTION 6 C._C__m",
        *(f"PARAMETER 6 __m.{name}" for name in ("self", "args", "k", "kw")),
        "NAME_REF 8 module.g",
        "PARAMETER 8 lambda.p",
        "FUNCTION 9 module.f",
        "FUNCTION 10 module.f",
    ]


def test_bindings_that_are_those_of_another_scope() -> None:
    code = """
    def f(a):
        n = 0
        global g, h
        g = 1
        def inner():
            nonlocal n
            return a, a, g
        class A:
            global c
            def c(self): pass
    """
    expected = ["3 global module.g", "6 nonlocal f.n", "7 free f.a", "9 global module.c"]
    assert resolved(code) == expected


def test_a_row_says_who_says_so() -> None:
    file = read("x = 1")
    row = file.rows.rows()[0]
    module = definition_key("test", "a.py")
    scope = f"scope:{module}"
    assert row["relation_kind"] == "WRITES"
    assert row["src_id"] == f"name_ref:{module}.000000"
    assert row["dst_id"] == f"binding:{module}.x"
    assert (row["confidence"], row["resolution_method"], row["rule_name"]) == (1.0, "scope", "scope")
    assert row["evidence"]["witness"] == ["symtable", "libcst"]
    assert row["evidence"]["key"] == [scope, f"span:{module}.0-1"]


def test_scopes_that_do_not_come_out_even_are_lost() -> None:
    """As of a tree and tables that were not made from one text."""
    source, other = source_of("a = lambda x: x, lambda y: y\ndef f(z): z\n"), "a = lambda x: x\ndef f(z): z\n"
    blocks = _blocks(source_of(other))
    tree = Tree(ast_files_v1(source, OPTIONS).cells["nodes"])
    scopes = build_scopes(tree, blocks)
    assert [tree.kind[node] for node in scopes.unmatched] == ["Lambda", "Lambda"]
    rows, ids = RelationRows("r", "file:f", "a.py"), FileIds(PackedIds.of_definitions("r", "a.py", {}))
    name_scopes(scopes, ids, {key: key for key in blocks["scope_key"]})
    found = add_binding_relations(rows, tree, scopes, libcst_files_v1(source, OPTIONS).cells, ids)
    assert [(use.name, use.scope and use.scope.state) for use in found] == [
        ("x", "unmatched"),
        ("y", "unmatched"),
    ]


def _blocks(source: Source) -> dict[str, list[object]]:
    return dict(symtable_files_v1(source, OPTIONS).cells["blocks"])


def test_deep_and_wide_files() -> None:
    """A long chain, many equal lambdas on a line, and lambdas in lambdas."""
    chain = "x" + "".join(f".f(lambda a{at}: a{at})" for at in range(200))
    wide = "[" + "lambda a: a, " * 1_000 + "]"
    nested = "lambda a: (" * 10 + "a" + ")" * 10
    found = agreement(source_of(f"{chain}\n{wide}\n{nested}"))
    assert found.disagreements == []
    assert found.counts["by place"] == 200 + 1 + 1_000 + 1


def total(sources: Iterable[Source]) -> Agreement:
    found = Agreement(Counter(), [])
    for source in sources:
        each = agreement(source)
        found.counts += each.counts
        found.disagreements += each.disagreements
    print(dict(found.counts), *found.disagreements[:20], sep="\n")
    return found


@pytest.mark.system
def test_flask_is_bound_as_the_compiler_does() -> None:
    found = total(sources_in(corpus.package("flask")))
    assert found.disagreements == []
    assert found.counts["by place"] > 4_000
    assert found.counts["lost scopes"] == 0


@pytest.mark.system
def test_django_is_bound_as_the_compiler_does() -> None:
    found = total(sources_in(corpus.package("django")))
    assert found.disagreements == []
    assert found.counts["by place"] > 130_000
    assert found.counts["lost scopes"] == 0


@pytest.mark.system
def test_the_standard_library_is_bound_as_the_compiler_does() -> None:
    folder = Path(sysconfig.get_paths()["stdlib"])
    sources = (each for each in sources_in(folder) if "site-packages" not in Path(each.path).parts)
    found = total(sources)
    assert found.disagreements == []
    assert found.counts["by place"] > 850_000
    assert found.counts["lost scopes"] == 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Type parameters are of Python 3.12")
def test_type_parameters() -> None:
    code = "class A[T: int](list[T]):\n    def f[U](self, x: T) -> U: return T, U\ntype X[V] = list[V]\n"
    assert agreement(source_of(code)).disagreements == []
