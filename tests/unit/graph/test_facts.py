"""Facts about files: what is contained, defined, imported, used and bound; and that every graph is whole."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from textwrap import dedent
from typing import Any

import pytest
from msgspec import structs

from codeanatomy.file_view import FileView, iter_rows
from codeanatomy.graph import definitions
from codeanatomy.graph.context import Context
from codeanatomy.graph.facts import FILE_LISTS, SHARED_LISTS
from codeanatomy.node_ids import definition_key, file_id, module_id
from support import callgraph_score as score
from support.graph_checks import (
    Row,
    Sources,
    View,
    files_of,
    graph_from,
    names,
    problems_of,
    text_problems_of,
)
from support.graph_stage import Graph, graph_files, graph_of, whole_graph
from support.relate_stage import sources_below

MAIN = file_id("test", "main.py")
# The type of the scope of a list comprehension: from 3.12 on it is inlined.
COMPREHENSION = "function" if sys.version_info < (3, 12) else "comprehension"


def view_of(sources: Sources | str | bytes) -> View:
    """The graph of some sources, which is whole."""
    if isinstance(sources, str):
        sources = dedent(sources)
    texts = sources if isinstance(sources, Mapping) else {"main.py": sources}
    graph = graph_of(texts)
    assert problems_of(graph) == []
    assert text_problems_of(graph, texts) == []
    return View(graph)


def told(rows: list[Row], *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(row[field] for field in fields) for row in rows]


# What is inside of what

LAYOUT = {
    "setup.py": "",
    "src/pkg/__init__.py": "",
    "src/pkg/core.py": "",
    "src/pkg/sub/deep.py": "",
    "space/one/part.py": "",
    "types/__init__.pyi": "",
    "odd-name.py": "",
}


def test_packages_are_folders_that_modules_are_imported_from() -> None:
    view = view_of(LAYOUT)
    assert told(view.all("PACKAGE"), "qualname", "name", "subkind", "path", "file_id") == [
        ("space", "space", "namespace", "space", None),
        ("space.one", "one", "namespace", "space/one", None),
        ("pkg", "pkg", "regular", "src/pkg", None),
        ("pkg.sub", "sub", "namespace", "src/pkg/sub", None),
        ("types", "types", "regular", "types", None),
    ]


def test_modules_are_named_as_they_are_imported() -> None:
    view = view_of(LAYOUT)
    assert told(view.all("MODULE"), "path", "qualname", "name", "subkind") == [
        ("odd-name.py", "odd-name", "odd-name", "module"),
        ("setup.py", "setup", "setup", "module"),
        ("space/one/part.py", "space.one.part", "part", "module"),
        ("src/pkg/__init__.py", "pkg", "pkg", "package"),
        ("src/pkg/core.py", "pkg.core", "core", "module"),
        ("src/pkg/sub/deep.py", "pkg.sub.deep", "deep", "module"),
        ("types/__init__.pyi", "types", "types", "package"),
    ]
    assert [names(view.sources("DECLARES_MODULE", row), "path") for row in view.all("MODULE")] == [
        [path] for path in sorted(LAYOUT)
    ]


def test_the_repository_contains_files_packages_and_modules() -> None:
    view = view_of(LAYOUT)
    found = {
        (outer["node_kind"], outer["qualname"]): sorted(
            (inner["node_kind"], inner["qualname"] or inner["path"])
            for inner in view.targets("CONTAINS", outer)
        )
        for outer in view.nodes.values()
        if view.out("CONTAINS", outer)
    }
    assert found == {
        ("REPOSITORY", None): [
            *(("FILE", path) for path in sorted(LAYOUT)),
            *(("MODULE", name) for name in ("odd-name", "setup")),
            *(("PACKAGE", name) for name in ("pkg", "space", "types")),
        ],
        ("PACKAGE", "pkg"): [("MODULE", "pkg"), ("MODULE", "pkg.core"), ("PACKAGE", "pkg.sub")],
        ("PACKAGE", "pkg.sub"): [("MODULE", "pkg.sub.deep")],
        ("PACKAGE", "space"): [("PACKAGE", "space.one")],
        ("PACKAGE", "space.one"): [("MODULE", "space.one.part")],
        ("PACKAGE", "types"): [("MODULE", "types")],
    }


def test_a_package_may_be_inside_of_a_namespace() -> None:
    view = view_of({"space/part/__init__.py": "", "main.py": "import space.part\n"})
    assert told(view.all("PACKAGE"), "qualname", "subkind", "path") == [
        ("space", "namespace", "space"),
        ("space.part", "regular", "space/part"),
    ]


def test_a_folder_above_all_packages_is_none() -> None:
    view = view_of({"lib/pkg/__init__.py": ""})
    assert told(view.all("PACKAGE"), "qualname", "path") == [("pkg", "lib/pkg")]


def test_a_package_at_the_root_is_a_module() -> None:
    view = view_of({"__init__.py": "def f(): ...\n", "mod.py": ""})
    assert view.all("PACKAGE") == []
    assert {row["node_kind"] for row in view.sources("CONTAINS", view.one("MODULE", "mod"))} == {"REPOSITORY"}


NESTED = """
    class A:
        class B:
            def f(self):
                def g(): ...
                return lambda: (lambda: 0)
        h = lambda: 1
        def k(self, x=lambda: 2): return [lambda: 3 for _ in x]
    if A:
        def k(): ...
    else:
        async def k(): ...
