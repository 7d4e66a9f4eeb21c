"""Modules, scopes and the names that no symbol table lists; and that every end of a row can be found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, compress
from textwrap import dedent
from typing import Any

import pytest

from codeanatomy.file_ids import DefinitionKeys, FileIds, PackedIds
from codeanatomy.file_view import AST, LIBCST, SYMTABLE, FileView
from codeanatomy.node_ids import binding_id, definition_key, file_id, module_id, natural_id, scope_id
from codeanatomy.relate import repository
from codeanatomy.relate.compile.bindings import add_binding_relations, add_scope_relations
from codeanatomy.relate.compile.file_program import LIBCST_LISTS, compile_file
from codeanatomy.relate.compile.scope_tree import build_scopes, name_scopes
from codeanatomy.relate.relation_rows import RELATIONS, RelationRows
from codeanatomy.syntax_tree import Tree
from support import callgraph_score as score
from support import corpus
from support.relate_stage import repository_rows, sources_below, witnessed

Row = dict[str, Any]
Sources = Mapping[str, str | bytes]
MAIN = file_id("test", "main.py")


def main_key(qualified: str = "") -> str:
    """The key of a definition in main.py."""
    return definition_key("test", "main.py", qualified)


def main_scope(qualified: str) -> str:
    return scope_id(main_key(qualified))


def rows_of(files: Sequence[FileView]) -> list[Row]:
    made = repository_rows([compile_file(file) for file in files])
    return [row for _, tables in made for row in tables[RELATIONS].to_pylist()]


def related(sources: Sources, *kinds: str) -> list[Row]:
    """The rows of some kinds, in the order of the text."""
    texts = {path: dedent(text) if isinstance(text, str) else text for path, text in sources.items()}
    rows = rows_of([witnessed(text, path) for path, text in texts.items()])
    found = [row for row in rows if row["relation_kind"] in kinds]
    assert all(row["confidence"] == 1.0 and row["evidence"] for row in found)
    return sorted(found, key=lambda row: (row["path"], row["bstart"] or 0, row["role"] or ""))


def told(rows: Sequence[Row], *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(row[field] for field in fields) for row in rows]


# -- files


def test_a_file_declares_the_module_that_it_is() -> None:
    rows = related({"src/pkg/__init__.py": "", "src/pkg/core.py": "x = 1\n"}, "DECLARES_MODULE")
    ids = [file_id("test", path) for path in ("src/pkg/__init__.py", "src/pkg/core.py")]
    assert told(rows, "src_kind", "src_id", "dst_kind", "dst_id", "dst_qname", "owner_file_id") == [
        ("FILE", ids[0], "MODULE", module_id(ids[0]), "pkg", ids[0]),
        ("FILE", ids[1], "MODULE", module_id(ids[1]), "pkg.core", ids[1]),
    ]
    assert told(rows, "bstart", "line", "origin", "rule_name", "resolution_method")[0] == (
        (None, None, "imports", "module", "path")
    )


def test_a_file_that_python_refuses_declares_its_module() -> None:
    rows = related({"a.py": "def f(:\n", "b.py": "nonlocal x\n"}, "DECLARES_MODULE", "OWNS_SCOPE")
    assert told(rows, "relation_kind", "dst_qname") == [("DECLARES_MODULE", "a"), ("DECLARES_MODULE", "b")]


SELF = {
    "main.py": "class A:\n  def __init__(self): self.x = 1\n",
    "use.py": "from main import A\nA().y = 2\n",
}


@pytest.mark.parametrize("part", ["solve", "file_rows"])
def test_what_fails_leaves_the_module_and_the_scopes(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("ours")

    monkeypatch.setattr(repository if part == "solve" else repository.RelationEmitter, part, fail)
    rows = related(SELF, "DECLARES_MODULE", "OWNS_SCOPE", "SCOPE_BINDS")
    found = {(row["path"], row["relation_kind"], row["dst_qname"] or row["role"]) for row in rows}
    # Other files may refer to the attributes of a class, though the rows of its file failed.
    bound = {("main.py", "SCOPE_BINDS", f"main.A.{name}") for name in "xy"} if part == "file_rows" else set()
    assert found == bound | {
        ("main.py", "DECLARES_MODULE", "main"),
        ("main.py", "OWNS_SCOPE", "module"),
        ("main.py", "OWNS_SCOPE", "class"),
        ("main.py", "OWNS_SCOPE", "function"),
        ("use.py", "DECLARES_MODULE", "use"),
        ("use.py", "OWNS_SCOPE", "module"),
    }


# -- scopes


def test_scopes_are_owned_by_what_makes_them() -> None:
    text = "class A:\n  def m(self): return lambda: [x for x in self]\n"
    rows = related({"main.py": text}, "OWNS_SCOPE")
    tree = Tree(witnessed(text).list(AST, "nodes"))
    cls, method = main_key("A"), main_key("A.m")
    inner, last = main_key("A.m.<lambda>#0"), main_key("A.m.<lambda>#0.<listcomp>#0")
    assert told(rows, "role", "src_kind", "src_id", "dst_id", "bstart", "bend", "line") == [
        ("class", "CLASS", f"class:{cls}", f"scope:{cls}", 0, 56, 1),
        ("module", "MODULE", f"module:{main_key()}", f"scope:{main_key()}", 0, 57, tree.line[0]),
        ("function", "FUNCTION", f"function:{method}", f"scope:{method}", 11, 56, 2),
        ("lambda", "FUNCTION", f"function:{inner}", f"scope:{inner}", 31, 56, 2),
        ("comprehension", "AST_NODE", f"ast:{last}.000000", f"scope:{last}", 39, 56, 2),
    ]
    assert {(row["dst_kind"], row["dst_qname"], row["src_qname"]) for row in rows} == {("SCOPE", None, None)}


def test_a_lambda_without_a_place_owns_its_scope() -> None:
    file = witnessed("lambda: 0\n")
    nodes, definitions = dict(file.list(AST, "nodes")), dict(file.list(AST, "definitions"))
    for columns in (nodes, definitions):
        at = columns["kind"].index("Lambda")
        for name in ("bstart", "bend"):
            columns[name] = [None if number == at else value for number, value in enumerate(columns[name])]
    [row] = [row for row in scope_rows(file, nodes, definitions) if row["role"] == "lambda"]
    assert (row["src_id"], row["bstart"]) == (f"function:{main_key('<lambda>#0')}", None)
    assert row["dst_id"] == main_scope("<lambda>#0")


def scope_rows(
    file: FileView,
    nodes: Mapping[str, Sequence[Any]] | None = None,
    definitions: Mapping[str, Sequence[Any]] | None = None,
    blocks: Mapping[str, Sequence[Any]] | None = None,
) -> list[Row]:
    """The rows of the scopes of a file, with another tree or other blocks."""
    nodes, definitions = nodes or file.list(AST, "nodes"), definitions or file.list(AST, "definitions")
    blocks = blocks or file.list(SYMTABLE, "blocks")
    tree, scopes = Tree(nodes), build_scopes(Tree(nodes), blocks)
    libcst = {name: found for name in LIBCST_LISTS if (found := file.list(LIBCST, name))}
    ids = FileIds(PackedIds.of_file(file.repo_id, file.path, definitions, libcst, nodes))
    name_scopes(scopes, ids, DefinitionKeys(file.repo_id, file.path, definitions).of_scopes(blocks))
    rows = RelationRows(file.repo_id, file.file_id, file.path)
    add_binding_relations(rows, tree, scopes, libcst, ids)
    add_scope_relations(rows, tree, scopes, ids)
    return rows.rows()


UNEVALUATED = """
from __future__ import annotations
class A:
    def f(self, x: [(lambda n: n) for m in (lambda: __class__)()]): ...
