"""The witness LibCST in small cases; the text under every span is what the row says.

Against CPython in `test_libcst_cpython`, against LibCST's own providers in `test_libcst_oracle`.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable
from typing import Any

import libcst as cst
import pytest

from codeanatomy.arrow import array
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.tables.extract_trees import LIBCST_FILES_V1
from codeanatomy.extract import libcst_files
from codeanatomy.extract.evidence import ExtractorResult
from codeanatomy.extract.libcst_files import VERSION, libcst_files_v1
from codeanatomy.sources.source_file import Source
from support.libcst_rows import extract_libcst, names, package, read, rows, stdlib, table, texts

# Per table: the field with an identifier or text, and the span it must be under.
SPELLED = (
    ("refs", "text", ""),
    ("defs", "name", "name_"),
    ("params", "name", ""),
    ("decorators", "text", ""),
    ("type_exprs", "text", ""),
    ("type_exprs", "name", "target_"),
    ("comments", "text", ""),
)


def check_texts(source: Source, said: ExtractorResult) -> None:
    """Every span lies in the file, and what a row spells is the text under its span."""
    utf8 = source.utf8

    def under(name: str, prefix: str) -> list[str | None]:
        spans = table(said, name, f"{prefix}bstart", f"{prefix}bend")
        return [None if start is None else utf8[start:end].decode() for start, end in spans]

    for name, field, prefix in SPELLED:
        assert under(name, prefix) == table(said, name, field), (source.path, name)
    for name, spans in (("refs", "expr_"), ("callsites", "callee_")):
        for text, dotted in zip(under(name, spans), table(said, name, "dotted"), strict=True):
            assert dotted is None or "".join(joined(str(text))) == dotted, (source.path, text)
    for text, kind in zip(under("defs", "def_"), table(said, "defs", "kind"), strict=True):
        assert str(text).startswith(
            {"function": ("def", "async"), "class": "class", "lambda": "lambda"}[kind]
        )
    for bound, (name, asname) in zip(
        under("imports", "bound_"), table(said, "imports", "name", "asname"), strict=True
    ):
        assert bound == (None if name == "*" else asname or name.partition(".")[0])
    assert all(str(text).endswith(")") for text in under("callsites", "call_"))
    assert all(str(text).endswith(("'", '"')) for text in under("docstrings", ""))


def joined(text: str) -> list[str]:
    """The names and dots in the text of an expression, without comments, parentheses and white space."""
    return re.findall(r"[\w.]+", re.sub(r"#.*", "", text))


def test_names_and_attributes() -> None:
    code = "a.b.c = d\ne[f.g] += h().i\n"
    assert rows(code, "refs", "text", "kind", "context", "dotted") == [
        ("c", "attribute", "store", "a.b.c"),
        ("b", "attribute", "load", "a.b"),
        ("a", "name", "load", "a"),
        ("d", "name", "load", "d"),
        ("e", "name", "load", "e"),
        ("g", "attribute", "load", "f.g"),
        ("f", "name", "load", "f"),
        ("i", "attribute", "load", None),
        ("h", "name", "load", "h"),
    ]
    assert texts(code, "refs") == ["c", "b", "a", "d", "e", "g", "f", "i", "h"]
    assert texts(code, "refs", "expr_")[:3] == ["a.b.c", "a.b", "a"]
    assert rows(code, "refs", "line") == [1] * 4 + [2] * 5


@pytest.mark.parametrize(
    ("code", "stored"),
    [
        ("a = b, [c, *d] = e", "a b c d"),
        ("(a), b = c", "a b"),
        ("a: int = b", "a"),
        ("a += b", "a"),
        ("(a := b)", "a"),
        ("for a, (b, c.d) in e: pass", "a b d"),
        ("[a for a, *b in c for d in e]", "a b d"),
        ("with a as b, c as (d, e[f]): pass", "b d"),
        ("try: pass\nexcept A as b: pass", "b"),
        ("try: pass\nexcept* A as b: pass", "b"),
        ("match a:\n case [b, *c, _] | {'k': d, **e} | F(g, h=i) | (j as k): pass", "b c d e g i j k"),
        ("match a:\n case b.c | None | 1: pass", ""),
        ("type A[B, *C, **D] = E", "A B C D"),
        ("def f[A: B = C](d=e): pass", "A"),
        ("async def f():\n async for a in b: pass\n async with c as d: pass", "a d"),
        ("a[b] = c", ""),
        ("import a as b\nfrom c import d", ""),
        ("def f(a, *b): pass\nclass C: pass\nlambda d: e", ""),
    ],
)
def test_what_is_stored(code: str, stored: str) -> None:
    found = rows(f"{code}\n", "refs", "text", "context")
    assert sorted(text for text, context in found if context == "store") == stored.split()
    assert {context for _, context in found} <= {"load", "store"}


def test_what_is_deleted_and_declared() -> None:
    code = "def f():\n    global a, b\n    del a, (c.d, e[g]), [h]\n"
    found = rows(code, "refs", "text", "context")
    assert [text for text, context in found if context == "declare"] == ["a", "b"]
    assert [text for text, context in found if context == "del"] == ["a", "d", "h"]
    assert [text for text, context in found if context == "load"] == ["c", "e", "g"]


def test_what_is_no_ref() -> None:
    code = "import a.b\nfrom c import d as e\ndef f(g, *h): return None\nclass C: x(y=True)\n"
    assert rows(code, "refs", "text") == ["x"]


def test_definitions() -> None:
    code = (
        "@a.b\n@(c)(\n  1)\nclass C(D):\n"
        "    async def m(self): return lambda: (yield)\n"
        "def f(x=lambda: 1):\n    # c\n    @d\n    def g(): pass\n"
    )
    assert rows(code, "defs", "kind", "name", "is_async", "container_kind", "decorators", "line") == [
        ("class", "C", False, "module", ["a.b", "(c)(\n  1)"], 4),
        ("function", "m", True, "class", [], 5),
        ("lambda", None, False, "function", [], 5),
        ("function", "f", False, "module", [], 6),
        # A default lies in the scope around the function.
        ("lambda", None, False, "module", [], 6),
        ("function", "g", False, "function", ["d"], 9),
    ]
    assert texts(code, "defs", "name_") == ["C", "m", None, "f", None, "g"]
    assert texts(code, "defs", "body_") == [
        "async def m(self): return lambda: (yield)",
        "return lambda: (yield)",
        "yield",
        "@d\n    def g(): pass",
        "1",
        "pass",
    ]
    whole = texts(code, "defs", "def_")
    assert whole[2] == "lambda: (yield)"
    assert whole[5] == "def g(): pass"
    assert texts(code, "defs", "container_") == [None, whole[0], whole[1], None, None, whole[3]]
    assert rows(code, "decorators", "index", "text", "line") == [
        (0, "a.b", 1),
        (1, "(c)(\n  1)", 2),
        (0, "d", 8),
    ]
    assert texts(code, "decorators", "owner_") == [whole[0], whole[0], whole[5]]


def test_parameters() -> None:
    code = "def f(a, b: int = 1, /, c=(2, 3), *d: str, e, f=lambda *, g: g, **h): pass\n"
    assert rows(code, "params", "name", "kind", "index") == [
        ("a", "positional_only", 0),
        ("b", "positional_only", 1),
        ("c", "positional", 2),
        ("d", "vararg", 3),
        ("e", "keyword_only", 4),
        ("f", "keyword_only", 5),
        ("h", "kwarg", 6),
        ("g", "keyword_only", 0),
    ]
    assert texts(code, "params", "default_") == [
        None,
        "1",
        "(2, 3)",
        None,
        None,
        "lambda *, g: g",
        None,
        None,
    ]
    assert texts(code, "params", "annotation_") == [None, "int", None, "str", None, None, None, None]
    whole, inner = texts(code, "defs", "def_")
    assert texts(code, "params", "owner_") == [whole] * 7 + [inner]


def test_imports() -> None:
    code = (
        "import a . b, c as d\nfrom .. e.f import (\n  g,\n  h as i,\n)\nfrom . import *; from j import k\n"
    )
    fields = ("kind", "module", "name", "asname", "alias_index", "level", "is_star", "line")
    assert rows(code, "imports", *fields) == [
        ("import", None, "a.b", None, 0, 0, False, 1),
        ("import", None, "c", "d", 1, 0, False, 1),
        ("from", "e.f", "g", None, 0, 2, False, 3),
        ("from", "e.f", "h", "i", 1, 2, False, 4),
        ("from", None, "*", None, 0, 1, True, 6),
        ("from", "j", "k", None, 0, 0, False, 6),
    ]
    assert texts(code, "imports", "alias_") == ["a . b", "c as d", "g", "h as i", "*", "k"]
    assert texts(code, "imports", "bound_") == ["a", "d", "g", "i", None, "k"]
    assert texts(code, "imports", "stmt_")[4] == "from . import *"


def test_lazy_imports_are_imports() -> None:
    code = "lazy import a.b\nlazy from c import d\nd()\n"
    assert rows(code, "imports", "kind", "name") == [("import", "a.b"), ("from", "d")]
    assert texts(code, "imports", "stmt_") == ["lazy import a.b", "lazy from c import d"]
    assert names(code) == [["c.d"]]


def test_calls() -> None:
    code = "f(a, *b, c=d, **e)\n(g.h)(())(x for x in y)\n[i][0](1)\n(lambda: 0)()\n"
    assert rows(code, "callsites", "shape", "dotted", "arg_count") == [
        ("name", "f", 4),
        ("call", None, 1),
        ("attribute", "g.h", 1),
        ("subscript", None, 1),
        ("other", None, 0),
    ]
    assert texts(code, "callsites", "callee_") == ["f", "(g.h)(())", "g.h", "[i][0]", "lambda: 0"]
    assert rows(code, "call_args", "index", "keyword", "star") == [
        (0, None, ""),
        (1, None, "*"),
        (2, "c", ""),
        (3, None, "**"),
        (0, None, ""),
        (0, None, ""),
        (0, None, ""),
    ]
    assert texts(code, "call_args") == ["a", "b", "d", "e", "x for x in y", "()", "1"]
    calls = texts(code, "callsites", "call_")
    assert texts(code, "call_args", "call_") == [*[calls[0]] * 4, calls[1], calls[2], calls[3]]


def test_comments() -> None:
    code = "#!x\n# é\nf( # a\n  # b\n)  # c😀\nif x:\n    pass\n    # d\n# e"
    assert rows(code, "comments", "text") == texts(code, "comments")
    assert rows(code, "comments", "text", "line") == [
        ("#!x", 1),
        ("# é", 2),
        ("# a", 3),
        ("# b", 4),
        ("# c😀", 5),
        ("# d", 8),
        ("# e", 9),
    ]


def test_the_manifest() -> None:
    code = "# coding: latin-1\nfrom __future__ import annotations, division\nif x:\n\ty = 'é'".encode(
        "latin-1"
    )
    assert extract_libcst(code).cells["parse_manifest"] == {
        "encoding": "iso-8859-1",
        "default_indent": "\t",
        "default_newline": "\n",
        "has_trailing_newline": False,
        "future_imports": ["annotations", "division"],
    }
    assert extract_libcst("x\r\n").cells["parse_manifest"]["default_newline"] == "\r\n"
    assert extract_libcst("x\r").cells["parse_manifest"]["has_trailing_newline"] is True
    assert extract_libcst("from .__future__ import x\n").cells["parse_manifest"]["future_imports"] == []


TRAPS: dict[str, str | bytes] = {
    "characters before it": "é = '😀'; é.é(é, ü=é)  # é\n",
    "CRLF": "class A:\r\n    def f(self, x): return x.y()  # c\r\n",
    "lone CR": "class A:\r    def f(self, x): return x.y()  # c\r",
    "mixed newlines": "a.b()\r\nc\rd()\n'''\r\n'''; e()\n",
    "form feeds": "a()\n\f\nif x:\n    b()\n    \fc()\n\f# d\n\fdef f(e): pass\n",
    "BOM": b"\xef\xbb\xbfa.b(c)  # d\n",
    "latin-1": "# coding: latin-1\né.b('ü', c)  # ö\n".encode("latin-1"),
    "cp1252": "# -*- coding: cp1252 -*-\nx('€', y)\n".encode("cp1252"),
    "ligatures": "ﬁ = 1\nobj.ﬁ(ﬁ)\ndef ﬁ(ﬁ: ﬁ): pass\n",
    "f-strings": "f'é{a.b!r:>{c}}' f\"{d['x']}\"\nf'''\n{ e() = }'''\nf()\n",
    "f-strings in f-strings": "f'{f'{a}'}'; b()\n",
    "template strings": "t'{a.b}'; c()\n",
    "continued lines": "a = \\\n  b\n\\\nc(d)\nif x \\\n  : y()\n",
    "white space that LibCST loses": "try: a\nexcept B :\n    c(d)\nexcept(E, F) as g : h\ni()\n",
    "tabs": "if a:\n\tif b:\n\t\tc()\n\t# d\n\te()\n",
    "no newline at the end": "def f(x): return x",
    "white space at the end": "f(x)\n    ",
    "comment at the end": "if x:\n    f(x)\n    # c",
    "semicolons": "a(); b(); c();\nif d: e(); f();\n",
    "decorators": "@a\n# c\n\n@b.c(d)\n# e\nclass C:\n    # f\n    @g\n    async def h(i): pass\n",
    "type parameters": "class A[T: B](C): pass\ndef f[*Ts, **P](x: T) -> T: pass\ntype X[T] = T\n",
    "star annotations": "def f(*a: *Ts): pass\nx[*y]\n",
    "strings": "x = 'a' \"b\" '''c\n''' r''; y()\n",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(trap: str) -> None:
    source, said = read(TRAPS[trap]), extract_libcst(TRAPS[trap])
    assert not said.problems
    assert table(said, "refs", "text")
    check_texts(source, said)


def test_the_text_of_a_name_is_as_written_and_its_meaning_as_compiled() -> None:
    code = "def ﬁ(): pass\nﬁ()\n"
    assert rows(code, "defs", "name") == rows(code, "callsites", "dotted") == ["ﬁ"]
    assert names(code) == names(code, "defs") == [["fi"]]


@pytest.mark.parametrize("code", ["", "\n", "# c", "# c\n", "  ", "\f\n", "\r"])
def test_a_file_with_nothing_in_it_has_empty_lists(code: str) -> None:
    said = extract_libcst(code)
    assert not said.problems
    assert all(
        cell["line"] == [] for name, cell in said.cells.items() if name not in {"parse_manifest", "comments"}
    )


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("x = 1\nprint 'é', x\n", "2:9"),
        ("é = '😀' é; b\n", "1:9"),
        ("x\rprint y\r", "2:7"),
        ("a = (\n", "2:0"),
        ("class A:\npass\n", "2:4"),
    ],
)
def test_a_syntax_error_is_placed_where_the_message_says(code: str, place: str) -> None:
    (problem,) = extract_libcst(code).problems
    assert (problem.severity, problem.stage, problem.error_type) == ("error", "parse", "ParserSyntaxError")
    assert f"error at {place}:" in problem.message
    line, chars = map(int, place.split(":"))
    text = read(code).line_text(line)
    assert text is not None
    assert (problem.line, problem.col) == (line, len(text[:chars].encode()))
    assert problem.bstart == problem.bend == read(code).line_starts[line - 1] + len(text[:chars].encode())


@pytest.mark.parametrize("code", ["x = $\n", "x = 0777\n", "if x:\n\ty\n        z\n", "x = '''\n", "a\0b\n"])
def test_an_error_of_the_tokenizer_has_no_place(code: str) -> None:
    said = extract_libcst(code)
    (problem,) = said.problems
    assert "tokenizer error" in problem.message
    assert (problem.line, problem.col, problem.bstart) == (None, None, None)
    assert said.cells == {}


@pytest.mark.parametrize(
    "code", ["'a' b'c'\n", "exec 'x' in y\n", "raise A, b\n", "x <> y\n", "def f((a, b)): pass\n"]
)
def test_what_libcst_does_not_read_has_a_problem_and_no_lists(code: str) -> None:
    said = extract_libcst(code)
    assert [problem.stage for problem in said.problems] == ["parse"]
    assert said.cells == {}


class Panic(BaseException):
    """As PyO3's exception for a panic in Rust, no `Exception`."""


