# ruff: noqa: RUF001  # Characters that look alike are what some cases are about.
"""Rows of syntax trees against `ast` itself, the text under the spans, the compiler and the tokenizer."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import sysconfig
import tokenize
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any
from unicodedata import normalize

import pytest

from codeanatomy.arrow import array
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.tables.extract_cpython import AST_FILES_V1
from codeanatomy.extract import ast_files
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.sources.source_file import Source, decode
from support import corpus
from support.folders import TESTS

OPTIONS = ExtractOptions()
STDLIB = Path(sysconfig.get_paths()["stdlib"])
LISTS = [column for column in AST_FILES_V1.columns if column.array and column.name != "errors"]
OLD_FSTRINGS = sys.version_info < (3, 12)
DEFINITION = r"((async[\s\\]+)?def|class)[\s\\]+"
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


def source_of(code: str | bytes) -> Source:
    source = decode("a.py", code.encode() if isinstance(code, str) else code)
    assert isinstance(source, Source)
    return source


def rows(cells: Any, column: str) -> list[dict[str, Any]]:
    columns = cells[column]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def told(code: str | bytes, column: str) -> list[dict[str, Any]]:
    return rows(ast_files_v1(source_of(code), OPTIONS).cells, column)


def under(source: Source, row: dict[str, Any], prefix: str = "") -> str:
    return source.utf8[row[f"{prefix}bstart"] : row[f"{prefix}bend"]].decode()


# The whole of a file


def check(source: Source) -> Counter[str]:
    """Everything that is said of a file; counts of what was compared."""
    said = ast_files_v1(source, OPTIONS)
    try:
        tree = ast.parse(source.raw)
    except SyntaxError as error:
        assert said.cells == {}
        problem = said.problems[0]
        expected = ("error", error.lineno, error.msg)
        assert (problem.severity, problem.line, problem.message) == expected
        return Counter(broken=1)
    for column in LISTS:
        array(column, [said.cells.get(column.name)]).validate(full=True)
    nodes = check_tree(tree, rows(said.cells, "nodes"))
    counts = Counter(files=1, nodes=len(nodes), problems=len(said.problems))
    counts += check_places(source, nodes)
    counts += check_defs(source, nodes, rows(said.cells, "defs"))
    counts += check_calls(source, nodes, rows(said.cells, "calls"))
    counts += check_imports(source, nodes, rows(said.cells, "imports"))
    check_docstrings(source, nodes, rows(said.cells, "docstrings"))
    if "type_ignores" in said.cells:
        assert [row["line"] for row in rows(said.cells, "type_ignores")] == ignored_lines(source)
    return counts


Nodes = list[tuple[dict[str, Any], Any]]


def check_tree(tree: ast.Module, told_nodes: list[dict[str, Any]]) -> Nodes:
    """Follow parent, slot and idx from the root: they lead to each node of the tree once, in preorder."""
    found: list[Any] = [tree]
    assert told_nodes[0]["parent_ast_id"] is None
    for row in told_nodes[1:]:
        held = getattr(found[row["parent_ast_id"]], row["slot"])
        found.append(held if row["idx"] is None else held[row["idx"]])
    assert len({(row["parent_ast_id"], row["slot"], row["idx"]) for row in told_nodes}) == len(told_nodes)
    assert [row["ast_id"] for row in told_nodes] == list(range(len(told_nodes)))
    assert all(one is other for one, other in zip(found, preorder(tree), strict=True))
    kinds = Counter(row["kind"] for row in told_nodes)
    assert kinds == Counter(type(node).__name__ for node in ast.walk(tree))
    return list(zip(told_nodes, found, strict=True))


def preorder(tree: ast.AST) -> Iterator[ast.AST]:
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


def check_places(source: Source, nodes: Nodes) -> Counter[str]:
    """What the text under a span must be, by the kind of the node."""
    counts: Counter[str] = Counter()
    for row, node in nodes:
        assert (row["bstart"] is None) == (row["bend"] is None) == (row["line"] is None)
        if not hasattr(node, "lineno"):
            whole = (0, len(source.utf8), 1) if isinstance(node, ast.Module) else (None, None, None)
            assert (row["bstart"], row["bend"], row["line"]) == whole
        elif row["bstart"] is None:
            counts["unplaced"] += 1
        else:
            assert row["line"] == node.lineno == source.line_of(row["bstart"])
            counts["placed"] += 1
            above, holder = nodes[row["parent_ast_id"]]
            if isinstance(holder, ast.JoinedStr) or row["slot"] == "format_spec":
                # Before Python 3.12 these have the span of the string, or of the literals up to their own.
                counts["pieces"] += 1
                continue
            counts["read"] += reads_as(under(source, row), row, node)
            if above["bstart"] is not None and row["slot"] != "decorator_list":
                assert above["bstart"] <= row["bstart"] <= row["bend"] <= above["bend"], row
    return counts


def reads_as(text: str, row: dict[str, Any], node: Any) -> bool:  # noqa: C901
    """Whether there is a rule for the text of such a node; it is asserted."""
    plain = normalize("NFKC", text)
    match node:
        case ast.Name(id=name):
            assert plain == name == row["name"]
        case ast.Attribute(attr=name):
            assert plain.endswith(name)
            assert name == row["name"]
        case ast.arg(arg=name):
            assert re.match(rf"{name}\b", plain)
            assert name == row["name"]
        case ast.keyword(arg=name):
            assert plain.startswith("**") if name is None else re.match(rf"{name}[\s\\]*=", plain)
            assert name == row["name"]
        case ast.alias(name=name, asname=asname):
            spelled = re.sub(r"#.*|[\s\\]", " ", plain).split(" as ")
            assert [part.replace(" ", "") for part in spelled] == [name, asname][: len(spelled)]
            assert (len(spelled) == 2) == (asname is not None)
            assert name == row["name"]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            assert re.match(rf"{DEFINITION}{name}\b", plain)
            assert name == row["name"]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            assert re.search(rf"\b{name}\b", plain)
            assert name == row["name"]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            assert re.split(r"[\s\\,]+", plain)[1:] == names == row["name"].split(", ")
        case ast.Constant(value=value):
            # By spelling, because 1 == True and nan != nan.
            assert repr(ast.literal_eval(f"({text}\n)")) == repr(value)
            assert repr(value).startswith(row["value"])
        case ast.stmt():
            assert not text.startswith((" ", "\t", "\f", "#", "@"))
            return False
        case _:
            return False
    return True


def check_defs(source: Source, nodes: Nodes, defs: list[dict[str, Any]]) -> Counter[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    assert [row["ast_id"] for row in defs] == [
        row["ast_id"] for row, node in nodes if isinstance(node, kinds)
    ]
    for row in defs:
        of, node = nodes[row["ast_id"]]
        assert (row["kind"], row["name"]) == (type(node).__name__, getattr(node, "name", None))
        assert [row[field] for field in PLACE] == [of[field] for field in PLACE]
        assert row["qualname"].split(".")[-1] == getattr(node, "name", "<lambda>")
    # Type parameters have code of their own, which is no definition.
    has_type_scopes = any(row["slot"] == "type_params" or row["kind"] == "TypeAlias" for row, _ in nodes)
    compiled = set() if has_type_scopes else compiled_qualnames(source)
    known = {row["qualname"] for row in defs}
    if any(isinstance(node, ast.Global) for _, node in nodes):
        # What is declared global begins a path of its own.
        known |= {name.split(".", cut)[-1] for name in known for cut in range(name.count(".") + 1)}
    # Not all definitions are compiled: `if 0:`.
    assert compiled - known == set()
    return Counter(defs=len(defs), compiled=len(compiled), uncompared=len(defs) * has_type_scopes)


PLACE = ("bstart", "bend", "line")


def compiled_qualnames(source: Source) -> set[str]:
    """Of all code objects but comprehensions, without `<locals>`."""
    try:
        stack = [compile(source.raw, "a.py", "exec", dont_inherit=True)]
    # From 3.13 on a docstring with a lone surrogate is an encoding error.
    except (SyntaxError, RecursionError, UnicodeEncodeError):
        return set()
    found = set()
    while stack:
        code = stack.pop()
        stack.extend(const for const in code.co_consts if isinstance(const, CodeType))
        path = code.co_qualname.split(".")
        if path[-1] not in {"<module>", *COMPREHENSIONS}:
            found.add(".".join(part for part in path if part not in {"<locals>", *COMPREHENSIONS}))
    return found


def check_calls(source: Source, nodes: Nodes, calls: list[dict[str, Any]]) -> Counter[str]:
    assert [row["ast_id"] for row in calls] == [
        row["ast_id"] for row, node in nodes if isinstance(node, ast.Call)
    ]
    for row in calls:
        of, node = nodes[row["ast_id"]]
        assert nodes[row["func_ast_id"]][1] is node.func
        match node.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                assert row["func_name"] == name
            case _:
                assert row["func_name"] is None
        assert row["func_kind"] == type(node.func).__name__
        assert row["arg_count"] == len(node.args)
        assert row["starred_count"] == sum(isinstance(arg, ast.Starred) for arg in node.args)
        assert row["keyword_count"] == len(node.keywords)
        assert row["kw_star_count"] == sum(keyword.arg is None for keyword in node.keywords)
        assert [row[field] for field in PLACE] == [of[field] for field in PLACE]
        if row["bstart"] is not None:
            again = ast.parse(f"({under(source, row)}\n)", mode="eval").body
            assert ast.dump(again) == ast.dump(node)
    return Counter(calls=len(calls))


def check_imports(source: Source, nodes: Nodes, imports: list[dict[str, Any]]) -> Counter[str]:
    expected = [
        (type(node).__name__, getattr(node, "module", None), getattr(node, "level", 0), at, alias, of)
        for of, node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for at, alias in enumerate(node.names)
    ]
    for row, (kind, module, level, at, alias, of) in zip(imports, expected, strict=True):
        assert nodes[row["ast_id"]][1] is alias
        assert (row["kind"], row["module"], row["level"], row["alias_index"]) == (kind, module, level, at)
        assert (row["name"], row["asname"]) == (alias.name, alias.asname)
        assert (row["stmt_bstart"], row["stmt_bend"]) == (of["bstart"], of["bend"])
        assert under(source, row, "stmt_").startswith(("import", "from"))
        assert row["line"] == alias.lineno
    return Counter(imports=len(imports))


def check_docstrings(source: Source, nodes: Nodes, docstrings: list[dict[str, Any]]) -> None:
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    expected = [
        (row["ast_id"], type(node).__name__, getattr(node, "name", None), text)
        for row, node in nodes
        if isinstance(node, owners) and (text := ast.get_docstring(node, clean=False)) is not None
    ]
    fields = ("owner_ast_id", "owner_kind", "owner_name", "text")
    assert [tuple(row[field] for field in fields) for row in docstrings] == expected
    for row in docstrings:
        assert ast.literal_eval(f"({under(source, row)}\n)") == row["text"]
        assert row["line"] == source.line_of(row["bstart"])


def ignored_lines(source: Source) -> list[int]:
    """Lines of the comments, found by the tokenizer."""
    if b"type:" not in source.utf8:
        return []
    # It knows no lone CR as the end of a line; CPython's parser does.
    text = source.text.replace("\r\n", "\n").replace("\r", "\n")
    return [
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
        and re.match(r"#[ \t]*type:[ \t]*ignore(?![a-zA-Z0-9\x80-\U0010ffff])", token.string)
    ]


# Real code


def stdlib() -> list[Path]:
    return sorted(path for path in STDLIB.rglob("*.py") if "site-packages" not in path.parts)


def check_files(files: list[Path]) -> Counter[str]:
    total: Counter[str] = Counter()
    for path in files:
        source = decode(path.name, path.read_bytes())
        if isinstance(source, Source):
            try:
                total += check(source)
            except AssertionError as failed:
                failed.add_note(str(path))
                raise
    assert total["unplaced"] <= 10 * total["problems"]
    assert total["compiled"] > 0.9 * (total["defs"] - total["uncompared"])
    return total


quietly = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")


@quietly
@pytest.mark.system
def test_requests_and_some_of_the_standard_library() -> None:
    total = check_files([*sorted(corpus.package("requests").rglob("*.py")), *stdlib()[::60]])
    assert total["nodes"] > 50_000
    assert total["read"] > 0.5 * total["placed"]


@quietly
@pytest.mark.system
@pytest.mark.parametrize("name", ["requests", "flask", "django", "stdlib"])
def test_whole_packages(name: str) -> None:
    files = stdlib() if name == "stdlib" else sorted(corpus.package(name).rglob("*.py"))
    total = check_files(files)
    print(name, dict(total))
    assert total["calls"] > 900
    if (STDLIB / "test").is_dir():
        assert (total["broken"] > 0) == (name == "stdlib")


# Traps, each with all the checks above

TRAPS: dict[str, str | bytes] = {
    "nothing": "",
    "only a comment": "# nothing",
    "no final newline": "x = y",
    "non-ascii before": "'é' + x, '😀', y(z), '𝔘'; a.b\n",
    "crlf": "a = 'é'\r\nif a:\r\n    b(c)\r\n",
    "lone cr": "a = 1\rif a:\r    b(c)\r",
    "mixed newlines": 'a = """é\r\n\r\n"""; b(\rc\n)\n',
    "form feed": "a = 1\n\x0cb = a\n\x0c  \x0c\nc = b\nif a:\n    d\n\x0c    e\n",
    "separators that end no line": "a = '\u2028\x85'; b = 'é\x0b\x1c'; c(b)\n",
    "bom": b"\xef\xbb\xbfa = b('\xc3\xa9', c)\n",
    "bom and cookie": b"\xef\xbb\xbf# -*- coding: utf-8 -*-\na = b\n",
    "latin-1": "# coding: latin-1\n'é' + name(ÿ)\n".encode("latin-1"),
    "cp1252 in line two": "#!x\n# vim: fileencoding=cp1252 :\nŠ = '€'; f(Š)\n".encode("cp1252"),
    "shift_jis": "# coding: shift_jis\n名前 = '表示'; f(名前)\n".encode("shift_jis"),
    "compatibility characters": "ﬁ = 𝐱 = ｗ.ﬀ\ndef 𝐟(ﬁ, *, 𝒌=1): global ªb\n"
    "class 𝐂: pass\nf(𝒌=ﬁ)\nimport ﬁ.ﬂ as ﬀ\n",
    "decorators": "@a.b(c)\n@d\ndef f(): pass\n\n@e\nclass C: pass\n\n@g\nasync def h(): pass\n",
    "comprehensions": "[x for x in y if x for z in x]; {x: y for x, y in z}\n"
    "async def f(): {*x, *(a async for a in b)}\n",
    "walrus": "if (n := len(a)) > 1: print(n, (m := 2))\n",
    "gaps": "{**a, b: c}\ndef f(*, a, b=1, c): pass\nf(*a, *b, c, **d, e=1, **g)\nx[1:, ::2, ...]\n",
    "match": "match a:\n    case {'k': [x, *rest], **more} if x: b\n"
    "    case C(p, q=1) | D.E | None | -1j: c\n    case [*_] | (1, 2) | 'é' 'f' as z: d\n    case _: e\n",
    "async": "async def f():\n    async with a as b, c: await d\n    async for e in f: yield g\n",
    "scopes": "def f():\n    global a, b\n    c = 1\n    def g():\n        nonlocal c\n"
    "        return lambda *x, y=1, **z: x\n",
    "imports": "from . import a\nfrom ..b.c import (d as e, # é\n  f,)\n"
    "import g . h as i, j\nfrom k import *\n",
    "strings": "x = 'a' \"b\" '''c\nd'''; b'' b'\\xff'; ('a'\n # c\n 'é'); u'x'; r'\\d' '\\N{DIGIT ONE}'\n",
    "numbers": "1_000; 0x_ff; 1e999; 1j; 0.1; 0b1; 0o7; True; None; ...; 1 if 1 else 2\n",
    "continuations": "a = \\\n  b.\\\nc\ndef \\\n  f(): pass\nasync \\\n def g(): pass\n",
    "semicolons": "a; b;c ; d\nif x: a; b\n",
    "try": "try: a\nexcept B as c: d\nexcept (E, F): g\nelse: h\nfinally: i\ntry: a\nexcept* B as c: d\n",
    "blocks": "if a: b\nelif c: d\nelse: e\nwhile f: g\nelse: h\n"
    "for i in j: k\nelse: l\nwith (m as n, o): p\n",
    "annotations": "a: int = 1\n(b): str\nc.d: 'x'\n"
    "def f(a: int = 1, /, b: C[d] = 2, *e: f, g: h, **i: j) -> k: ...\n",
    "lambdas in places": "def f(a=lambda: 0, *, b: (lambda: 1) = 2) -> (lambda: 3):\n"
    "    return lambda: (lambda: 4)\n@(lambda x: x)\nclass C((lambda: D)()): a = lambda: 5\n",
    "docstrings": 'r"""é\\d"""\ndef f():\n    "a" \'b\'\nclass C:\n    """\n    x\n    """\n'
    '    def g(s): b"no"\n    async def h(s): "é"; 1\ndef i(): f"no"\n',
    "f-strings": 'x = 1; f\'é{a}{b!r:>{c}} {d["e"]}\' f"{f.g(h)=} {(a, b)} {(c for d in e)}"\n'
    "'z' f'{{}}{i}{[]}'\n",
    "f-strings over lines": 'f"""é\n  {a} {\n b} {c(\nd,\n e)} {f:\n{g}}\n"""\nf"\\\n{h}"\n',
    "f-strings with crlf": 'f"""é\r\n  {a} {\r\n b} {c(\r\nd,\r\n e)}"""\r\nf\r\n',
    "names of f-strings": 'é = 1; f"{ﬁ} {é.ﬀ} {𝐱(ｗ)}"\n',
}


@pytest.mark.parametrize("code", TRAPS.values(), ids=TRAPS)
def test_traps(code: str | bytes) -> None:
    counts = check(source_of(code))
    assert counts["files"] == 1
    assert counts["unplaced"] == counts["problems"] == 0


def test_columns_count_bytes_of_utf8() -> None:
    code = "# coding: latin-1\nü = 'é'; x = ü\n".encode("latin-1")
    found = [row for row in told(code, "nodes") if row["kind"] == "Name"]
    assert [(row["name"], row["bstart"], row["bend"]) for row in found] == [
        ("ü", 18, 20),
        ("x", 29, 30),
        ("ü", 33, 35),
    ]


def test_the_compiler_normalises_names_and_the_text_does_not() -> None:
    source = source_of("ﬁ = ｗ")
    found = [row for row in told("ﬁ = ｗ", "nodes") if row["kind"] == "Name"]
    assert [(row["name"], under(source, row)) for row in found] == [("fi", "ﬁ"), ("w", "ｗ")]


def test_names_of_nodes() -> None:
    code = """