"""


def test_definitions_are_inside_of_definitions() -> None:
    view = view_of(NESTED)
    rows = sorted((*view.all("CLASS"), *view.all("FUNCTION")), key=lambda row: row["bstart"])
    found = [(row["qualname"], row["subkind"], row["name"], row["line"]) for row in rows]
    assert found == [
        ("main.A", None, "A", 2),
        ("main.A.B", None, "B", 3),
        ("main.A.B.f", "method", "f", 4),
        ("main.A.B.f.g", "function", "g", 5),
        ("main.A.B.f.<lambda1>", "lambda", "<lambda1>", 6),
        ("main.A.B.f.<lambda1>.<lambda1>", "lambda", "<lambda1>", 6),
        ("main.A.<lambda1>", "lambda", "<lambda1>", 7),
        ("main.A.k", "method", "k", 8),
        ("main.A.<lambda2>", "lambda", "<lambda2>", 8),
        ("main.A.k.<lambda1>", "lambda", "<lambda1>", 8),
        ("main.k", "function", "k", 10),
        ("main.k", "async_function", "k", 12),
    ]
    for row in rows:
        [outer] = view.sources("CONTAINS", row)
        assert outer["qualname"] == row["qualname"].rpartition(".")[0]
    assert names(view.targets("CONTAINS", view.one("MODULE"))) == ["A", "k", "k"]


def test_lambdas_are_numbered_in_the_order_of_the_source() -> None:
    """Not of the tree, which has the keys of a dictionary before its values, decorators after a body."""
    view = view_of("d = {(lambda: 1): (lambda: 2)}\n@(lambda f: f)\ndef g(x=lambda: 3): return lambda: 4\n")
    assert told(view.all("FUNCTION", subkind="lambda"), "bstart", "qualname") == [
        (6, "main.<lambda1>"),
        (19, "main.<lambda2>"),
        (33, "main.<lambda3>"),
        (54, "main.<lambda4>"),
        (73, "main.g.<lambda1>"),
    ]


# The names of relations are those of nodes


def named_otherwise(files: list[FileView]) -> Iterator[tuple[str, str, str]]:
    """Names that relations and nodes do not agree upon."""
    view = View(graph_from(files, "default"))
    for file in files:
        for end in ("src", "dst"):
            for node, name in iter_rows(file.rows("relations_v1"), f"{end}_id", f"{end}_qname"):
                found = view.nodes[node]["qualname"] if node is not None and name is not None else name
                # Of scopes the name itself is told.
                if found != name and view.nodes[node]["node_kind"] != "SCOPE":
                    yield file.path, name, found


@pytest.mark.parametrize("construct", sorted({case.construct for case in score.cases()}))
def test_qualified_names_are_those_of_relations(construct: str) -> None:
    """Of two cases of each construct."""
    cases = [case for case in score.cases() if case.construct == construct]
    for case in cases[:: max(len(cases) // 2, 1)][:2]:
        files = graph_files(sources_below(case.folder), {}, case.repo_id)
        assert list(named_otherwise(files)) == [], case.folder


def test_qualified_names_of_a_package_are_those_of_relations() -> None:
    assert list(named_otherwise(files_of("requests"))) == []


# Functions and what hangs on them


def test_parameters_of_every_form() -> None:
    view = view_of("def f(a, /, b=1, *args, c, d=2, **kw): ...\ng = lambda x, *, y=0: x\n")
    f, g = view.all("FUNCTION")
    assert [view.props(row)["parameter_count"] for row in (f, g)] == [6, 2]
    assert told(view.out("HAS_PARAMETER", f), "ordinal", "role") == [
        (0, "positional_only"),
        (1, "positional"),
        (2, "vararg"),
        (3, "keyword_only"),
        (4, "keyword_only"),
        (5, "kwarg"),
    ]
    found = view.targets("HAS_PARAMETER", f)
    assert told(found, "name", "qualname", "subkind") == [
        ("a", "main.f.a", "positional_only"),
        ("b", "main.f.b", "positional"),
        ("args", "main.f.args", "vararg"),
        ("c", "main.f.c", "keyword_only"),
        ("d", "main.f.d", "keyword_only"),
        ("kw", "main.f.kw", "kwarg"),
    ]
    assert [view.props(row)["has_default"] for row in found] == [False, True, False, False, True, False]
    assert names(view.targets("HAS_PARAMETER", g), "qualname") == ["main.<lambda1>.x", "main.<lambda1>.y"]


def test_kinds_of_functions() -> None:
    view = view_of("""
        class A:
            def m(self): ...
            async def n(self): ...
            @staticmethod
            def s(): ...
        async def f(): ...
        def g(): ...
    """)
    assert told(view.all("FUNCTION"), "name", "subkind") == [
        ("m", "method"),
        ("n", "async_method"),
        ("s", "method"),
        ("f", "async_function"),
        ("g", "function"),
    ]


def test_decorators_in_the_order_of_the_source() -> None:
    view = view_of("import functools\n@first\n@functools.lru_cache(None)\nclass A: ...\n")
    cls = view.one("CLASS")
    assert told(view.targets("HAS_DECORATOR", cls), "name", "line") == [
        ("first", 2),
        ("functools.lru_cache(None)", 3),
    ]
    assert names(view.out("HAS_DECORATOR", cls), "ordinal") == [0, 1]
    assert [view.sources("DECORATES", cls)] == [view.targets("HAS_DECORATOR", cls)]
    assert view.props(view.one("DECORATOR", "first")) == {"unresolved": "unknown_value"}
    # The class begins at `class`.
    assert cls["line"] == 4


def test_docstrings() -> None:
    view = view_of('''
        "Module."
        class A:
            """Class."""
            def f(self):
                r"""Raw\\d."""
            def g(self):
                f"none"
            def h(self):
                b"none"
            def i(self):
                "one " "two"
            x = 1
            "none"
    ''')
    assert [
        (view.sources("HAS_DOCSTRING", row)[0]["qualname"], view.props(row)["text"])
        for row in view.all("DOCSTRING")
    ] == [
        ("main", "Module."),
        ("main.A", "Class."),
        ("main.A.f", "Raw\\d."),
        ("main.A.i", "one two"),
    ]


def test_bases_are_counted_without_keywords() -> None:
    view = view_of("class A(dict, list, metaclass=type): ...\nclass B: ...\n")
    assert [view.props(row)["base_count"] for row in view.all("CLASS")] == [2, 0]


def test_comments_are_of_their_file() -> None:
    view = view_of("# one\nx = 1  # two\n")
    assert [view.props(row)["text"] for row in view.all("COMMENT")] == ["# one", "# two"]
    assert view.targets("HAS_COMMENT", view.one("FILE")) == view.all("COMMENT")


# Imports

IMPORTS = {
    "pkg/__init__.py": "from .mod import f as g, h\nfrom . import mod\nfrom .mod import *\n",
    "pkg/mod.py": dedent("""\
        import os.path, sys as system
        from os import path as p
        from ... import up
        def f(): ...
        def h(): ...
    """),
}


def test_imports_are_told_as_written() -> None:
    view = view_of(IMPORTS)
    assert told(view.all("IMPORT_ALIAS"), "name", "qualname", "subkind") == [
        ("g", ".mod.f", "from"),
        ("h", ".mod.h", "from"),
        ("mod", ".mod", "from"),
        ("*", ".mod.*", "star"),
        ("os", "os.path", "import"),
        ("system", "sys", "import"),
        ("p", "os.path", "from"),
        ("up", "...up", "from"),
    ]
    assert view.props(view.one("IMPORT_ALIAS", "up")) == {"unresolved": "above_all_packages"}
    assert view.props(view.one("IMPORT_ALIAS", "g")) == {}


def test_imports_lead_to_modules_and_to_what_is_meant() -> None:
    view = view_of(IMPORTS)

    def reached(kind: str) -> set[tuple[str, str, str]]:
        return {
            (
                view.nodes[edge["src_node_id"]]["name"],
                view.nodes[edge["dst_node_id"]]["node_kind"],
                view.nodes[edge["dst_node_id"]]["qualname"],
            )
            for edge in view.edges[kind]
        }

    assert reached("IMPORTS_MODULE") == {
        ("g", "MODULE", "pkg.mod"),
        ("h", "MODULE", "pkg.mod"),
        ("mod", "MODULE", "pkg"),
        ("*", "MODULE", "pkg.mod"),
        ("os", "EXTERNAL_MODULE", "os.path"),
        ("system", "EXTERNAL_MODULE", "sys"),
        ("p", "EXTERNAL_MODULE", "os"),
    }
    assert {row for row in reached("IMPORTS_NAME") if row[0] in "ghmod"} == {
        ("g", "FUNCTION", "pkg.mod.f"),
        ("h", "FUNCTION", "pkg.mod.h"),
        ("mod", "MODULE", "pkg.mod"),
    }
    assert {row["subkind"] for row in view.all("EXTERNAL_MODULE")} == {"python-stdlib"}
    assert {(edge["role"], edge["path"]) for edge in view.edges["RE_EXPORTS"]} >= {("g", "pkg/__init__.py")}


# Uses

USES = """
    import os
    def f(q):
        q.run()
        missing()
        os.getcwd()
        len(q)
        del q.x
