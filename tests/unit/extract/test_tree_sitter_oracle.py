"""The captures of tree-sitter against CPython's ast: what both see, and each difference of the grammar."""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from codeanatomy.extract.tree_sitter_files import tree_sitter_files_v1
from codeanatomy.sources.source_file import Source, decode
from support import corpus
from support.tree_sitter_rows import (
    WHOLE,
    Row,
    check_captures,
    check_tree,
    extract_tree_sitter,
    matches,
    rows,
    source_of,
    texts,
)

FACTS = {
    ast.FunctionDef: "function_definition",
    ast.AsyncFunctionDef: "function_definition",
    ast.ClassDef: "class_definition",
    ast.Lambda: "lambda",
}
# What a definition of tree-sitter may have after CPython's has ended.
TRAILER = re.compile(rb"(\s|#[^\n]*)*")


def cpython_facts(source: Source) -> Counter[Any]:
    """What CPython sees. Before 3.12 its positions in formatted strings are wrong; their content counts."""
    facts: Counter[Any] = Counter()
    todo: list[tuple[ast.AST, bool]] = [(parsed(source.raw), False)]
    while todo:
        node, formatted = todo.pop()
        formatted = formatted or isinstance(node, ast.JoinedStr)
        todo.extend((child, formatted) for child in ast.iter_child_nodes(node))
        if formatted and isinstance(node, ast.Call | ast.Lambda):
            facts["formatted", ast.dump(node)] += 1
        elif not formatted:
            facts.update(_facts_of(source, node))
    return facts


