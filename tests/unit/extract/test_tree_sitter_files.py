"""tree-sitter's witness: its tree against a plain recursive walk, its query packs, and its limits."""

from __future__ import annotations

import ast
import hashlib
import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tree_sitter import Parser, Query, QueryCursor

from codeanatomy import catalog
from codeanatomy.arrow import array
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract import tree_sitter_files
from codeanatomy.extract.tree_sitter_files import LANGUAGE, PACKS, PATTERNS, VERSION
from support.tree_sitter_rows import (
    check_captures,
    check_tree,
    extract_tree_sitter,
    matches,
    rows,
    source_of,
    texts,
)

TABLE = catalog.table("tree_sitter_files_v1")

# The tree.

TRAPS = [
    "",
    "\n",
    "# only a comment",
    "x = 1",
    "\fdef f():\n\f  return g(1)\n",
    "x = 'é😀'; y = f(x)\n",
    "ﬁ = ﬁ()\ndef ﬁ(): pass\n",
    "def f():\r\n    return g(\r\n  1)\r\n",
    "if a:\r  b()\rc()\r",
    "# all of this\ris a comment()\n",
    "'''a\r\nb\rc\nd'''; f()\r\n",
    "a = 1\n\0\nf()\n",
    "\0",
    "def f(:\n  pass\nclass : pass\n",
    "print 'x', f()\nexec 'y' in z\nprint >>f, x\nraise E, 'v'\n",
    "a is not b not in c\n",
    "match x:\n  case A(b=1) | [*_]: f()\n",
    "type X[T: int] = list[T]\ndef f[T](a: T) -> T: ...\n",
    "try: a\nexcept* E: b\n",
    'f"{a()!r:>{b()}} {f"{c()}"}"\n',
    "async def f():\n  async with a() as b: await c()\n",
    "x = [i for i in f() if (y := g(i))]\n",
    "if x:\n\ty()\n        z()\n",
    "for",
    ")))",
    "'unclosed",
    "'''unclosed\n",
    "\\",
    "\u2028 = \ufeff1\n",
    "`x` <> 0777L\n",
]


@pytest.mark.parametrize("text", TRAPS)
def test_the_tree_is_that_of_a_plain_walk(text: str) -> None:
    said = extract_tree_sitter(text)
    assert said.problems == ()
    check_tree(source_of(text), said.cells)
    check_captures(source_of(text), said.cells)


def test_every_cut_of_a_program_has_a_tree() -> None:
    text = "@a\nclass A(B):\n  def f(self, *, x=(1)):\n    return f'{x!r}' % self.g(x)[0] or lambda: y"
    for end in range(len(text)):
        said = extract_tree_sitter(text[:end])
        check_tree(source_of(text[:end]), said.cells)
        check_captures(source_of(text[:end]), said.cells)


