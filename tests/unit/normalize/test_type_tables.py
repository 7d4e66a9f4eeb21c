"""The tables of types: their rows, signatures in comments, and real packages."""

from __future__ import annotations

import time
from itertools import accumulate
from typing import Any

import pytest

from codeanatomy.arrow import array
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.spec import Table
from codeanatomy.catalog.tables.extract_trees import LIBCST_FILES_V1
from codeanatomy.catalog.tables.normalize import TYPE_EXPRS_NORM_V1, TYPE_NODES_V1
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.file_ids import LIBCST_FIELDS
from codeanatomy.file_view import LIBCST, Columns, FileView
from codeanatomy.node_ids import definition_key
from codeanatomy.normalize.types.names import TypeScope
from codeanatomy.normalize.types.tables import (
    LIBCST_LISTS,
    type_expressions,
    type_exprs_norm_v1,
    type_nodes_v1,
)
from codeanatomy.normalize.types.text import read_type
from codeanatomy.sources.source_file import Source
from support.libcst_rows import extract_libcst, package, read

# Only what the rules say they read, and what ids are made of.
FIELDS = {
    name: {*LIBCST_LISTS.get(name, ()), *LIBCST_FIELDS.get(name, ())}
    for name in {**LIBCST_LISTS, **LIBCST_FIELDS}
}


def pruned(cells: Any) -> dict[str, Columns]:
    return {name: {field: cells[name][field] for field in fields} for name, fields in FIELDS.items()}


def file_of(code: str, path: str = "pkg/a.py") -> FileView:
    said = extract_libcst(code)
    assert not said.problems, said.problems
    return FileView("repo", path, path, {LIBCST: pruned(said.cells)})


def rows(columns: Columns, *fields: str) -> list[Any]:
    return list(zip(*(columns[field] for field in fields), strict=True))


def expressions(code: str, *fields: str) -> list[Any]:
    return rows(type_exprs_norm_v1(type_expressions(file_of(code))), *fields)


def nodes(code: str, *fields: str) -> list[Any]:
    return rows(type_nodes_v1(type_expressions(file_of(code))), *fields)


CODE = """\
from typing import Optional
def f(x: Optional[int], *y: 'Foo') -> None:
    self.z: str = 1
    w = []  # type: list['Foo']
é: dict[str, "Foo | None"]
"""


def test_expressions() -> None:
    fields = ("expr_kind", "expr_role", "target_name", "expr_text", "type_repr", "line")
    assert expressions(CODE, *fields) == [
        ("annotation", "param", "x", "Optional[int]", "int | None", 2),
        ("string_annotation", "param", "y", "'Foo'", "Foo", 2),
        ("annotation", "return", None, "None", "None", 2),
        ("annotation", "attribute", "z", "str", "str", 3),
        ("type_comment", "variable", "w", "list['Foo']", "list[Foo]", 4),
        ("annotation", "variable", "é", 'dict[str, "Foo | None"]', "dict[str, Foo | None]", 5),
    ]
    utf8 = CODE.encode()
    owner = (utf8.index(b"def f"), utf8.index("\né".encode()))
    owners = expressions(CODE, "owner_bstart", "owner_bend")
    assert [start for start, _ in owners] == [owner[0]] * 5 + [None]
    for text, start, end in expressions(CODE, "expr_text", "bstart", "bend"):
        assert utf8[start:end].decode() == text


def test_nodes() -> None:
    utf8 = CODE.encode()
    found = nodes(CODE, "node_index", "parent_index", "arg_index", "type_kind", "type_repr", "bstart", "bend")
    assert [(*row, None if start is None else utf8[start:end].decode()) for *row, start, end in found] == [
        (0, None, None, "union", "int | None", "Optional[int]"),
        (1, 0, 0, "name", "int", "int"),
        (2, 0, 1, "none", "None", None),
        (0, None, None, "name", "Foo", "Foo"),
        (0, None, None, "none", "None", "None"),
        (0, None, None, "name", "str", "str"),
        (0, None, None, "generic", "list[Foo]", "list['Foo']"),
        (1, 0, 0, "name", "Foo", "Foo"),
        (0, None, None, "generic", "dict[str, Foo | None]", 'dict[str, "Foo | None"]'),
        (1, 0, 0, "name", "str", "str"),
        (2, 0, 1, "union", "Foo | None", "Foo | None"),
        (3, 2, 0, "name", "Foo", "Foo"),
        (4, 2, 1, "none", "None", "None"),
    ]