"""


def test_what_is_not_found_says_why() -> None:
    view = view_of(USES)
    nodes = [row for kind in ("NAME_REF", "ATTRIBUTE_REF", "CALLSITE") for row in view.all(kind)]
    unresolved = {
        (row["node_kind"], row["name"]): view.props(row)["unresolved"] for row in nodes if view.props(row)
    }
    assert unresolved == {
        ("NAME_REF", "missing"): "unbound",
        ("ATTRIBUTE_REF", "run"): "unknown_receiver",
        ("ATTRIBUTE_REF", "x"): "unknown_receiver",
        ("CALLSITE", "q.run"): "unknown_receiver",
        ("CALLSITE", "missing"): "unknown_value",
    }
    for row in nodes:
        kinds = ("REFERS_TO", "CALLS", "CALLS_NAME", "INSTANTIATES")
        has_target = any(view.out(kind, row) for kind in kinds)
        assert has_target == ("unresolved" not in view.props(row)), row


def test_names_and_attributes_say_how_they_are_used() -> None:
    view = view_of("def f():\n    global a\n    a = b.c\n    b.d, e[0] = 1, 2\n    del a, b.f\n")
    assert told(view.all("NAME_REF"), "name", "subkind") == [
        ("a", "declare"),
        ("a", "store"),
        ("b", "load"),
        ("b", "load"),
        ("e", "load"),
        ("a", "del"),
        ("b", "load"),
    ]
    assert told(view.all("ATTRIBUTE_REF"), "name", "subkind") == [("c", "load"), ("d", "store"), ("f", "del")]


def test_calls_and_their_arguments() -> None:
    view = view_of("a.b(1, *c, key=2, **d)\ne()()\nf[0](g)\n(lambda: 0)()\n")
    assert told(view.all("CALLSITE"), "name", "subkind") == [
        ("a.b", "attribute"),
        ("e", "name"),
        (None, "call"),
        (None, "subscript"),
        (None, "other"),
    ]
    call = view.all("CALLSITE")[0]
    assert told(view.targets("HAS_ARGUMENT", call), "name", "subkind") == [
        (None, "positional"),
        (None, "star"),
        ("key", "keyword"),
        (None, "double_star"),
    ]
    assert told(view.out("HAS_ARGUMENT", call), "ordinal", "role") == [
        (0, None),
        (1, None),
        (2, "key"),
        (3, None),
    ]


def test_a_bare_generator_has_the_parentheses_of_its_call() -> None:
    """As CPython places it, and with it the arguments that are passed on."""
    text = "def f(a): ...\nf(x for x in y)\nf((x for x in y))\n"
    view = view_of(text)
    bare, inner = view.all("ARGUMENT")
    assert text[bare["bstart"] : bare["bend"]] == "(x for x in y)"
    assert text[inner["bstart"] : inner["bend"]] == "(x for x in y)"
    for row in (bare, inner):
        assert names(view.targets("PASSES_TO", row)) == ["a"]
        assert names(view.targets("SYNTAX_OF", row), "subkind") == ["GeneratorExp"]


def test_a_bare_generator_over_lines() -> None:
    view_of("f(\n    x for x in y\n)\n")


def test_literals() -> None:
    view = view_of("x = 1, -2, 1.5, 2j, 'a' 'b', b'c', None, True, ..., f'a{3}b', 0xff, 1_0, 1e400\n")
    assert told(view.all("LITERAL"), "name", "subkind") == [
        ("1", "int"),
        ("2", "int"),
        ("1.5", "float"),
        ("2j", "complex"),
        ("'ab'", "str"),
        ("b'c'", "bytes"),
        ("None", "NoneType"),
        ("True", "bool"),
        ("Ellipsis", "ellipsis"),
        ("3", "int"),
        ("255", "int"),
        ("10", "int"),
        ("inf", "float"),
    ]


def test_an_integer_too_long_for_decimal_digits_is_an_integer() -> None:
    [literal] = view_of(f"x = 0x{'e' * 5000}\n").all("LITERAL")
    assert (literal["name"][:4], literal["subkind"]) == ("0xee", "int")


def test_nodes_are_spelled_by_nodes_of_the_tree() -> None:
    view = view_of("@d\nclass A:\n    'Doc.'\n    def f(self, x: int): return x.y(1)\nimport a as b\n")
    spelled = {
        (row["node_kind"], row["name"]): names(view.targets("SYNTAX_OF", row), "subkind")
        for row in view.nodes.values()
        if view.out("SYNTAX_OF", row)
    }
    assert spelled == {
        ("MODULE", "main"): ["Module"],
        ("CLASS", "A"): ["ClassDef"],
        ("FUNCTION", "f"): ["FunctionDef"],
        ("PARAMETER", "self"): ["arg"],
        ("PARAMETER", "x"): ["arg"],
        ("DECORATOR", "d"): ["Name"],
        ("DOCSTRING", None): ["Constant"],
        ("IMPORT_ALIAS", "b"): ["alias"],
        ("NAME_REF", "d"): ["Name"],
        ("NAME_REF", "int"): ["Name"],
        ("NAME_REF", "x"): ["Name"],
        ("ATTRIBUTE_REF", "y"): ["Attribute"],
        ("CALLSITE", "x.y"): ["Call"],
        ("ARGUMENT", None): ["Constant"],
        ("LITERAL", "1"): ["Constant"],
        ("LITERAL", "'Doc.'"): ["Constant"],
        ("TYPE_EXPR", "int"): ["Name"],
    }


# Scopes


def test_bindings_and_where_they_come_from() -> None:
    view = view_of("""
        x = 1
        def f(a):
            global x, y
            b = a
            def g():
                nonlocal b
                b = a
            y = 3
            import os
        class C:
            def __init__(self): self.v = 1
            __p = 1
    """)
    assert {(row["qualname"], row["subkind"]) for row in view.all("BINDING")} == {
        ("main.x", "local"),
        ("main.y", "local"),
        ("main.f", "local"),
        ("main.C", "local"),
        ("main.f.a", "parameter"),
        ("main.f.x", "global"),
        ("main.f.y", "global"),
        ("main.f.b", "local"),
        ("main.f.g", "local"),
        ("main.f.os", "import"),
        ("main.f.g.a", "free"),
        ("main.f.g.b", "nonlocal"),
        ("main.C.__init__", "local"),
        ("main.C._C__p", "local"),
        ("main.C.v", "attribute"),
        ("main.C.__init__.self", "parameter"),
    }
    moved = {
        (
            view.nodes[edge["src_node_id"]]["qualname"],
            view.nodes[edge["dst_node_id"]]["qualname"],
            edge["role"],
        )
        for edge in view.edges["BINDING_RESOLVES_TO"]
    }
    assert moved == {
        ("main.f.x", "main.x", "global"),
        ("main.f.y", "main.y", "global"),
        ("main.f.g.b", "main.f.b", "nonlocal"),
        ("main.f.g.a", "main.f.a", "free"),
    }


def test_scopes_are_nested_and_owned() -> None:
    view = view_of("class A:\n    def f(self): return [x for x in (lambda: self)()]\n")
    found = []
    for row in view.all("SCOPE"):
        [owner], around = view.sources("OWNS_SCOPE", row), view.targets("SCOPE_PARENT", row)
        found.append((row["subkind"], row["name"], row["qualname"], owner["node_kind"], names(around)))
    assert sorted(found, key=lambda row: row[2]) == [
        ("module", "top", "main", "MODULE", []),
        ("class", "A", "main.A", "CLASS", ["top"]),
        ("function", "f", "main.A.f", "FUNCTION", ["A"]),
        ("function", "lambda", "main.A.f.<lambda1>", "FUNCTION", ["f"]),
        (COMPREHENSION, "listcomp", "main.A.f.<listcomp>", "AST_NODE", ["f"]),
    ]


def test_variables_of_comprehensions_are_not_those_of_the_scope_around_them() -> None:
    """From 3.12 on the symbol tables list them there, too, and the code around them has their events."""
    text = (
        "y = 1\nclass A:\n    y = 2\n    z = [y + x for x in y]\n    w = [lambda: x for x in z]\n"
        "def f(a):\n    b = [[b for b in c] for c in a]\n    return [d := a for a in b]\n"
    )
    view = view_of(text)
    bindings = [name for name in names(view.all("BINDING"), "qualname") if "<" not in name]
    assert sorted(bindings) == [
        *("main.A", "main.A.w", "main.A.y", "main.A.z"),
        *("main.f", "main.f.a", "main.f.b", "main.f.d", "main.y"),
    ]
    inner = "main.f.<listcomp>.<listcomp>"
    accessed = {
        (row["line"], row["node_kind"][:3], *names(view.targets("EVENT_OF", row), "qualname"))
        for kind in ("DEF_EVENT", "USE_EVENT")
        for row in view.all(kind)
        if row["bstart"] is not None and row["line"] in {4, 7, 8}
    }
    assert accessed == {
        *((4, "DEF", "main.A.z"), (4, "DEF", "main.A.<listcomp>.x")),
        *((4, "USE", "main.y"), (4, "USE", "main.A.<listcomp>.x"), (4, "USE", "main.A.y")),
        *((7, "DEF", "main.f.b"), (7, "DEF", "main.f.<listcomp>.c"), (7, "USE", "main.f.<listcomp>.c")),
        *((7, "DEF", f"{inner}.b"), (7, "USE", f"{inner}.b"), (7, "USE", "main.f.a")),
        *((8, "DEF", "main.f.d"), (8, "DEF", "main.f.<listcomp>.a")),
        *((8, "USE", "main.f.<listcomp>.a"), (8, "USE", "main.f.b")),
    }


# Files that are out of the ordinary


def test_an_empty_file() -> None:
    view = view_of("")
    kinds = Counter(row["node_kind"] for row in view.nodes.values())
    assert kinds == {
        "REPOSITORY": 1,
        "FILE": 1,
        "MODULE": 1,
        "AST_NODE": 1,
        "SCOPE": 1,
        "CODE_UNIT": 1,
        "CFG_BLOCK": 2,
        # A constant is returned by one instruction.
        "INSTRUCTION": 2 if sys.version_info[:2] in {(3, 12), (3, 13)} else 3,
    }
    assert view.props(view.one("FILE"))["size_bytes"] == 0


def test_a_file_that_nobody_can_parse_stays() -> None:
    view = view_of({"main.py": "def good(): ...\nx = = 1\n", "other.py": "import main\n"})
    broken = [row for row in view.nodes.values() if row["path"] == "main.py"]
    assert {row["node_kind"] for row in broken} >= {"FILE", "MODULE", "TS_ERROR"}
    assert view.one("MODULE", "main")["bstart"] is None
    errors = {row["node_id"] for row in view.all("TS_ERROR")}
    assert {edge["dst_node_id"] for edge in view.edges["HAS_DIAGNOSTIC"]} >= errors
    [imported] = view.targets("IMPORTS_MODULE", view.one("IMPORT_ALIAS"))
    assert imported == view.one("MODULE", "main")


def test_identifiers_in_other_letters() -> None:
    """The compiler has names in a normal form, the source as they are written."""
    view = view_of("def größe(名=1): return 名.ü\nﬁ = größe(名=2)\n")
    assert view.one("PARAMETER")["qualname"] == "main.größe.名"
    assert names(view.targets("PASSES_TO", view.one("ARGUMENT"))) == ["名"]
    assert names(view.targets("WRITES", view.one("NAME_REF", "ﬁ"))) == ["fi"]
    assert names(view.targets("CALLS", view.one("CALLSITE"))) == ["größe"]


def test_lines_of_other_systems() -> None:
    raw = b"x = 1\r\ndef f(a):\r\n    return a\r\n"
    view = view_of(raw)
    assert told(view.all("FUNCTION"), "bstart", "bend", "line") == [(7, 30, 2)]
    assert names(view.all("NAME_REF"), "line") == [1, 3]
    plain = view_of(raw.replace(b"\r\n", b"\n"))
    assert Counter(names(view.nodes.values(), "node_kind")) == Counter(
        names(plain.nodes.values(), "node_kind")
    )


def test_a_stub_is_one() -> None:
    view = view_of({"a.py": "", "a.pyi": ""})
    assert told(view.all("FILE"), "path", "subkind") == [("a.py", "module"), ("a.pyi", "stub")]


def test_a_file_that_was_not_read_is_a_node() -> None:
    row = {"skipped_reason": "too large", "size_bytes": 7, "is_stub": False}
    file = FileView("test", MAIN, "main.py", {"repo_files_v1": row})
    graph = graph_from([file])
    assert problems_of(graph) == []
    view = View(graph)
    assert {row["node_kind"] for row in graph.nodes} == {"REPOSITORY", "FILE"}
    assert view.one("FILE")["subkind"] == "unread"
    assert view.props(view.one("FILE")) == {"size_bytes": 7, "unread_reason": "too large"}


# Without LibCST

SILENT = dedent("""
    import os, a.b
    from m import *
    @wrap
    class A(B, metaclass=M):
        x: int = 1
        def f(self, p, *args: int, k, **kw) -> str:
            self.v = f(k, *args, n=1, **kw)
            del p
            return f(x for x in y)
    g = [lambda a, /, b: i for i in g]