@pytest.mark.parametrize("size", [4, 5, 7, 64])
def test_the_size_of_the_pieces_does_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one ends inside a character or a line end. Any character has room in four bytes."""
    monkeypatch.setattr(tree_sitter_files, "LARGE_BYTES", 0)
    monkeypatch.setattr(tree_sitter_files, "PIECE_BYTES", size)
    for text in TRAPS:
        check_tree(source_of(text), extract_tree_sitter(text).cells)


def test_positions_count_bytes_and_lines_as_cpython_does() -> None:
    text = "# coding: latin-1\r# é\ré = 'é'; f(1)\r\ng(2)\n".encode("latin-1")
    said = extract_tree_sitter(text).cells
    assert [node["kind"] for node in rows(said["nodes"])][:3] == ["module", "comment", "comment"]
    calls = [(match["call"]["text"], match["call"]["line"]) for match in matches(said, "calls")]
    assert calls == [("f(1)", 3), ("g(2)", 4)]
    said = extract_tree_sitter(b"\xef\xbb\xbf" + "é = '😀'; f(1,\r\r g(2))\n".encode()).cells
    placed = [(match["call"]["bstart"], match["call"]["line"]) for match in matches(said, "calls")]
    assert placed == [(13, 1), (20, 3)]


def test_text_is_cut_by_characters() -> None:
    text = "f('" + "é😀" * 100 + "')\n" + "$" * 300
    for chars in (1, 4, 7, 202):
        said = extract_tree_sitter(text, ExtractOptions(max_value_chars=chars)).cells
        assert matches(said, "calls")[0]["call"]["text"] == text[: min(chars, 205)]
        assert max(len(error["text"]) for error in rows(said["errors"])) == chars


# The packs.


def test_defs() -> None:
    said = extract_tree_sitter(
        "@d\nclass A(B):\n  @property\n  async def ﬁ(self): return lambda x: x\n"
    ).cells
    assert [{**match, "def": match["def"][:9]} for match in texts(said, "defs")] == [
        {"def": "class A(B", "name": "A"},
        {"def": "async def", "name": "ﬁ"},
        {"def": "lambda x:"},
    ]
    assert [match["def"]["pattern_index"] for match in matches(said, "defs")] == [1, 0, 2]


def test_calls() -> None:
    said = extract_tree_sitter("@a.b(c)\ndef f(): (g)(h)(*i)\n@d\nclass A(B()): print; print(x)\n").cells
    assert texts(said, "calls") == [
        {"call": "a.b(c)", "callee": "a.b"},
        {"call": "(g)(h)(*i)", "callee": "(g)(h)"},
        {"call": "(g)(h)", "callee": "(g)"},
        {"call": "B()", "callee": "B"},
        {"call": "print(x)", "callee": "print"},
    ]


def test_imports() -> None:
    lines = (
        "import a.b, c as d",
        "from __future__ import e, f as g",
        "from . import (h, i as j,)",
        "from ..k.l import *",
    )
    found = texts(extract_tree_sitter("\n".join(lines)).cells, "imports")
    assert [{**match, "import": lines.index(match["import"])} for match in found] == [
        {"import": 0, "name": "a.b"},
        {"import": 0, "name": "c", "alias": "d"},
        {"import": 1, "module": "__future__", "name": "e"},
        {"import": 1, "module": "__future__", "name": "f", "alias": "g"},
        {"import": 2, "module": ".", "name": "h"},
        {"import": 2, "module": ".", "name": "i", "alias": "j"},
        {"import": 3, "module": "..k.l", "name": "*"},
    ]


DOCSTRINGS = {
    "'doc'": "'doc'",
    "# c\n\n# d\n'doc' # e": "'doc'",
    "'a' \\\n u'b'": "'a' \\\n u'b'",
    "('doc')": "'doc'",
    "( # c\n 'a' # d\n R'b')": "'a' # d\n R'b'",
    "'doc'; x = 1": "'doc'",
    "'doc',": None,
    "'a', 'b'": None,
    "'doc'.x": None,
    "b'doc'": None,
    "f'doc'": None,
    "'a' Rf'b'": None,
    "t'doc'": None,
    "x = 'doc'": None,
    "pass\n'doc'": None,
    "": None,
}


@pytest.mark.parametrize(("text", "doc"), DOCSTRINGS.items())
@pytest.mark.parametrize("owner", ["", "def f(): # c\n", "class A:\n  # c\n", "async def f():\n"])
def test_docstrings(owner: str, text: str, doc: str | None) -> None:
    body = text.replace("\n", "\n  ") if owner else text
    found = matches(extract_tree_sitter(f"{owner}  {body}\n" if owner else text).cells, "docstrings")
    if doc is None:
        assert found == []
    else:
        assert [match["doc"]["text"] for match in found] == [doc.replace("\n", "\n  ") if owner else doc]
        kinds = {"": "module", "c": "class_definition"}
        assert found[0]["owner"]["kind"] == kinds.get(owner[:1], "function_definition")


def test_the_packs_say_the_same_when_they_run_alone() -> None:
    """The four run as one query; this is what each means by itself."""
    text = "'doc'\nfrom a import b, c as d\nclass A:\n  'doc'\n  def f(self): return g(h())(lambda: 1)\n"
    root = Parser(LANGUAGE).parse(text.encode()).root_node
    said = extract_tree_sitter(text).cells
    for pack in PACKS:
        query = Query(LANGUAGE, pack.source)
        alone = [
            (pattern, {name: node.text for name, (node,) in found.items() if not name.startswith("_")})
            for pattern, found in QueryCursor(query).matches(root)
        ]
        assert [
            (
                next(iter(match.values()))["pattern_index"],
                {n: row["text"].encode() for n, row in match.items()},
            )
            for match in matches(said, pack.name)
        ] == alone
        assert alone
        assert all(query.is_pattern_rooted(number) for number in range(query.pattern_count))
        assert [number for owner, number in PATTERNS if owner == pack] == list(range(query.pattern_count))


def test_packs_and_rows_carry_their_versions() -> None:
    assert [pack.name for pack in PACKS] == ["defs", "calls", "imports", "docstrings"]
    for pack in PACKS:
        assert pack.source.startswith(f"; {pack.name} {pack.version}\n")
        assert pack.version.isdigit()
    digest = hashlib.sha256("".join(pack.source for pack in PACKS).encode()).hexdigest()
    assert VERSION.endswith(f"rules 1, packs {digest[:8]}")
    assert {row["pack_version"] for row in rows(extract_tree_sitter("f()").cells["captures"])} == {
        PACKS[1].version
    }


# Limits, and the row.


def test_deep_nesting() -> None:
    for text in ("(" * 10_000 + "1" + ")" * 10_000, "x = " + " + ".join(["f()"] * 30_000), "[" * 10_000):
        said = extract_tree_sitter(text)
        assert said.problems == ()
        assert len(matches(said.cells, "calls")) == text.count("f()")


def test_what_is_too_deep_for_queries_is_said_to_be_missing() -> None:
    said = extract_tree_sitter("a" + ".f()" * 40_000, ExtractOptions())
    assert [(problem.severity, problem.error_type) for problem in said.problems] == [
        ("warning", "match_limit")
    ]
    assert said.cells["stats"]["match_limit_exceeded"] is True
    assert said.cells["nodes"]["kind"].count("call") == 40_000
    # A call is two levels deep.
    assert len(matches(said.cells, "calls")) == tree_sitter_files.MATCH_DEPTH // 2


def test_long_runs_of_tokens_are_not_searched() -> None:
    """The query engine would need quadratic time, half an hour here."""
    begun = time.process_time()
    said = extract_tree_sitter("(" * 1_000_000, ExtractOptions())
    assert time.process_time() - begun < 30
    assert [problem.error_type for problem in said.problems] == ["match_limit"]
    assert "captures" not in said.cells
    assert said.cells["stats"]["match_limit_exceeded"] is True
    assert said.cells["stats"]["match_count"] is None
    assert said.cells["stats"]["node_count"] == 1_000_001


def test_the_measure_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    # 40 open brackets, one after the other: 1600 steps.
    for limit, searched in ((1599, False), (1600, True)):
        monkeypatch.setattr(tree_sitter_files, "MATCH_STEPS", limit)
        assert ("captures" in extract_tree_sitter("(" * 40).cells) == searched
        # As many brackets, but with names between them.
        assert "captures" in extract_tree_sitter("(a, " * 40).cells


def test_too_many_matches_at_once_are_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_sitter_files, "MATCH_LIMIT", 1)
    said = extract_tree_sitter("def f(a=lambda: 1): 'doc'\n")
    assert said.cells["stats"]["match_limit_exceeded"] is True
    assert [problem.error_type for problem in said.problems] == ["match_limit"]


def test_the_time_limit_ends_the_parser() -> None:
    """Its error recovery takes quadratic time for this, an hour or so."""
    begun = time.monotonic()
    said = extract_tree_sitter("def f(\n" * 500_000, ExtractOptions(file_seconds=1.0))
    assert 0.5 < time.monotonic() - begun < 120
    assert [(problem.severity, problem.error_type) for problem in said.problems] == [("error", "time_limit")]
    assert set(said.cells) == {"stats"}
    assert said.cells["stats"]["timed_out"] is True
    assert extract_tree_sitter("def f(\n" * 5).cells["stats"]["timed_out"] is False


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the system does not tell the memory in use"
)
@pytest.mark.system
def test_memory_is_given_back() -> None:
    """Parts of tree-sitter 0.26.0 keep what they were given, the tree among it: 1 MB for a file like this."""

    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    text = "def f(a):\n  'doc'\n  return g(a, [1, 2, 3])\n" * 1_000
    for _ in range(3):
        extract_tree_sitter(text)
    before = pages()
    for _ in range(20):
        extract_tree_sitter(text)
    assert (pages() - before) * mmap.PAGESIZE < 8 * 1024**2


def test_the_cells_are_those_of_the_catalogue() -> None:
    """For every kind of answer: whole, without captures, and without anything."""
    late = extract_tree_sitter("def f(\n" * 50_000, ExtractOptions(file_seconds=1e-9))
    answers = [
        extract_tree_sitter("def f(: 'doc'; import a; g($)").cells,
        extract_tree_sitter("(" * 40_000).cells,
        late.cells,
    ]
    names = ["nodes", "errors", "missing", "captures", "stats"]
    assert list(answers[0]) == names
    assert late.cells["stats"]["timed_out"] is True
    for name in names:
        column = TABLE.column(name)
        made = array(column, [cells.get(name) for cells in answers]).to_pylist()
        for cells, value in zip(answers, made, strict=True):
            cell = cells.get(name)
            assert value == (rows(cell) if column.array and cell is not None else cell)


def test_two_processes_say_the_same() -> None:
    code = (
        "import hashlib\n"
        "from codeanatomy.catalog.settings import ExtractOptions\n"
        "from codeanatomy.sources.source_file import decode\n"
        "from codeanatomy.extract.tree_sitter_files import tree_sitter_files_v1\n"
        "from pathlib import Path\n"
        f"raw = Path({ast.__file__!r}).read_bytes()\n"
        "said = tree_sitter_files_v1(decode('a.py', raw + b'def f(:'), ExtractOptions())\n"
        "print(hashlib.sha256(repr(said).encode()).hexdigest())\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