def test_nodes_are_in_preorder() -> None:
    code = "x: A[B[C, D], E[F]]\n"
    assert nodes(code, "node_index", "parent_index", "arg_index", "type_name") == [
        (0, None, None, "A"),
        (1, 0, 0, "B"),
        (2, 1, 0, "C"),
        (3, 1, 1, "D"),
        (4, 0, 1, "E"),
        (5, 4, 0, "F"),
    ]


def test_a_type_has_one_id_wherever_it_is() -> None:
    code = "x: int | None\ny: dict[str, 'None | int']\n"
    (whole, _), *_ = expressions(code, "type_id", "type_repr")
    ids = {type_id for type_id, text in nodes(code, "type_id", "type_repr") if text == "int | None"}
    assert ids == {whole}
    other = FileView("other", "f", "pkg/a.py", {LIBCST: pruned(extract_libcst(code).cells)})
    assert type_exprs_norm_v1(type_expressions(other))["type_id"][0] != whole


def test_ids_are_made_of_definitions_and_names() -> None:
    """Of a file that only LibCST has read, too; a definition that moves keeps them."""
    module, inner = (definition_key("repo", "pkg/a.py", path) for path in ("", "f"))
    for code in (CODE, f"# Moved.\n\n{CODE}"):
        assert [expr for (expr,) in expressions(code, "expr_id")] == [
            *(f"type_expr:{inner}.{number:06}" for number in range(4)),
            # A comment behind the last statement of a function is not inside of it.
            *(f"type_expr:{module}.{number:06}" for number in range(2)),
        ]
    types = [type_id for (type_id,) in expressions("import a\nx: int\ny: a.B\n", "type_id")]
    assert types == ["type:repo:builtins.int", "type:repo:a.B"]


def columns_of(table: Table) -> list[str]:
    return [column.name for column in table.columns if column.name not in {"repo_id", "file_id", "path"}]


@pytest.mark.parametrize("code", ["", CODE, "x: '\\ud800'\n"])
def test_columns_are_those_of_the_catalogue(code: str) -> None:
    found = type_expressions(file_of(code))
    for table, cells in (
        (TYPE_EXPRS_NORM_V1, type_exprs_norm_v1(found)),
        (TYPE_NODES_V1, type_nodes_v1(found)),
    ):
        assert list(cells) == columns_of(table)
        for column in table.columns:
            if column.name in cells:
                nulls = array(column, cells[column.name]).null_count
                assert column.nullable or not nulls


def test_the_lists_read_are_those_of_the_witness() -> None:
    lists = {column.name: {field.name for field in column.fields} for column in LIBCST_FILES_V1.columns}
    for name, fields in LIBCST_LISTS.items():
        assert set(fields) <= lists[name]
        assert len(set(fields)) == len(fields)


@pytest.mark.parametrize("libcst", [{}, {"type_exprs": None}, dict.fromkeys(LIBCST_LISTS)])
def test_a_file_that_was_not_read_has_no_types(libcst: dict[str, None]) -> None:
    assert type_expressions(FileView("repo", "file", "a.py", {LIBCST: libcst})) == []


# Signatures in comments.


def signature(code: str) -> list[tuple[str, str | None, str]]:
    found = expressions(code, "expr_role", "target_name", "expr_text", "bstart", "bend")
    for _, _, text, start, end in found:
        assert code.encode()[start:end].decode() == text
    return [(role, name, text) for role, name, text, _, _ in found]