def parsed(raw: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(raw)


def place(source: Source, node: Any) -> tuple[int | None, int | None]:
    return source.offset_at(node.lineno, node.col_offset), source.offset_at(
        node.end_lineno, node.end_col_offset
    )


def _facts_of(source: Source, node: ast.AST) -> Iterator[Any]:
    kind = FACTS.get(type(node))
    if kind:
        yield kind, getattr(node, "name", None), *place(source, node), node.lineno
    if isinstance(node, ast.Call):
        yield "call", *place(source, node), node.lineno
        if place(source, node)[0] == place(source, node.func)[0]:
            yield "callee", *place(source, node.func)
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else None
        for alias in node.names:
            yield "import", *place(source, node), module, alias.name, alias.asname
    if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        first = node.body[0] if node.body else None
        value = first.value if isinstance(first, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            owner = None if isinstance(node, ast.Module) else place(source, node)[0]
            yield "docstring", owner, *place(source, value)


def tree_sitter_facts(source: Source, cells: Any, wanted: Counter[Any]) -> Counter[Any]:
    """The same from the captures, with each known difference undone by a rule that fits nothing else."""
    facts: Counter[Any] = Counter()
    inside: set[int] = set()
    for node in rows(cells["nodes"]):
        if node["kind"] in ("interpolation", "format_expression") or node["parent_ts_id"] in inside:
            inside.add(node["ts_id"])
        if node["kind"] == "type_alias_statement":
            facts.update(_not_an_alias(source, node, wanted))
    ends = {fact[:3]: fact[3] for fact in wanted if fact[0] in FACTS.values()}
    for match in matches(cells, "defs") + matches(cells, "calls"):
        row = match.get("def") or match["call"]
        if row["ts_id"] in inside:
            facts["formatted", ast.dump(ast.parse(f"({row['text']})", mode="eval").body)] += 1
        elif "def" in match:
            name = normalize("NFKC", match["name"]["text"]) if "name" in match else None
            fact = (row["kind"], name, row["bstart"])
            facts[*fact, _end_without_comments(source, row, ends.get(fact)), row["line"]] += 1
        else:
            facts["call", _after_star(source, row), row["bend"], row["line"]] += 1
            if match["callee"]["kind"] != "parenthesized_expression":
                facts["callee", _after_star(source, match["callee"]), match["callee"]["bend"]] += 1
    for match in matches(cells, "imports"):
        names = (
            _joined(match[name]["text"]) if name in match else None for name in ("module", "name", "alias")
        )
        facts["import", match["import"]["bstart"], match["import"]["bend"], *names] += 1
    for match in matches(cells, "docstrings"):
        owner = None if match["owner"]["kind"] == "module" else match["owner"]["bstart"]
        facts["docstring", owner, match["doc"]["bstart"], match["doc"]["bend"]] += 1
    return facts


def _joined(dotted: str) -> str:
    """A name without what may stand between its parts."""
    return normalize("NFKC", re.sub(r"\\\r?\n|\s", "", dotted))


def _end_without_comments(source: Source, row: Row, end: int | None) -> int:
    """A definition ends with the comments in its block, for CPython with its last statement."""
    tail = end is not None and source.utf8[end : row["bend"]]
    return end if tail and row["kind"] != "lambda" and TRAILER.fullmatch(tail) else row["bend"]


def _after_star(source: Source, row: Row) -> int:
    """`[*f()]` is the call of `*f` to tree-sitter."""
    star = re.compile(rb"\*\s*").match(source.utf8, row["bstart"])
    return star.end() if star else row["bstart"]


def _not_an_alias(source: Source, node: Row, wanted: Counter[Any]) -> Iterator[Any]:
    """`type(x).y = z` is a type alias to tree-sitter, so it misses the call."""
    if re.compile(rb"type\s*\(").match(source.utf8, node["bstart"]):
        yield from (fact for fact in wanted if fact[0] in ("call", "callee") and fact[1] == node["bstart"])


def check_against_cpython(source: Source, cells: Any) -> int:
    wanted = cpython_facts(source)
    found = tree_sitter_facts(source, cells, wanted)
    assert (found - wanted, wanted - found) == (Counter(), Counter()), source.path
    return wanted.total()


AGREED = [
    "@a(b)\n\n# c\n@(lambda x: x)\nasync def f(a, /, b=c(), *, d: e() = 1) -> g(): await h(), lambda: i()",
    "x = f'{a()} {b()!r:>{c()}} {{d()}} {(lambda: 1)()} {e()=}' f'''{\nf()\n}''' 'g()'",
    "match f(x), y:\n case A(b=1, c=[*_]) | None: g()\n case {'a': b.c, **r} if h(): i()\n case -1+2j: pass",
    "match(x); match = case(match[0]); match.x(); f(match)\ntype(x).y(); type = type(x)[0]; type: int = f()",
    "print >>f, x()\nprint (a), f()\nexec (x) in y\nprint.f(); exec.g(); x.print(); f(print=1, exec=2)",
    "def print(): pass\ndef exec(): pass\ndef match(): pass\nclass type: pass\nimport print, match, exec",
    "é = 'é' + f(); x = '😀' + g(); y = lambda: 1\ndef ﬁ(): ﬁ()\nclass ª: pass\nfrom ﬁ import ﬁ as ª",
    "import a . b\nfrom .  . import c\nfrom . \\\n d import (e, # f\n g)\nfrom ... import h as i",
    "class A(B, metaclass=C()):\n  x: f() = g()\n  # c\n\n  # d\ny: h()",
    "def f(): a(); b();\nclass A: x = f();\nif x: pass;\nfor y in f(): g()\nelse: h()",
    "with (a() as b, c()): pass\nwith (a(), b()): pass\nwith (a()): pass\ntry: a()\nexcept* B() as c: d()",
    "f(*a(), *b.c(), **d())(e for e in g())[h()].i()\n(*a(), b)\n{1, *a()}\n{**a()}\n*a, b = c()\ndel a().b",
    "(a)(b); (a.b)(c); (a, b)[0](c); ((a))(b); (x for x in y)(z); 'x'.join(y); 1 .f(); f(x)if y else(z())",
    "\fdef f():\n\f  g()\n  \\\n  h()\nif x:\n\ty()\n\n\fz()",
    "def f():\r\n  'doc'\r\n  return g(\r\n)\r\n\r\nclass A:\r\n  '''a\r\n  b'''\r\n",
    "if a:\r  b(\r\rc())\r",
    "a()\rb()\r",
    "# c\ra()\r",
    "import os\rclass A:\r    def f(self, x=1):\r        return os.path.join(x)\r",
]


@pytest.mark.parametrize("text", AGREED)
def test_what_cpython_sees(text: str) -> None:
    source = source_of(text)
    cells = extract_tree_sitter(text).cells
    assert cells["stats"]["error_count"] + cells["stats"]["missing_count"] == 0
    assert check_against_cpython(source, cells) > 0


STARRED = ["[*a.b()]", "{*a()}", "print(1, *a.b())", "x = *a(),", "x[*a()]", "for x in *a(), b: pass"]


@pytest.mark.parametrize("text", STARRED)
def test_difference_a_star_before_a_call_belongs_to_the_callee(text: str) -> None:
    last = texts(extract_tree_sitter(text).cells, "calls")[-1]
    assert last["callee"].startswith("*")
    assert check_against_cpython(source_of(text), extract_tree_sitter(text).cells) > 0


@pytest.mark.parametrize("text", ["type(x).y = f()", "type (x)[0] = f()", "type(x).y: int = f()"])
def test_difference_assignments_to_what_type_returns_are_type_aliases(text: str) -> None:
    assert [match["call"] for match in texts(extract_tree_sitter(text).cells, "calls")] == ["f()"]
    assert check_against_cpython(source_of(text), extract_tree_sitter(text).cells) == 4


@pytest.mark.parametrize(
    ("text", "calls", "broken"),
    [
        # A lone carriage return is white space and ends no statement, comment or line.
        # Within brackets a name after a dot must not stand left of the block.
        ("def f():\n    (a().\nb())\n", 2, True),
        ("from __future__ import *\nf()\n", 1, True),
    ],
)
def test_difference_valid_texts_that_are_errors_or_lost(text: str, calls: int, broken: bool) -> None:
    """For all of these CPython makes a tree."""
    cells = extract_tree_sitter(text).cells
    assert sum(fact[0] == "call" for fact in cpython_facts(source_of(text))) == calls
    assert cells["nodes"]["has_error"][0] == broken
    assert broken or texts(cells, "calls") == []


def test_difference_a_docstring_in_two_pairs_of_parentheses_is_not_seen() -> None:
    assert ast.get_docstring(ast.parse("(('doc'))")) == "doc"
    assert texts(extract_tree_sitter("(('doc'))").cells, "docstrings") == []


def test_difference_indentation_is_not_checked() -> None:
    """Texts that CPython rejects and tree-sitter does not: no errors is no proof."""
    for text in ("if x:\n\ty()\n        z()\n", "if x:\n", "def f(a, a): return\n"):
        with pytest.raises(SyntaxError):
            compile(text, "a.py", "exec")
        assert extract_tree_sitter(text).cells["stats"]["error_count"] == 0


# Files of the standard library that CPython parses and tree-sitter does not; see the differences above.
BROKEN = {"test_compile.py", "badsyntax_future8.py"}


def standard_library() -> list[Path]:
    root = Path(sysconfig.get_paths()["stdlib"])
    return sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)


def check_files(paths: list[Path]) -> int:
    """How many facts were compared."""
    facts = 0
    for path in paths:
        source = decode(path.name, path.read_bytes())
        if not isinstance(source, Source):
            continue
        said = tree_sitter_files_v1(source, WHOLE)
        assert said.problems == ()
        check_tree(source, said.cells)
        check_captures(source, said.cells)
        try:
            parsed(source.raw)
        except (SyntaxError, ValueError):
            continue
        if said.cells["nodes"]["has_error"][0]:
            assert path.name in BROKEN
        else:
            facts += check_against_cpython(source, said.cells)
    return facts


@pytest.mark.system
def test_real_files() -> None:
    requests = sorted(corpus.package("requests").rglob("*.py"))
    assert check_files(requests + standard_library()[::60]) > 10_000


@pytest.mark.system
@pytest.mark.parametrize("name", ["requests", "flask", "django", "standard library"])
def test_all_real_files(name: str) -> None:
    paths = standard_library() if name == "standard library" else corpus.package(name).rglob("*.py")
    assert check_files(sorted(paths)) > 2_500