""")
# What only LibCST places or spells.
UNKNOWN_WITHOUT = {"COMMENT"}


def silenced(sources: Sources) -> list[FileView]:
    """Files of which LibCST says nothing."""
    return [_without_libcst(file) for file in graph_files(sources, {}, "test")]


def _without_libcst(file: FileView) -> FileView:
    cells = dict.fromkeys(file.tables["libcst_files_v1"])
    silent = FileView(*file.key, {**file.tables, "libcst_files_v1": {**cells, "path": file.path}})
    # Names that LibCST alone knows have no ids, and so no relations.
    names, relations = set(silent.ids.of_kind("NAME_REF")), file.rows("relations_v1")
    kept = [kind != "NAME_REF" or src in names for kind, src in iter_rows(relations, "src_kind", "src_id")]
    known = {name: list(compress(column, kept)) for name, column in relations.items()}
    return silent.with_tables({"relations_v1": known})


def differences(sources: Sources) -> set[tuple[str, str]]:
    """Kinds and columns of nodes that differ without LibCST."""
    normal, silent = graph_from(graph_files(sources, {}, "test")), graph_from(silenced(sources))
    assert problems_of(silent) == []
    rows = [{_where(row): row for row in graph.nodes} for graph in (normal, silent)]
    found = set()
    for node in rows[0].keys() | rows[1].keys():
        one, other = (each.get(node) for each in rows)
        kind = (one or other or {})["node_kind"]
        if one is None or other is None:
            found.add((kind, "missing"))
        else:
            found |= {(kind, name) for name in one if one[name] != other[name]}
    return found


def _where(row: Row) -> tuple[Any, ...]:
    """A name's number depends on how many are known, its place does not."""
    if row["node_kind"] == "NAME_REF" and row["bstart"] is not None:
        return row["node_kind"], row["path"], row["bstart"], row["bend"]
    return (row["node_id"],)