@pytest.mark.parametrize(
    ("head", "comment", "expected"),
    [
        ("def f(a, b):", "(int, 'é') -> bool", [("a", "int"), ("b", "'é'"), "bool"]),
        ("def f():", "() -> None", ["None"]),
        ("def f(a, b):", "(...) -> str  # noqa", ["str"]),
        ("def f(a, *b, **c):", "(int, *str, **Any) -> x", [("a", "int"), ("b", "str"), ("c", "Any"), "x"]),
        ("def f(a, /, b, *, c):", "(A, B, C) -> x", [("a", "A"), ("b", "B"), ("c", "C"), "x"]),
        ("def f(a, b):", "(int) -> x", [(None, "int"), "x"]),
        ("def f(a):", "(int, str) -> x", [(None, "int"), (None, "str"), "x"]),
        ("def f(*a):", "(str) -> x", [(None, "str"), "x"]),
        ("def f(a):", "(*str) -> x", [(None, "str"), "x"]),
        ("class K:\n  def f(self, a):", "(int) -> x", [("a", "int"), "x"]),
        ("class K:\n  def f(self, a):", "(K, int) -> x", [("self", "K"), ("a", "int"), "x"]),
        ("class K:\n  def f(self):", "() -> x", ["x"]),
        ("class K:\n  @classmethod\n  def f(cls, *a):", "(*int) -> x", [("a", "int"), "x"]),
        ("class K:\n  @staticmethod\n  def f(a, b):", "(int) -> x", [(None, "int"), "x"]),
        ("class K:\n  def g(self):\n    def f(a, b):", "(int) -> x", [(None, "int"), "x"]),
    ],
)
@pytest.mark.parametrize("gap", ["  ", "\n      "])
def test_a_signature_is_taken_apart(head: str, comment: str, expected: list[Any], gap: str) -> None:
    code = f"{head}{gap}# type: {comment}\n      pass\n"
    assert signature(code) == [
        ("return", None, each) if isinstance(each, str) else ("param", *each) for each in expected
    ]


@pytest.mark.parametrize("comment", ["int", "(int", "(int, str)", "(*str, int) -> x"])
def test_a_signature_that_cannot_be_taken_apart_is_one_row(comment: str) -> None:
    assert signature(f"def f(a):  # type: {comment}\n    pass\n") == [("signature", None, comment)]


def test_parameters_may_have_comments_of_their_own() -> None:
    head = "def f(a,  # type: int\n      b  # type: str  # why\n      ):\n"
    code = f"{head}    # type: (...) -> K\n    class K: pass\n"
    assert signature(code) == [("param", "a", "int"), ("param", "b", "str  # why"), ("return", None, "K")]
    assert expressions(code, "type_repr") == [("int",), ("str",), ("K",)]
    # The function's own K is not seen by its signature.
    assert expressions(code, "type_id")[2] == expressions(code.replace("class K: pass", "pass"), "type_id")[2]


# Newer syntax, and annotations of several lines.