global a, b
from .m import n as o
import p.q
try: pass
except E as e: pass
match s:
    case {**rest}: pass
    case C(k=1, l=2): pass
    case [*t, u]: pass
    case D(): pass
f(g=h.i, **j)
def v(w): pass
"""
    found = [(row["kind"], row["name"]) for row in told(code, "nodes")]
    kinds = dict(found)
    assert kinds["Global"] == "a, b"
    assert (kinds["ImportFrom"], kinds["ExceptHandler"]) == ("m", "e")
    assert (kinds["MatchMapping"], kinds["MatchStar"], kinds["MatchAs"]) == ("rest", "t", "u")
    assert (kinds["Attribute"], kinds["FunctionDef"], kinds["arg"]) == ("i", "v", "w")
    assert [name for kind, name in found if kind == "alias"] == ["n", "p.q"]
    assert [name for kind, name in found if kind == "MatchClass"] == ["k, l", None]
    assert [name for kind, name in found if kind == "keyword"] == ["g", None]
    nameless = {"Import", "Call", "Module", "Load", "Constant"}
    assert {name for kind, name in found if kind in nameless} == {None}


def test_values_are_spelled_and_cut() -> None:
    code = "1.5; 'a\\n'; b'\\0'; 1e999; 2j; None; ...; '" + "é" * 300 + "'\nmatch x:\n    case True: pass\n"
    values = [row["value"] for row in told(code, "nodes") if row["value"] is not None]
    assert values == ["1.5", r"'a\n'", r"b'\x00'", "inf", "2j", "None", "Ellipsis", "'" + "é" * 255, "True"]
    short = ast_files_v1(source_of(code), ExtractOptions(max_value_chars=3)).cells["nodes"]["value"]
    assert [value for value in short if value] == [value[:3] for value in values]


def test_an_integer_that_python_does_not_write_in_decimal() -> None:
    (value,) = (row["value"] for row in told("0x" + "f" * 5000, "nodes") if row["kind"] == "Constant")
    assert value == "0x" + "f" * 254


def test_definitions() -> None:
    code = """