def test_the_tree_says_the_same_as_libcst() -> None:
    assert differences({"main.py": SILENT}) == set()


def test_the_tree_gives_the_same_edges_and_properties() -> None:
    normal = graph_of({"main.py": SILENT})
    silent = graph_from(silenced({"main.py": SILENT}))
    kinds = [Counter(row["edge_kind"] for row in graph.edges) for graph in (normal, silent)]
    # Which name an annotation is about is told by LibCST.
    assert {
        name: kinds[0][name] - kinds[1][name] for name in kinds[0] if kinds[0][name] != kinds[1][name]
    } == {"HAS_ANNOTATION": 1}
    assert properties(silent) == properties(normal)


def properties(graph: Graph) -> set[tuple[Any, ...]]:
    values = ("value_string", "value_int", "value_bool")
    return {(row["entity_id"], row["prop_key"], *(row[name] for name in values)) for row in graph.props}


def test_what_the_tree_does_not_know_is_missing_or_unnamed() -> None:
    text = "def f():\n    'Doc.'\n    global x  # why\n    try: pass\n    except E as e: pass\n"
    allowed = {(kind, "missing") for kind in UNKNOWN_WITHOUT}
    # LibCST alone knows the names after `global` and `as`, so others have other numbers without it.
    allowed |= {("NAME_REF", column) for column in ("missing", "node_id", "name", "subkind")}
    assert differences({"main.py": text}) <= allowed