FORMS = """\
from typing import Callable
def f[T: (int, str), *Ts, **P](*args: *Ts, x: T, y: (
      int |
      # why
      "str"
   ), **kw: P.kwargs) -> Callable[P, T]:
    z: int | \\
       str = 1
    w: ("a"
        "b") = 2
class A[T]:
    x: T
    def g(self, y: T) -> "A[T]": ...
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_forms(newline: str) -> None:
    code = FORMS.replace("\n", newline)
    assert expressions(code, "target_name", "type_repr") == [
        ("args", "*Ts"),
        ("x", "T"),
        ("y", "int | str"),
        ("kw", "P.kwargs"),
        (None, "typing.Callable[P, T]"),
        ("z", "int | str"),
        ("w", "ab"),
        ("x", "T"),
        ("y", "T"),
        (None, "A[T]"),
    ]
    function, method = expressions(code, "type_id")[1], expressions(code, "type_id")[8]
    assert function != method == expressions(code, "type_id")[7]
    check(read(code))
    check(read(f"\ufeff{code}"))


# Files.


def check(source: Source) -> int:
    """Everything that must hold of the types of any file; how many there are."""
    said = libcst_files_v1(source, ExtractOptions()).cells
    if not said:
        return 0
    found = type_expressions(FileView("repo", source.path, source.path, {LIBCST: pruned(said)}))
    types, parts = type_exprs_norm_v1(found), type_nodes_v1(found)
    assert len(set(types["expr_id"])) == len(found)
    places = {}
    for expr_id, text, start, end in rows(types, "expr_id", "expr_text", "bstart", "bend"):
        assert source.utf8[start:end].decode() == text
        places[expr_id] = (start, end)
    uncertain = set()
    for expr_id, name, qualified, start, end in rows(
        parts, "expr_id", "type_name", "is_qualified", "bstart", "bend"
    ):
        if start is not None:
            assert places[expr_id][0] <= start <= end <= places[expr_id][1]
        if (name and not qualified) or name.startswith("."):
            uncertain.add(expr_id)
    assert set(parts["expr_id"]) == set(places)
    nowhere = TypeScope("module", source.path)
    for expr_id, text in rows(types, "expr_id", "type_repr"):
        if expr_id not in uncertain:
            assert read_type(text, nowhere).repr == text
    for kind, text, start, end in rows(parts, "type_kind", "type_repr", "bstart", "bend"):
        # What has no name to be qualified is under its span as it is shown.
        if kind in {"none", "ellipsis"} and start is not None:
            assert source.utf8[start:end].decode() in {text, "NoneType", "types.NoneType"}
    return len(found)


@pytest.mark.parametrize(("name", "least"), [("requests", 300), ("flask", 1000)])
def test_real_packages(name: str, least: int) -> None:
    assert sum(map(check, package(name))) > least


def test_rows_are_the_same_each_time() -> None:
    sources = list(package("flask"))[:10]
    for source in sources:
        cells = pruned(libcst_files_v1(source, ExtractOptions()).cells)
        one, other = (type_expressions(FileView("r", "f", source.path, {LIBCST: cells})) for _ in range(2))
        assert type_exprs_norm_v1(one) == type_exprs_norm_v1(other)
        assert type_nodes_v1(one) == type_nodes_v1(other)


def annotated(texts: list[str], imported: str) -> FileView:
    """A file of module variables with these annotations, made by hand: LibCST takes long for such texts."""
    empty: dict[str, Columns] = {name: {field: [] for field in fields} for name, fields in FIELDS.items()}
    count = len(texts)
    starts = list(accumulate((len(text) + 4 for text in texts), initial=3))[:-1]
    empty["type_exprs"] = {
        "owner_bstart": [None] * count,
        "owner_bend": [None] * count,
        "kind": ["annotation"] * count,
        "role": ["variable"] * count,
        "name": ["x"] * count,
        "text": texts,
        "bstart": starts,
        "bend": [start + len(text) for start, text in zip(starts, texts, strict=True)],
        "line": list(range(1, count + 1)),
    }
    empty["imports"] = {
        "kind": ["from"],
        "module": [imported],
        "name": ["b"],
        "asname": ["c"],
        "level": [0],
        "is_star": [False],
        "stmt_bstart": [0],
        "alias_bstart": [0],
        "alias_bend": [1],
    }
    return FileView("repo", "file", "a.py", {LIBCST: empty})


@pytest.mark.parametrize(
    "texts",
    [
        ["|".join(["int"] * 5_000)],
        ["'" + "int | " * 200_000 + "int'"],
        [f"{'a[' * 2_000}b{']' * 2_000}"],
        [f"{'a[' * 49}{'b,' * 4_800}{']' * 49}"] * 30,
        [f"{'a[' * 49}{i}{']' * 49}" for i in range(1_000)],
        [f"list[c[c[c[{i}]]]]" for i in range(2_000)],
        [f"tuple[{'c,' * i}]" for i in range(400)],
        [f"'K{i} | None'" for i in range(5_000)],
    ],
    ids=["terms", "string", "levels", "deep_and_wide", "deep", "long_name", "long_names", "many"],
)
def test_hostile_files(texts: list[str]) -> None:
    size = sum(map(len, texts))
    began = time.process_time()
    found = type_expressions(annotated(texts, "a" * 240))
    columns = type_nodes_v1(found)
    assert time.process_time() - began < 2 + size / 20_000
    assert sum(map(len, columns["type_repr"])) < 5_000 + 150 * size
    assert sum(map(len, found[0].type_ids)) < 5_000 + 50 * size


def test_nested_definitions() -> None:
    code = "".join(f"{'  ' * i}class K{i}:\n{'  ' * i}  x: K{i}\n" for i in range(80))
    assert expressions(code, "type_repr")[-1] == ("K79",)
    check(read(code))