def replace_parser(monkeypatch: pytest.MonkeyPatch, parse: Callable[..., Any]) -> None:
    monkeypatch.setattr(libcst_files, "parse_light", lambda *_: None)
    monkeypatch.setattr(cst, "parse_module", parse)


@pytest.mark.parametrize("error", [Panic("boom"), RecursionError("deep"), MemoryError(), ValueError("odd")])
def test_no_failure_of_the_parser_leaves_the_witness(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: Any) -> None:
        raise error

    replace_parser(monkeypatch, fail)
    (problem,) = extract_libcst("x\n").problems
    assert (problem.stage, problem.error_type) == ("parse", type(error).__name__)
    assert gc.isenabled()


def test_an_interrupt_is_none_of_its_business(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    replace_parser(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        extract_libcst("x\n")


def test_a_tree_that_does_not_fit_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    other = cst.parse_module("f(y)\n")
    replace_parser(monkeypatch, lambda *_: other)
    said = extract_libcst("f(x)\n")
    assert [(problem.stage, problem.error_type) for problem in said.problems] == [("extract", "Misplaced")]
    assert said.cells == {}


def test_long_chains_are_not_written_out() -> None:
    chain = "a" + ".b" * 200
    dotted = rows(f"{chain}\n", "refs", "dotted")
    assert dotted[0] is None
    assert dotted[-1] == "a"
    assert max(len(name) for name in dotted if name) < 200
    assert rows(f"import {chain}\n", "imports", "name") == [chain]
    assert rows(f"from {chain} import c\n", "imports", "module") == [chain]


def test_garbage_collection_stays_as_it_was() -> None:
    extract_libcst("x\n")
    assert gc.isenabled()
    gc.disable()
    try:
        extract_libcst("x\n")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_cells_are_what_the_catalogue_wants() -> None:
    said = extract_libcst(TRAPS["decorators"]).cells
    filled = {column.name: column for column in LIBCST_FILES_V1.columns if column.fields}
    assert said.keys() == filled.keys() - {"parse_errors"}
    for name, cell in said.items():
        (value,) = array(filled[name], [cell]).to_pylist()
        if name != "parse_manifest":
            assert len(value) == len(cell["line"])


def test_the_version_names_what_the_rows_depend_on() -> None:
    assert VERSION.startswith("libcst 1.")
    assert ", python 3." in VERSION
    assert ", rules " in VERSION


def check_all(sources: Any) -> int:
    checked = 0
    for source in sources:
        said = libcst_files_v1(source, ExtractOptions())
        if not said.problems:
            check_texts(source, said)
            assert said == libcst_files_v1(source, ExtractOptions())
            checked += 1
    return checked


@pytest.mark.system
def test_real_files() -> None:
    assert check_all(package("requests")) >= 15
    assert check_all(stdlib(step=100)) >= 15


@pytest.mark.system
def test_all_real_files() -> None:
    assert check_all([*package("flask"), *package("django")]) > 800
    assert check_all(stdlib()) > 1700


def cost(sources: list[Source]) -> tuple[float, float]:
    """CPU seconds of the bare parse and of the witness, garbage collection off; the lesser of two."""

    def parse(source: Source) -> None:
        with libcst_files.without_collection():
            try:
                cst.parse_module(source.text)
            except Exception:  # noqa: BLE001 - the witness meets it too
                return

    def witness(source: Source) -> None:
        libcst_files_v1(source, ExtractOptions())

    def spent(act: Any) -> float:
        start = time.process_time()
        for source in sources:
            act(source)
        return time.process_time() - start

    return min(spent(parse), spent(parse)), min(spent(witness), spent(witness))


@pytest.mark.system
def test_the_cost_is_at_most_three_bare_parses() -> None:
    bare, ours = cost(list(stdlib(step=5)))
    print(f"bare parse {bare:.1f} s, witness {ours:.1f} s, {ours / bare:.2f} times")
    assert ours <= 3.0 * bare