def test_the_tree_knows_how_imports_are_bound() -> None:
    assert differences({"main.py": "import a.b as c\nfrom ..x import y as z\n"}) == set()


def test_the_tree_knows_which_parameters_have_defaults() -> None:
    text = "def f(a, /, b, c=1, *, d, e=2): ...\n"
    silent, normal = graph_from(silenced({"main.py": text})), graph_of({"main.py": text})
    assert properties(silent) == properties(normal)


def test_the_tree_knows_what_is_called_and_what_decorates() -> None:
    assert differences({"main.py": "@a.b\ndef f(): c.d.e()\n"}) == set()
    # The text of a decorator that is more than names is LibCST's.
    assert differences({"main.py": "@a.b(1)\ndef f(): ...\n"}) == {("DECORATOR", "name")}


def test_the_tree_knows_docstrings() -> None:
    assert differences({"main.py": "def f():\n    'Doc.'\n"}) == set()


@pytest.mark.xfail(reason="the tree does not say on which line the identifier of an attribute is")
def test_the_tree_knows_the_lines_of_attributes() -> None:
    assert differences({"main.py": "x = (a\n     .b\n     .c)\n"}) == set()


# A list that fails


@pytest.mark.parametrize("name", ["classes", "calls", "bindings", "blocks", "type_exprs"])
def test_a_list_that_fails_costs_itself_and_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Context) -> dict[str, Any]:
        raise ValueError("ours")

    monkeypatch.setitem(FILE_LISTS, name, fail)
    view = View(graph_of({"main.py": "class A:\n    x: int = f()\n"}))
    row = view.one("DIAGNOSTIC", "not_graphed")
    assert view.props(row) == {"severity": "error", "message": f"{name}: ValueError: ours"}
    assert names(view.sources("HAS_DIAGNOSTIC", row)) == ["main.py"]
    assert view.all("NAME_REF")


