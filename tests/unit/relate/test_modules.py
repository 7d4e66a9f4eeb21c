"""Names of modules as Python's own import system finds them, and where relative imports lead."""

from __future__ import annotations

import random
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy.relate.values.modules import Modules, distribution, module_names

# Layouts, the roots that Python would be given, and what is imported somewhere.
LAYOUTS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "flat": (["main.py", "pkg/__init__.py", "pkg/a.py", "pkg/sub/__init__.py", "pkg/sub/b.py"], [""], []),
    "src": (["src/pkg/__init__.py", "src/pkg/a.py", "src/one.py"], ["src"], ["pkg.a"]),
    "several roots": (
        ["back/app/__init__.py", "back/app/x.py", "front/web/__init__.py"],
        ["back", "front"],
        [],
    ),
    "namespace": (["ns/one/__init__.py", "ns/one/a.py", "ns/two/__init__.py"], [""], ["ns.one", "ns.two.x"]),
    "folders without packages": (["tools/run.py", "tools/deep/er.py"], [""], []),
    "src that is a package": (["src/__init__.py", "src/a.py"], [""], ["src.a"]),
    "src in src": (
        ["lib/src/pkg/__init__.py", "lib/src/pkg/src/x.py", "lib/src/pkg/src/__init__.py"],
        ["lib/src"],
        [],
    ),
    "namespace in src": (["src/ns/a/__init__.py", "src/ns/a/b.py"], ["src"], ["ns.a.b"]),
}


def write(folder: Path, paths: list[str]) -> None:
    for path in paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()


def found(name: str, roots: list[str]) -> ModuleSpec | None:
    """What `import name` would find, without running anything."""
    spec, where, parts = None, roots, name.split(".")
    for part in parts:
        # By its last part: the rest would be looked up among the modules of this process.
        spec = PathFinder.find_spec(part, where)
        if spec is None:
            return None
        where = list(spec.submodule_search_locations or [])
    return spec


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_name_finds_its_file(layout: str, tmp_path: Path) -> None:
    paths, roots, imported = LAYOUTS[layout]
    write(tmp_path, paths)
    names = module_names(paths, imported)
    assert set(names) == set(paths)
    for path, name in names.items():
        spec = found(name, [str(tmp_path / root) for root in roots])
        assert spec is not None, (path, name)
        assert spec.origin == str(tmp_path / path)


def test_the_order_of_paths_and_imports_does_not_matter() -> None:
    for paths, _, imported in LAYOUTS.values():
        mixed = paths * 2
        random.Random(1).shuffle(mixed)
        assert list(module_names(mixed, reversed(imported)).items()) == list(
            module_names(paths, imported).items()
        )


WORDS = st.sampled_from(["a", "b", "c"])
DOTTED = st.lists(WORDS, min_size=1, max_size=4)


@given(DOTTED, st.booleans(), st.lists(WORDS, max_size=2), st.integers(1, 6))
def test_relative_imports_lead_where_python_says(
    parts: list[str], is_package: bool, module: list[str], level: int
) -> None:
    name = ".".join(parts)
    path = "/".join(parts) + ("/__init__.py" if is_package else ".py")
    package = name if is_package else name.rpartition(".")[0]
    lead = Modules({path: name}).absolute(path, ".".join(module), level)
    try:
        python = resolve_name("." * level + ".".join(module), package)
    except ImportError:
        # One level above the packages is the folder that a script's neighbours stand in.
        assert lead in (None, ".".join(module))
        assert lead is None or level <= package.count(".") + 2
    else:
        assert lead == python.rstrip(".")


def test_far_above_all_packages_is_nowhere() -> None:
    modules = Modules({"a/b.py": "a.b"})
    assert modules.absolute("a/b.py", "x", 3) is None
    assert modules.absolute("a/b.py", "", 2) is None


def test_neighbours_of_a_script_are_found_and_the_standard_library_is_not_hidden() -> None:
    paths = ["tools/run.py", "tools/near.py", "tools/json.py", "top.py"]
    modules = Modules(module_names(paths, []))
    assert modules.absolute("tools/run.py", "near", 0) == "tools.near"
    assert modules.absolute("tools/run.py", "near.x", 0) == "tools.near.x"
    assert modules.absolute("tools/run.py", "json", 0) == "json"
    assert modules.absolute("tools/run.py", "top", 0) == "top"
    assert modules.absolute("tools/run.py", "elsewhere.x", 0) == "elsewhere.x"


def test_a_stub_and_a_second_file_of_a_name_come_after() -> None:
    paths = ["m.pyi", "src/m.py", "m.py"]
    modules = Modules(module_names(paths, []))
    assert modules.paths["m"] == ["m.py", "src/m.py", "m.pyi"]


def test_namespaces_are_what_names_imply() -> None:
    modules = Modules({"a/b/c.py": "a.b.c", "d.py": "d"})
    assert modules.namespaces == {"a", "a.b"}
    assert [modules.has(name) for name in ("a", "a.b", "a.b.c", "d", "a.c", "")] == [True] * 4 + [False] * 2


def test_odd_paths_have_names() -> None:
    paths = ["__init__.py", "..py", ".py", "a-b/c.d/e f.py", "x/.hidden.py", "\ud800.py", "a/" * 200 + "b.py"]
    names = module_names(paths, ["", "..", "a" * 1000])
    assert list(names) == sorted(paths)
    assert all(isinstance(name, str) for name in names.values())


def test_the_standard_library_is_a_distribution() -> None:
    assert distribution("collections.abc") == distribution("_thread") == "python-stdlib"
    assert distribution("requests") == ""