@d
@e
class A(B, *C, metaclass=M):
    async def f(self, a, /, b, c=1, *args, k, **kw):
        return [lambda: x for x in y]
    class D: pass
    g = lambda self: 0
def h(a=lambda: 0):
    if a:
        def i(): pass
"""
    found = {row["qualname"]: row for row in told(code, "defs")}
    assert list(found) == ["A", "A.f", "A.f.<lambda>", "A.D", "A.<lambda>", "h", "<lambda>", "h.i"]
    parameters = ("posonly_count", "arg_count", "kwonly_count", "has_vararg", "has_kwarg")
    assert [found["A.f"][field] for field in parameters] == [2, 2, 1, True, True]
    assert [found["h"][field] for field in parameters] == [0, 1, 0, False, False]
    assert [found["A"][field] for field in parameters] == [None] * 5
    assert (found["A"]["decorator_count"], found["A"]["base_count"]) == (2, 2)
    assert (found["A.f"]["decorator_count"], found["A.f"]["base_count"]) == (0, None)
    assert {row["type_param_count"] for row in found.values()} == {0}
    assert (found["A.<lambda>"]["kind"], found["A.<lambda>"]["name"]) == ("Lambda", None)
    assert (found["A"]["line"], under(source_of(code), found["A"])[:10]) == (4, "class A(B,")


def test_calls() -> None:
    found = told("a.b(1, *c, *d, e=1, **f)(g())[0](x for x in y)\n", "calls")
    fields = ("func_kind", "func_name", "arg_count", "starred_count", "keyword_count", "kw_star_count")
    assert [[row[field] for field in fields] for row in found] == [
        ["Subscript", None, 1, 0, 0, 0],
        ["Call", None, 1, 0, 0, 0],
        ["Attribute", "b", 3, 2, 2, 1],
        ["Name", "g", 0, 0, 0, 0],
    ]


def test_imports() -> None:
    code = "from ..a import b as c, d\nimport e.f\nfrom . import *\n"
    fields = ("kind", "module", "name", "asname", "alias_index", "level", "line")
    found = told(code, "imports")
    assert [[row[field] for field in fields] for row in found] == [
        ["ImportFrom", "a", "b", "c", 0, 2, 1],
        ["ImportFrom", "a", "d", None, 1, 2, 1],
        ["Import", None, "e.f", None, 0, 0, 2],
        ["ImportFrom", None, "*", None, 0, 1, 3],
    ]
    assert [under(source_of(code), row) for row in found] == ["b as c", "d", "e.f", "*"]
    assert under(source_of(code), found[1], "stmt_") == "from ..a import b as c, d"


def test_docstrings() -> None:
    code = 'def f():\n    """é\n      x"""\nclass C: r"\\d" "e"\nclass D: b""\n'
    found = told(code, "docstrings")
    assert [(row["owner_kind"], row["owner_name"], row["text"], row["line"]) for row in found] == [
        ("FunctionDef", "f", "é\n      x", 2),
        ("ClassDef", "C", "\\de", 4),
    ]
    assert [under(source_of(code), row) for row in found] == ['"""é\n      x"""', 'r"\\d" "e"']


def test_a_docstring_with_a_lone_surrogate_can_be_written() -> None:
    assert check(source_of(r'"\ud800"' + "\nx = '\\udfff'\n"))["files"] == 1


# Comments about types


def test_type_ignores() -> None:
    code = "a = 'é # type: ignore'  #type:ignore[x, y]\nb = 1  # type: ignored\nc = 2 # type:  ignore # why\n"
    assert told(code, "type_ignores") == [{"tag": "[x, y]", "line": 1}, {"tag": " # why", "line": 3}]
    check(source_of(code))


def test_type_comments_change_no_span() -> None:
    """The second parse lets the assignment reach to the end of its comment."""
    code = "a = []  # type: list[int]\nb = 1  # type: ignore\n"
    found = [row for row in told(code, "nodes") if row["kind"] == "Assign"]
    assert [under(source_of(code), row) for row in found] == ["a = []", "b = 1"]


def test_a_misplaced_type_comment_costs_only_the_type_ignores() -> None:
    said = ast_files_v1(source_of("a\n# type: int\nb  # type: ignore\n"), OPTIONS)
    assert set(said.cells) == {column.name for column in LISTS} - {"type_ignores"}
    (problem,) = said.problems
    assert (problem.severity, problem.stage) == ("info", "type_comments")
    assert (problem.error_type, problem.line) == ("SyntaxError", 2)


# What Python before 3.12 misplaces: it is dropped, with a word about it, and nothing else is

MISPLACED = {
    "bare tuple": ('x = f"é{a, b}{c}"', {"Tuple"}),
    "bare tuple with conversion": ('f"{a, b!r:>{c}}"', {"Tuple"}),
    "bare generator": ('f"{a for a in b}{c}"', {"GeneratorExp"}),
    "string over lines": (
        "f\"\"\"{a}{'''\n''' + b.c(d)}{e}\"\"\"",
        {"BinOp", "Constant", "Call", "Attribute", "Name"},
    ),
    "f-string over lines in another": (
        "f\"\"\"{a}\n {f'''\n{b}'''} {c}\"\"\"",
        {"JoinedStr", "Constant", "FormattedValue", "Name"},
    ),
}


@pytest.mark.skipif(not OLD_FSTRINGS, reason="repaired in Python 3.12")
@pytest.mark.parametrize(("code", "dropped"), MISPLACED.values(), ids=MISPLACED)
def test_misplaced_expressions(code: str, dropped: set[str]) -> None:
    source = source_of(code)
    said = ast_files_v1(source, OPTIONS)
    (problem,) = said.problems
    assert (problem.severity, problem.stage, problem.error_type) == ("info", "position", "misplaced")
    assert source.utf8[problem.bstart : problem.bend].decode() == code[code.index("f") :]
    assert (problem.line, problem.col) == (1, problem.bstart)
    found = check_tree(ast.parse(code), rows(said.cells, "nodes"))
    counts = check_places(source, found)
    assert counts["read"] >= 2
    placed = [row for row, node in found if hasattr(node, "lineno")]
    assert {row["kind"] for row in placed if row["bstart"] is None} == dropped


def told_of(tree: ast.Module, code: str) -> Any:
    """What is said if CPython parses the code to this tree."""
    parse = ast.parse
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ast, "parse", lambda text, **how: parse(text, **how) if how else tree)
        return ast_files_v1(source_of(code), OPTIONS)


@pytest.mark.parametrize("wrong", [(2, 200), (4, 0), (99, 1)])
def test_places_outside_of_the_file_are_null(wrong: tuple[int, int]) -> None:
    """CPython has had such bugs; a place that is not there is not guessed."""
    tree: Any = ast.parse("abc\nxyz\n")
    tree.body[1].value.end_lineno, tree.body[1].value.end_col_offset = wrong
    found = rows(told_of(tree, "abc\nxyz\n").cells, "nodes")
    assert [[row[field] for field in ("name", *PLACE)] for row in found if row["kind"] == "Name"] == [
        ["abc", 0, 3, 1],
        ["xyz", None, None, None],
    ]


@pytest.mark.skipif(not OLD_FSTRINGS, reason="later ones are not checked")
@pytest.mark.parametrize(
    "code",
    ["x; f'{x}{y}'", "f'{y}{x}'", "x.a; f'{x.a}{y.b}'", "f'{y.b}{x.a}'"],
    ids=["name outside", "other name", "path outside", "other path"],
)
def test_places_of_something_else_are_dropped_in_f_strings(code: str) -> None:
    """The first expression in the string is given the place of another, which has the same shape."""
    tree: Any = ast.parse(code)
    values = tree.body[-1].value.values
    first, other = values[0].value, values[1].value if len(tree.body) == 1 else tree.body[0].value
    for node, elsewhere in zip(ast.walk(first), ast.walk(other), strict=True):
        ast.copy_location(node, elsewhere)
    said = told_of(tree, code)
    assert [problem.stage for problem in said.problems] == ["position"]
    found = check_tree(tree, rows(said.cells, "nodes"))
    dropped = [node for row, node in found if hasattr(node, "lineno") and row["bstart"] is None]
    assert dropped == [node for node in ast.walk(first) if hasattr(node, "lineno")]


# What cannot be parsed

BROKEN = {
    "python 2": ("x = 1\nprint 'é'\n", "SyntaxError", 2),
    "indentation": ("def f():\nx\n", "IndentationError", 2),
    "tabs": ("if a:\n        b\n\tc\n", "TabError", 3),
    "unclosed": ("é = (\n", "SyntaxError", 1),
    "lone cr": ("a = 1\rb c\r", "SyntaxError", 2),
}


@pytest.mark.parametrize(("code", "kind", "line"), BROKEN.values(), ids=BROKEN)
def test_broken_files(code: str, kind: str, line: int) -> None:
    said = ast_files_v1(source_of(code), OPTIONS)
    (problem,) = said.problems
    assert (said.cells, problem.severity, problem.stage) == ({}, "error", "parse")
    assert (problem.error_type, problem.line) == (kind, line)


def test_nul_bytes() -> None:
    said = ast_files_v1(source_of("a\0b"), OPTIONS)
    # ValueError in early releases of Python 3.11.
    assert [problem.error_type in {"SyntaxError", "ValueError"} for problem in said.problems] == [True]


def test_syntax_of_python_3_12() -> None:
    code = "type X[T] = list[T]\ndef f[T: int, *U](a: T): pass\nclass C[T]: pass\n"
    said = ast_files_v1(source_of(code), OPTIONS)
    if sys.version_info < (3, 12):
        assert [(problem.error_type, problem.line) for problem in said.problems] == [("SyntaxError", 1)]
    else:
        assert check(source_of(code))["files"] == 1
        assert said.cells["defs"]["type_param_count"] == [2, 1]


@pytest.mark.parametrize("code", ["'\\d'", "1or 2", "'\\d'  # type: ignore", "f'{x}\\d'"])
def test_warnings_are_left_to_the_bytecode_witness(code: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(code)  # Warnings are errors in this run.
    assert ast_files_v1(source_of(code), OPTIONS).problems == ()


# Depth and determinism


@pytest.mark.parametrize("code", ["x" + "+x" * 1200, "x" + ".a" * 1200, "f" + "()" * 1200])
def test_a_tree_deeper_than_the_recursion_limit(code: str) -> None:
    said = ast_files_v1(source_of(code), OPTIONS)
    assert said.problems == ()
    assert len(said.cells["nodes"]["kind"]) == sum(1 for _ in ast.walk(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    ["-" * 50_000 + "1", "x" + "+x" * 100_000, "(" * 1000, "x" + "[0]" * 50_000, "lambda: " * 9_000 + "0"],
)
def test_what_is_too_deep_is_a_problem(code: str) -> None:
    said = ast_files_v1(source_of(code), OPTIONS)
    (problem,) = said.problems
    assert said.cells == {}
    assert problem.error_type in {"SyntaxError", "RecursionError", "MemoryError"}


def test_every_class_of_this_python_tells_its_fields() -> None:
    """The grammar is read from docstrings; a Python without them would be noticed here."""
    families = [family for family in ast.AST.__subclasses__() if family.__module__ == "ast"]
    concrete = [cls for family in families for cls in family.__subclasses__() or [family]]
    signed = [cls for cls in concrete if cls._fields and cls.__module__ == "ast"]
    assert {ast.FunctionDef, ast.Constant, ast.arguments, ast.MatchAs} <= set(signed)
    for cls in signed:
        kind, children, *_ = ast_files._Shapes()[cls]
        assert kind == cls.__name__
        assert set(children) <= set(cls._fields)


def test_the_same_bytes_give_the_same_rows_in_another_process() -> None:
    code = "from unit.extract import test_ast_files as t; print(t.digest())"
    paths = ":".join(filter(None, sys.path))
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{TESTS}:{paths}"},
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{digest()}\n"}


def digest() -> str:
    said = [repr(ast_files_v1(source_of(code), OPTIONS)) for code in TRAPS.values()]
    return sha256("".join(said).encode()).hexdigest()