@pytest.mark.parametrize("name", sorted(SHARED_LISTS.keys() - FILE_LISTS.keys()))
def test_a_list_of_the_repository_that_fails_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Context) -> dict[str, Any]:
        raise ValueError("ours")

    monkeypatch.setitem(SHARED_LISTS, name, fail)
    [file] = graph_files({"main.py": "len()\n"}, {}, "test")
    made = whole_graph(file)
    assert "not_graphed" in made.tables["cpg_nodes"].column("name").to_pylist()


# One list at a time


def context_of(text: str) -> Context:
    [file] = graph_files({"main.py": text}, {}, "test")
    return Context(file)


def test_a_context_finds_what_stands_at_a_place() -> None:
    context = context_of("class A:\n    def f(self): ...\n")
    assert context.owner_id(None, None) == module_id(MAIN)
    assert context.owner_id(13, 29) == f"function:{definition_key('test', 'main.py', 'A.f')}"
    assert context.owner_id(13, 30) is None
    assert context.definitions[0, 29].kind == "CLASS"
    syntax = context.syntax
    assert [syntax.kind[node] for node in syntax.at(13, 29)] == ["FunctionDef"]
    assert syntax.first(13, 29, frozenset({"ClassDef"})) is None
    assert syntax.last(1, 2) is None
    assert syntax.id_of(None) is None