"""


def test_scopes_without_a_block_have_parents() -> None:
    rows = scope_rows(witnessed(UNEVALUATED))
    parents = [row for row in rows if row["relation_kind"] == "SCOPE_PARENT"]
    owners = {row["dst_id"]: row["role"] for row in rows if row["relation_kind"] == "OWNS_SCOPE"}
    assert [(row["role"], row["src_qname"], owners[row["dst_id"]]) for row in parents] == [
        ("comprehension", "listcomp", "class"),
        ("lambda", "lambda", "comprehension"),
        ("lambda", "lambda", "class"),
    ]
    assert {row["src_id"] for row in parents} < owners.keys()
    bound = [row for row in rows if row["relation_kind"] == "SCOPE_BINDS"]
    assert sorted((owners[row["src_id"]], row["role"]) for row in bound) == [
        ("class", "__class__"),
        ("comprehension", "m"),
        ("lambda", "n"),
    ]


def test_scopes_with_a_block_have_parents_elsewhere() -> None:
    assert related({"main.py": "def f(): return [x for x in lambda: 0]\n"}, "SCOPE_PARENT") == []


def test_of_lost_scopes_nothing_is_said() -> None:
    """Without the block of the class, nothing in it is known; annotations neither."""
    file = witnessed(UNEVALUATED)
    blocks = file.list(SYMTABLE, "blocks")
    kept = [at for at, key in enumerate(blocks["scope_key"]) if "/" not in key]
    rows = scope_rows(file, blocks={name: [values[at] for at in kept] for name, values in blocks.items()})
    structure = [row for row in rows if row["relation_kind"].startswith(("SCOPE", "OWNS"))]
    assert [(row["relation_kind"], row["role"]) for row in structure] == [("OWNS_SCOPE", "module")]


# -- bindings


def test_cells_of_classes_are_bound_by_their_scopes() -> None:
    """Not so a global that only a function binds: CPython lists it in the module, too."""
    text = """
        def f():
            global only
            only = 2
        class A:
            def m(self): return super().m(), __class__
        class B:
            def m(self): ...
    """
    rows = related({"main.py": text, "use.py": "import main\nmain.only\n"}, "SCOPE_BINDS")
    cls = main_scope("A")
    fields = ("src_kind", "src_id", "dst_kind", "dst_id", "role", "rule_name", "dst_qname", "owner_file_id")
    assert told(rows, *fields) == [
        ("SCOPE", cls, "BINDING", binding_id(cls, "__class__"), "__class__", "scope", None, MAIN)
    ]
    assert told(rows, "bstart", "origin", "resolution_method") == [(None, "symtable", "scope")]


def test_attributes_belong_to_the_file_of_their_class() -> None:
    main = """
        class A:
            listed = 1
            gone = 1
            del gone
            hint: int
            used = print
            def __init__(self):
                self.x = self.x = self.__private = self.listed = self.gone = self.hint = self.print = 1
                self.__class__ = B
                super().__init__()
        class B(A):
            def m(self): self.x = 2
    """
    use = "from main import A\na = A()\na.y = a.x\nA.z = 1\n"
    rows = related({"main.py": main, "use.py": use, "more.py": use}, "SCOPE_BINDS")
    assert {(row["owner_file_id"], row["path"]) for row in rows} == {(MAIN, "main.py")}
    cls, sub = main_scope("A"), main_scope("B")
    assert told(rows, "src_id", "dst_id", "role", "rule_name", "dst_qname") == [
        (cls, binding_id(cls, "_A__private"), "_A__private", "attribute", "main.A._A__private"),
        (cls, binding_id(cls, "__class__"), "__class__", "scope", None),
        (cls, binding_id(cls, "print"), "print", "attribute", "main.A.print"),
        *((scope, binding_id(scope, "x"), "x", "attribute", name) for scope, name in sorted([
            (cls, "main.A.x"), (sub, "main.B.x")
        ])),
        (cls, binding_id(cls, "y"), "y", "attribute", "main.A.y"),
        (cls, binding_id(cls, "z"), "z", "attribute", "main.A.z"),
    ]  # fmt: skip


def test_free_names_are_those_of_the_scope_that_binds_them() -> None:
    text = """
    class A:
        def m(self, n):
            super().m()
            def through():
                return lambda: (n, n)
    """
    paths = ("A", "A.m", "A.m.through", "A.m.through.<lambda>#0")
    keys = {
        binding_id(main_scope(path), name): f"{path} {name}" for path in paths for name in ("n", "__class__")
    }
    rows = related({"main.py": text}, "BINDING_RESOLVES_TO")
    found = [(keys[row["src_id"]], keys[row["dst_id"]], row["role"], row["line"]) for row in rows]
    assert sorted(found, key=str) == [
        ("A.m __class__", "A __class__", "free", None),
        ("A.m.through n", "A.m n", "free", None),
        ("A.m.through.<lambda>#0 n", "A.m n", "free", 6),
    ]
    assert [one["witness"] for one in rows[0]["evidence"]] == ["symtable"]


def test_free_names_of_a_file_that_only_cpython_reads() -> None:
    text = "(x): int = 1\ndef f(a):\n    return lambda: a\n"
    file = witnessed(text)
    assert not file.list(LIBCST, "refs")
    [row] = related({"main.py": text}, "BINDING_RESOLVES_TO")
    assert (row["role"], row["line"]) == ("free", None)


# -- all ends


def labelled() -> Iterator[list[FileView]]:
    for case in score.cases():
        yield [witnessed(text, path, case.repo_id) for path, text in sources_below(case.folder).items()]


def package(name: str) -> list[FileView]:
    return [witnessed(text, path, name) for path, text in sources_below(corpus.package(name)).items()]


def places(found: Mapping[str, Sequence[Any]] | None, prefix: str = "") -> set[tuple[Any, Any]]:
    return set(zip(found[f"{prefix}bstart"], found[f"{prefix}bend"], strict=True)) if found else set()


def nodes_of(file: FileView) -> Iterator[tuple[str, str]]:
    """Kinds and ids of the nodes that the witnesses list in a file."""
    refs = file.list(LIBCST, "refs")
    names = places(refs)
    spans = {
        "FUNCTION": places(file.list(AST, "defs")) | places(file.list(LIBCST, "defs"), "def_"),
        "PARAMETER": places(file.list(LIBCST, "params")),
        "CALLSITE": places(file.list(LIBCST, "callsites"), "call_") | places(file.list(AST, "calls")),
        "ARGUMENT": places(file.list(LIBCST, "call_args")) | generators(file),
        "NAME_REF": names,
        "ATTRIBUTE_REF": names,
        "TYPE_PARAM": names,
        "IMPORT_ALIAS": places(file.list(LIBCST, "imports"), "alias_"),
        "DECORATOR": places(file.list(LIBCST, "decorators")),
    }
    spans["CLASS"] = spans["FUNCTION"]
    nodes, definitions = (file.list(AST, name) for name in ("nodes", "definitions"))
    libcst = {name: file.list(LIBCST, name) for name in LIBCST_LISTS}
    ids = FileIds(PackedIds.of_file(file.repo_id, file.path, definitions, libcst, nodes))
    for kind, found in spans.items():
        for bstart, bend in found:
            node = ids.at(kind, bstart, bend)
            # Not a node of this kind.
            if ".@" not in node:
                yield kind, node
    for node in ids.ast_ids(len(nodes.get("kind", ()))).to_pylist():
        yield "AST_NODE", node
    yield "MODULE", module_id(file.file_id)
    yield "FILE", file.file_id


def generators(file: FileView) -> set[tuple[Any, Any]]:
    """Generators: CPython has the parentheses of a call as those of its only argument, LibCST has not."""
    nodes = file.list(AST, "nodes")
    if not nodes:
        return set()
    rows = zip(nodes["kind"], nodes["bstart"], nodes["bend"], strict=True)
    return {(bstart, bend) for kind, bstart, bend in rows if kind == "GeneratorExp"}


OUTSIDE = {"QUALIFIED_NAME", "EXTERNAL_MODULE"}


def check(files: Sequence[FileView]) -> Counter[str]:
    """Every end of every row is listed by a witness, or told of by a row of the file it belongs to."""
    scopes, bindings, free = {}, set(), set()
    known: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        for kind, node in nodes_of(file):
            known[kind].add(node)
        blocks = file.list(SYMTABLE, "blocks") or {"scope_key": (), "symbols": ()}
        keys = DefinitionKeys(file.repo_id, file.path, file.list(AST, "definitions")).of_scopes(
            file.list(SYMTABLE, "blocks")
        )
        for key, symbols in zip(blocks["scope_key"], blocks["symbols"], strict=True):
            own = scope_id(keys[key])
            scopes[own] = file.file_id
            bindings.update(binding_id(own, name) for name in symbols["name"])
            free.update(binding_id(own, name) for name in compress(symbols["name"], symbols["is_free"]))
    rows = rows_of(files)
    parents = [row for row in rows if row["relation_kind"] == "SCOPE_PARENT"]
    scopes |= {row["src_id"]: row["owner_file_id"] for row in parents}
    assert len({row["src_id"] for row in parents}) == len(parents)
    bound = Counter(row["dst_id"] for row in rows if row["relation_kind"] == "SCOPE_BINDS")
    assert set(bound.values()) <= {1}
    assert not bindings & bound.keys()
    for row in rows:
        if row["relation_kind"] == "SCOPE_BINDS":
            assert scopes[row["src_id"]] == row["owner_file_id"], row
            assert row["dst_id"] == binding_id(row["src_id"], row["role"])
    resolved = [row for row in rows if row["relation_kind"] == "BINDING_RESOLVES_TO"]
    assert len({row["src_id"] for row in resolved}) == len(resolved)
    assert {row["src_id"] for row in resolved if row["role"] != "global"} == free
    known["PACKAGE"] = {
        natural_id("PACKAGE", row["repo_id"], around)
        for row in rows
        if row["relation_kind"] == "DECLARES_MODULE"
        for around in accumulate(row["dst_qname"].split(".")[:-1], lambda *parts: ".".join(parts))
    }
    known["SCOPE"] |= scopes.keys()
    known["BINDING"] |= bindings | bound.keys()
    for row in rows:
        for end in ("src", "dst"):
            kind = row[f"{end}_kind"]
            assert kind is None or kind in OUTSIDE or row[f"{end}_id"] in known[kind], row
    owned = [row["dst_id"] for row in rows if row["relation_kind"] == "OWNS_SCOPE"]
    assert sorted(owned) == sorted(scopes)
    modules = [row["src_id"] for row in rows if row["relation_kind"] == "DECLARES_MODULE"]
    assert sorted(modules) == sorted(file.file_id for file in files)
    return Counter(row["relation_kind"] for row in rows)


@pytest.mark.system
def test_all_ends_of_the_labelled_cases_are_known() -> None:
    seen: Counter[str] = Counter()
    for files in labelled():
        seen += check(files)
    assert min(seen[kind] for kind in ("DECLARES_MODULE", "OWNS_SCOPE", "SCOPE_BINDS")) > 100


@pytest.mark.parametrize("name", ["requests", pytest.param("flask", marks=pytest.mark.system)])
def test_all_ends_of_packages_are_known(name: str) -> None:
    seen = check(package(name))
    assert min(seen[kind] for kind in ("DECLARES_MODULE", "OWNS_SCOPE")) > 10
