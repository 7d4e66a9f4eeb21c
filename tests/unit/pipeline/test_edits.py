"""Generated repositories, scripts of edits and recorded histories are what they say."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tokenize
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codeanatomy.errors import UnknownName
from codeanatomy.relate.compile.file_program import compile_file
from codeanatomy.relate.program import Program
from codeanatomy.sources.source_file import Source, decode
from support import corpus, edits
from support.edits import KINDS, Edit, Tree, meant_to_parse, read_tree, repository, script, write_tree
from support.folders import TESTS
from support.graph_checks import problems_of, text_problems_of
from support.graph_stage import graph_of
from support.histories import history
from support.relate_stage import repository_rows, witnessed

SEEDS = range(4)
STEPS = 150


class Step(NamedTuple):
    """An edit between the trees before and after it."""

    seed: int
    before: Tree
    edit: Edit
    after: Tree


@cache
def steps(seed: int) -> tuple[Step, ...]:
    made, tree = [], repository(seed)
    for edit in script(seed, STEPS):
        after = edit.apply(tree)
        made.append(Step(seed, tree, edit, after))
        tree = after
    return tuple(made)


def all_of(*names: str) -> Iterator[Step]:
    """The edits of a kind in all scripts."""
    return (step for seed in SEEDS for step in steps(seed) if step.edit.name in names)


def compiled(path: str, content: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(content, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def tree_of(content: bytes) -> ast.Module:
    return ast.parse(content)


def count(content: bytes, *kinds: type[ast.AST]) -> int:
    return sum(isinstance(node, kinds) for node in ast.walk(ast.parse(content)))


def text_of(content: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(BytesIO(content.replace(b"\r", b"\n")).readline)
    return content.decode(encoding)


def test_a_seed_is_the_same_repository_and_script_in_every_process() -> None:
    program = (
        "import hashlib; from support import edits\n"
        "tree, digest = edits.repository(3), hashlib.sha256()\n"
        "for edit in edits.script(3, 60):\n"
        "    digest.update(repr((sorted(tree.items()), edit)).encode())\n"
        "    tree = edit.apply(tree)\n"
        "print(digest.hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-W", filter_, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed, filter_ in (("1", "ignore"), ("2", "error"))
    }
    assert len(found) == 1
    assert repository(0) != repository(1)


def test_the_first_steps_of_a_script_are_those_of_a_longer_one() -> None:
    assert [step.edit for step in steps(0)[:20]] == list(script(0, 20))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_meant_to_parse_compiles_and_what_is_not_does_not(seed: int) -> None:
    trees = [repository(seed), *(step.after for step in steps(seed))]
    for path, content in {(path, content) for tree in trees for path, content in tree.items()}:
        if path.endswith((".py", ".pyi")):
            assert compiled(path, content) is meant_to_parse(path, content), (path, content)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_occurs(seed: int) -> None:
    assert {step.edit.name for step in steps(seed)[:100]} == KINDS.keys()


@pytest.mark.parametrize("files", [3, 12, 40])
def test_a_repository_has_all_that_is_hard(files: int) -> None:
    tree = repository(5, files)
    ordinary = [path for path in tree if path.endswith(".py") and not path.endswith("__init__.py")]
    assert len(ordinary) == files + 5  # empty, old, broken, everything, user
    text = "\n".join(content.decode() for content in tree.values())
    said = ["super()", "nonlocal ", "global ", "async for", "match value", "except ImportError", "größe"]
    said += [
        "@part.setter",
        "dataclasses.dataclass",
        "import missing_",
        "undefined_",
        ".hook = ",
        ".extra = ",
    ]
    said += ["__all__ +=", "metaclass=", "await ", "import_module(", "from . import", "typing.Generic["]
    assert [one for one in said if one not in text] == []
    assert text.count("import *") > 4
    assert "from ." in text
    assert {path.rpartition(".")[2] for path in tree} >= {"py", "pyi", "md", "json", "gitignore", "tool"}
    refused = [path for path in tree if path.endswith(".py") and not meant_to_parse(path, tree[path])]
    assert refused == ["broken.py", "old.py"]
    assert tree["empty.py"] == b""


def test_an_edit_leaves_the_tree_that_it_is_given() -> None:
    for before, edit, after in ((step.before, step.edit, step.after) for step in steps(1)):
        copy = dict(before)
        edit.apply(before)
        assert before == copy
        assert (after == before) is (edit.name == "touch")
        assert {path: after.get(path) for path in edit.writes} == edit.writes
        assert {
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        } <= edit.writes.keys()


@pytest.mark.parametrize("name", ["rename_file", "move_file", "module_to_package"])
def test_a_moved_file_keeps_its_bytes(name: str) -> None:
    for step in all_of(name):
        (old,) = (path for path, content in step.edit.writes.items() if content is None)
        (new,) = (path for path, content in step.edit.writes.items() if content is not None)
        assert new not in step.before
        assert step.after[new] == step.before[old]
        same_folder = Path(old).parent == Path(new).parent
        assert same_folder is (name == "rename_file")
        assert (new == old.removesuffix(".py") + "/__init__.py") is (name == "module_to_package")


def test_a_package_is_deleted_as_a_whole() -> None:
    for step in all_of("delete_package"):
        assert set(step.edit.writes.values()) == {None}
        folder = os.path.commonpath(step.edit.writes) + "/"
        assert not [path for path in step.after if path.startswith(folder)]


def test_undo_leads_back_to_an_earlier_tree() -> None:
    for seed in SEEDS:
        seen = [repository(seed)]
        for step in steps(seed):
            assert step.edit.name != "undo" or step.after in seen
            seen.append(step.after)


def test_several_edits_come_in_one_step() -> None:
    found = list(all_of("several"))
    assert {len(step.edit.parts) for step in found} == {2, 3, 4, 5, 6}
    assert all(len(step.edit.writes) > 1 for step in found)


def only(step: Step) -> tuple[str, bytes, bytes]:
    """The path of the one file of an edit, and its bytes before and after."""
    ((path, after),) = step.edit.writes.items()
    return path, step.before.get(path, b""), after or b""


def names_of_bases(content: bytes) -> list[str]:
    return [
        ast.unparse(base)
        for node in ast.walk(tree_of(content))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    ]


def heads(content: bytes) -> list[str]:
    return [ast.unparse(node.args) for node in ast.walk(tree_of(content)) if isinstance(node, FUNCTION)]


def names(content: bytes) -> list[str]:
    return [node.name for node in ast.walk(tree_of(content)) if isinstance(node, FUNCTION)]


def decorators(content: bytes) -> int:
    return sum(len(getattr(node, "decorator_list", ())) for node in ast.walk(tree_of(content)))


def returns(content: bytes) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(tree_of(content)) if isinstance(node, ast.Return)]


def imports(content: bytes) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(tree_of(content)) if isinstance(node, IMPORT)]


def stars(content: bytes) -> int:
    return sum(text.endswith("import *") for text in imports(content))


def alls(content: bytes) -> list[str]:
    return [ast.unparse(node) for node in tree_of(content).body if ast.unparse(node).startswith("__all__")]


def changed(old: list[str], new: list[str]) -> list[str]:
    return [after for before, after in zip(old, new, strict=True) if before != after]


FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORT = (ast.Import, ast.ImportFrom)
# What is true of the bytes before and after an edit of one file.
SHOWN: dict[str, Callable[[bytes, bytes], bool]] = {
    "body_same_length": lambda old, new: len(old) == len(new) and names(old) == names(new),
    "body_other_length": lambda old, new: len(old) < len(new) and names(old) == names(new),
    "add_function": lambda old, new: len(names(new)) == len(names(old)) + 1,
    "remove_function": lambda old, new: len(names(new)) < len(names(old)),
    "rename_function": lambda old, new: len(names(new)) == len(names(old)) and names(new) != names(old),
    "change_signature": lambda old, new: heads(old) != heads(new) and names(old) == names(new),
    "change_default": lambda old, new: heads(old) != heads(new) and names(old) == names(new),
    "add_decorator": lambda old, new: decorators(new) == decorators(old) + 1,
    "remove_decorator": lambda old, new: decorators(new) == decorators(old) - 1,
    "return_function": lambda old, new: len(changed(returns(old), returns(new))) == 1,
    "return_instance": lambda old, new: changed(returns(old), returns(new))[0].endswith("()"),
    "add_call": lambda old, new: len(imports(new)) == len(imports(old)) + 1,
    "assign_attribute": lambda old, new: count(new, ast.Attribute) > count(old, ast.Attribute),
    "add_import": lambda old, new: len(imports(new)) == len(imports(old)) + 1,
    "remove_import": lambda old, new: len(imports(new)) == len(imports(old)) - 1,
    "alter_import": lambda old, new: len(imports(new)) == len(imports(old)) and imports(new) != imports(old),
    "alias_import": lambda old, new: len(imports(new)) == len(imports(old)) and imports(new) != imports(old),
    "add_star_import": lambda old, new: stars(new) == stars(old) + 1,
    "remove_star_import": lambda old, new: stars(new) == stars(old) - 1,
    "add_all": lambda old, new: (len(alls(old)), len(alls(new))) == (0, 1),
    "remove_all": lambda old, new: len(alls(new)) == len(alls(old)) - 1,
    "alter_all": lambda old, new: len(alls(new)) == len(alls(old)) and alls(new) != alls(old),
    "add_class": lambda old, new: count(new, ast.ClassDef) == count(old, ast.ClassDef) + 1,
    "remove_class": lambda old, new: count(new, ast.ClassDef) < count(old, ast.ClassDef),
    "add_base": lambda old, new: len(names_of_bases(new)) == len(names_of_bases(old)) + 1,
    "remove_base": lambda old, new: names_of_bases(new) != names_of_bases(old),
    "add_method_in_base": lambda old, new: len(names(new)) == len(names(old)) + 1,
    "override_method": lambda old, new: len(names(new)) == len(names(old)) + 1,
    "comment": lambda old, new: len(old) < len(new) and ast.dump(tree_of(old)) == ast.dump(tree_of(new)),
    "form_feed": lambda old, new: new.count(b"\f") == old.count(b"\f") + 1,
    "latin_1": lambda old, new: b"accent = '\xe9'" in new and b"coding: latin-1" in new,
    "byte_order_mark": lambda old, new: new == b"\xef\xbb\xbf" + old,
    "crlf": lambda old, new: b"\r\n" in new and b"\n" not in new.replace(b"\r\n", b""),
    "cr": lambda old, new: b"\r" in new and b"\n" not in new,
    "plain_text": lambda old, new: (
        (b"\r" in old or old.startswith(edits.BOM) or b"latin-1" in old)
        and not (b"\r" in new or new.startswith(edits.BOM) or b"latin-1" in new)
        and ast.dump(tree_of(old)) == ast.dump(tree_of(new))
    ),
    "break_syntax": lambda old, new: compiled("a.py", old) and not compiled("a.py", new),
    "mend_syntax": lambda old, new: not compiled("a.py", old) and compiled("a.py", new),
    "empty_file": lambda old, new: bool(old) and not new,
    "fill_file": lambda old, new: not old and bool(new),
    "garbage": lambda old, new: not compiled("a.py", new),
    "touch": lambda old, new: old == new,
    "add_file": lambda old, new: not old and bool(new),
    "delete_file": lambda old, new: not new,
    "remove_stub": lambda old, new: not new,
    "add_stub": lambda old, new: not old and b"..." in new,
    "shadow_library": lambda old, new: not old and b"partial" in new,
    "add_missing_module": lambda old, new: not old and count(new, ast.FunctionDef) > 0,
    "shadow_module_by_package": lambda old, new: not old and bool(new),
    "change_other_file": lambda old, new: new.startswith(old) and len(new) > len(old),
    "ignore_file": lambda old, new: new.startswith(old) and new.endswith(b".py\n"),
    "stop_ignoring": lambda old, new: len(new) < len(old),
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_edit_does_what_its_kind_says(name: str) -> None:
    for step in all_of(name):
        path, old, new = only(step)
        assert SHOWN[name](old, new), (step.seed, path, text_of(old), text_of(new))


def test_every_kind_is_looked_at() -> None:
    of_many_files = {"rename_file", "move_file", "module_to_package", "delete_package", "several", "undo"}
    assert KINDS.keys() - SHOWN.keys() - of_many_files == {"add_package", "rename_everywhere"}


def test_a_new_package_has_a_module_that_its_init_gives_on() -> None:
    for step in all_of("add_package"):
        init, module = sorted(step.edit.writes, key=lambda path: "__init__" not in path)
        assert not step.before.keys() & step.edit.writes.keys()
        assert step.after[init] == f"from .{Path(module).stem} import *\n".encode()
        assert Path(init).parent == Path(module).parent


def test_a_name_that_changes_everywhere_is_left_nowhere() -> None:
    for step in all_of("rename_everywhere"):
        for path, content in step.edit.writes.items():
            assert content is not None
            assert len(ast.dump(tree_of(content))) > len(ast.dump(tree_of(step.before[path])))
    assert max(len(step.edit.writes) for step in all_of("rename_everywhere")) > 2


def test_a_missing_module_was_imported_in_vain() -> None:
    for step in all_of("add_missing_module"):
        path, _, _ = only(step)
        name = path.removesuffix(".py").replace("/", ".")
        said = [text for tree in step.before.values() if b"import" in tree for text in text_of_any(tree)]
        assert any(name.split(".")[-1] in text for text in said)
        assert path.removesuffix(".py") + "/__init__.py" not in step.before


def text_of_any(content: bytes) -> list[str]:
    return [line for line in content.decode("latin-1").splitlines() if "import" in line]


def readable(tree: Tree) -> Tree:
    """The Python files that a build reads; what is ignored is left in."""
    return {
        path: content
        for path, content in tree.items()
        if path.endswith((".py", ".pyi")) and isinstance(decode(path, content), Source)
    }


@pytest.mark.parametrize("number", [0, 40, 80])
def test_every_stage_takes_the_trees(number: int) -> None:
    sources = readable(steps(3)[number].before)
    graph = graph_of(sources)
    assert problems_of(graph) == []
    assert text_problems_of(graph, sources) == []
    assert {node["node_kind"] for node in graph.nodes} >= {"CALLSITE", "EXTERNAL_MODULE", "QUALIFIED_NAME"}
    edges = {edge["edge_kind"] for edge in graph.edges}
    assert edges >= {"CALLS", "CALLS_NAME", "INHERITS", "OVERRIDES", "PASSES_TO", "DECORATES", "RE_EXPORTS"}


@cache
def relations(tree_items: tuple[tuple[str, bytes], ...]) -> dict[str, list[dict[str, Any]]]:
    """The relations of each file of a tree."""
    programs = [program(path, content) for path, content in tree_items]
    found = {}
    for one, tables in repository_rows(programs):
        codes = {row["diag_code"] for row in tables["relate_diagnostics_v1"].to_pylist()}
        assert "not_related" not in codes, one.path
        found[one.path] = tables["relations_v1"].to_pylist()
    return found


@cache
def program(path: str, content: bytes) -> Program:
    return compile_file(witnessed(content, path))


def relations_of(tree: Tree) -> dict[str, list[dict[str, Any]]]:
    return relations(tuple(sorted(readable(tree).items())))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_repository_has_what_cannot_be_resolved_and_what_can_in_several_ways(seed: int) -> None:
    rows = [row for found in relations_of(repository(seed)).values() for row in found]
    reasons = {row["reason"] for row in rows}
    assert reasons >= {"unknown_value", "no_such_attribute", "unbound", "name_not_found", "import_not_found"}
    assert {row["resolution_method"] for row in rows} >= {
        "star_import",
        "values",
        "mro",
        "import",
        "annotation",
    }
    assert len({row["ambiguity_group_id"] for row in rows} - {None}) > 5


@pytest.mark.system
def test_edits_reach_files_that_they_do_not_write() -> None:
    reached = 0
    for step in steps(0)[:30]:
        old, new = relations_of(step.before), relations_of(step.after)
        others = old.keys() & new.keys() - step.edit.writes.keys()
        reached += any(old[path] != new[path] for path in others)
    assert reached >= 10


def test_modules_import_each_other_in_circles() -> None:
    tree = repository(1)
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for module in edits._modules(tree):
        for node in module.all_of(ast.ImportFrom):
            other = edits._imported(module, node, tree)
            if other not in (None, module.path):
                sorter.add(module.path, other)
    with pytest.raises(CycleError):
        sorter.prepare()


def test_a_folder_follows_the_trees(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    write_tree(folder, repository(2))
    for step in steps(2)[:60]:
        times = {path: (folder / path).stat().st_mtime_ns for path in step.before}
        write_tree(folder, step.after, step.edit.writes)
        assert read_tree(folder) == step.after
        assert all(path.is_file() or any(path.iterdir()) for path in folder.rglob("*"))
        for path in step.after.keys() - step.edit.writes.keys():
            assert (folder / path).stat().st_mtime_ns == times[path]
        if step.edit.name == "touch":
            (touched,) = step.edit.writes
            assert (folder / touched).stat().st_mtime_ns > times[touched]


def test_a_folder_can_stand_where_a_file_stood(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": b"1", "b/c": b"2"})
    write_tree(tmp_path, {"a/x": b"1", "b": b"2"})
    assert read_tree(tmp_path) == {"a/x": b"1", "b": b"2"}
    write_tree(tmp_path, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.system
def test_real_packages_are_edited_in_every_kind() -> None:
    start = read_tree(corpus.package("flask"))
    assert {edit.name for edit in script(0, 100, start)} == KINDS.keys()


@pytest.mark.parametrize("start", [{}, {"a.py": b""}, {"a/__init__.py": b"x = 1", "b.txt": b""}])
def test_the_smallest_trees_are_edited(start: Tree) -> None:
    assert len(list(script(0, 30, start))) == 30


@pytest.mark.parametrize("name", ["flask", "requests"])
@pytest.mark.system
def test_a_history_has_releases_that_differ(name: str) -> None:
    releases = history(name)
    assert len(releases) >= 5
    versions = [tuple(map(int, version.split("."))) for version, _ in releases]
    assert versions == sorted(set(versions))
    trees = [sources(folder) for _, folder in releases]
    for old, new in pairwise(trees):
        assert len(old) > 10
        changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
        assert changed
        assert old.keys() & new.keys() - changed


def sources(folder: Path) -> Tree:
    return {path: content for path, content in read_tree(folder).items() if path.endswith(".py")}


def test_an_unknown_history_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="did you mean flask"):
        history("flasks")