@pytest.mark.parametrize(
    ("make", "text", "expected"),
    [
        (definitions.classes, "class A: ...\n", (".A",)),
        (definitions.functions, "f = lambda: 0\n", (".<lambda1>",)),
    ],
)
def test_single_lists(
    make: Callable[[Context], Mapping[str, Any]], text: str, expected: tuple[str, ...]
) -> None:
    assert tuple(sorted(make(context_of(text))["qualname"])) == expected


def test_an_odd_row_costs_its_list() -> None:
    (file,) = graph_files({"main.py": "def f(): ...\n"}, {}, "test")
    odd = {**file.tables, "tree_sitter_files_v1": {"errors": {"odd": [1]}, "missing": {}}}
    made = whole_graph(structs.replace(file, tables=odd), "default")
    nodes = made.tables["cpg_nodes"].to_pylist()
    assert [row["name"] for row in nodes if row["node_kind"] == "DIAGNOSTIC"] == ["not_graphed"]
    assert [row["name"] for row in nodes if row["node_kind"] == "FUNCTION"] == ["f"]


def test_folders_and_files_with_dots_have_packages() -> None:
    paths = ("v1.2/pkg/x.py", "dir.py/inner.py", "names/a.b.py", "foo.test.py", "plain/__init__.py")
    graph = graph_of(dict.fromkeys(paths, "x = 1\n"))
    found = {row["qualname"]: row["path"] for row in graph.nodes if row["node_kind"] == "PACKAGE"}
    assert found == {
        "v1.2": "v1.2",
        "v1.2.pkg": "v1.2/pkg",
        "dir.py": "dir.py",
        "names": "names",
        "plain": "plain",
    }


def test_identifiers_that_the_compiler_spells_differently() -> None:
    source = "def \ufb01(\uff41): return \uff41 + a\n\ufb01(1)\n"
    graph = graph_of({"main.py": source})
    assert problems_of(graph) == []
    (parameter,) = (row for row in graph.nodes if row["node_kind"] == "PARAMETER")
    assert (parameter["name"], parameter["qualname"]) == ("\uff41", "main.fi.a")
    assert [row["dst_node_id"] for row in graph.edges if row["edge_kind"] == "PASSES_TO"] == [
        parameter["node_id"]
    ]
