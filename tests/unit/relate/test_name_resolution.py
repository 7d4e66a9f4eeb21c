"""What imports and names mean: the same packages are imported by Python, and asked what they hold."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from codeanatomy.relate.values.name_resolution import NameResolver, Target
from support.relate_stage import solved

# What every case imports into `main`, by Python's own account: `pkg.mod.name` of functions and classes.
SHOW = """
import json, sys, types
import main
told = {}
for name, value in vars(main).items():
    if name.startswith("__"): continue
    if isinstance(value, types.ModuleType): told[name] = value.__name__
    elif hasattr(value, "__qualname__"): told[name] = f"{value.__module__}.{value.__qualname__}"
json.dump(told, sys.stdout)
"""

REPOSITORIES: dict[str, dict[str, str]] = {
    "hops": {
        "a.py": "from b import thing as renamed, Cls\n",
        "b.py": "from c import *\nfrom c import Cls\n",
        "c.py": "from d.e import thing\nclass Cls: ...\n",
        "d/__init__.py": "",
        "d/e.py": "def thing(): ...\n",
        "main.py": "from a import renamed, Cls as C\nimport a\n",
    },
    "cycle": {
        "a.py": "from b import late\ndef early(): ...\n",
        "b.py": "import a\ndef late(): ...\nfrom c import middle\n",
        "c.py": "import b\nfrom b import late as middle\n",
        "main.py": "from a import late, early\nfrom b import middle\n",
    },
    "packages": {
        "p/__init__.py": "from .inner import f\nfrom . import inner as i\nfrom .inner.deep import g as h\n",
        "p/inner/__init__.py": "from ..other import f\n",
        "p/inner/deep.py": "from ..other import f as g\n",
        "p/other.py": "def f(): ...\n",
        "main.py": "import p.inner.deep as d\nimport p.other\nfrom p import f, h, i, inner\n"
        "from p.inner import deep\n",
    },
    "stars": {
        "a.py": "from b import *\nfrom c import *\n",
        "b.py": "def f(): ...\ndef g(): ...\ndef _h(): ...\n__all__ = ['f', '_h']\n",
        "c.py": "def g(): ...\ndef f(): ...\ndef k(): ...\n_private = k\n",
        "main.py": "from a import *\nfrom a import f as af, _h\n",
    },
    "a name hides a submodule": {
        "p/__init__.py": "from p.f import f\n",
        "p/f.py": "def f(): ...\n",
        "main.py": "from p import f\n",
    },
    "last one wins": {
        "a.py": "def f(): ...\ndef g(): ...\n",
        "main.py": "from a import f\nfrom a import g as f\ndef k(): ...\nfrom a import f as k\n",
    },
    "namespace": {
        "ns/one.py": "def f(): ...\n",
        "main.py": "from ns import one\nimport ns.one as two\nfrom ns.one import f\n",
    },
    "source folder": {
        "src/q/__init__.py": "from q.r import C\n",
        "src/q/r.py": "class C: ...\n",
        "main.py": "from q import C, r\n",
    },
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What Python finds, in one process per repository."""
    told = {}
    for name, sources in REPOSITORIES.items():
        folder = tmp_path_factory.mktemp("repository")
        for path, text in sources.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        command = [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path[:0] = [{str(folder)!r}, {str(folder / 'src')!r}]\n{SHOW}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 0, done.stderr
        told[name] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("name", REPOSITORIES)
def test_names_of_a_module_are_what_an_import_finds(name: str, python: dict[str, dict[str, str]]) -> None:
    definitions = NameResolver(solved(REPOSITORIES[name]))
    found = {word: definitions.search(("name", "main", word)) for word in python[name]}
    assert {word: [each.qname for each in targets] for word, targets in found.items()} == {
        word: [qname] for word, qname in python[name].items()
    }
    assert {each.kind for targets in found.values() for each in targets} <= {"FUNCTION", "CLASS", "MODULE"}


def meant(sources: dict[str, str], name: str, module: str = "main") -> list[tuple[str, str | None]]:
    texts = {path: dedent(text) for path, text in sources.items()}
    return [(each.kind, each.qname) for each in NameResolver(solved(texts)).search(("name", module, name))]


@pytest.mark.parametrize("text", ["from . import a\n", "from p import a\n", "from . import a, b\n"])
def test_a_package_that_imports_its_own_submodule(text: str) -> None:
    sources = {
        "p/__init__.py": text,
        "p/a.py": "from . import b\n",
        "p/b.py": "",
        "main.py": "from p import a as x\n",
    }
    assert meant(sources, "a", "p") == meant(sources, "x") == [("MODULE", "p.a")]
    assert meant(sources, "b", "p.a") == [("MODULE", "p.b")]


def test_alternatives_are_all_meant() -> None:
    text = "try:\n  from fast import f\nexcept ImportError:\n  from slow import f\n"
    assert meant({"main.py": text, "slow.py": "def f(): ...\n"}, "f") == [
        ("QUALIFIED_NAME", "fast.f"),
        ("FUNCTION", "slow.f"),
    ]
    text = "try:\n  import fast\nexcept ImportError:\n  fast = None\n"
    assert meant({"main.py": text}, "fast") == [("EXTERNAL_MODULE", "fast"), ("BINDING", "main.fast")]


def test_variables_parameters_and_outside_names_are_nodes_too() -> None:
    sources = {
        "main.py": "import os.path\nfrom json import dumps as d\nx = 1\n",
        "a.py": "from main import x as y\n",
    }
    assert meant(sources, "os") == [("EXTERNAL_MODULE", "os")]
    assert meant(sources, "d") == [("QUALIFIED_NAME", "json.dumps")]
    assert meant(sources, "x") == meant(sources, "y", "a") == [("BINDING", "main.x")]
    assert meant(sources, "nothing") == []
    assert meant(sources, "anything", "numpy") == [("QUALIFIED_NAME", "numpy.anything")]


def test_imports_that_lead_in_a_circle_mean_nothing() -> None:
    sources = {"main.py": "from a import x\n", "a.py": "from b import x\n", "b.py": "from main import x\n"}
    assert meant(sources, "x") == []
    stars = {"main.py": "from a import *\n", "a.py": "from main import *\n"}
    assert meant(stars, "x") == []


def test_a_module_and_its_stub_are_one() -> None:
    sources = {
        "m.py": "def f(): ...\n",
        "m.pyi": "def f(): ...\ndef g(): ...\n",
        "main.py": "from m import f, g\n",
    }
    definitions = NameResolver(solved(sources))
    [f], [g] = definitions.search(("name", "main", "f")), definitions.search(("name", "main", "g"))
    files = {program.path: program.file_id for program in definitions.values.programs}
    assert f == Target(
        "FUNCTION", definitions.node_id_at("FUNCTION", definitions.values.files["m.py"], (0, 12, 1)), "m.f"
    )
    assert g == Target(
        "FUNCTION", definitions.node_id_at("FUNCTION", definitions.values.files["m.pyi"], (13, 25, 2)), "m.g"
    )
    assert files["m.py"] != files["m.pyi"]


def test_namespace_packages_are_packages_of_the_repository() -> None:
    sources = {
        "space/one/part.py": "def f(): ...\n",
        "main.py": "import space.one.part, other.one\nfrom space import one\n",
    }
    definitions = NameResolver(solved(sources))
    space, one = (Target("PACKAGE", f"package:test:{name}", name) for name in ("space", "space.one"))
    assert definitions.search(("name", "main", "space")) == (space,)
    assert (
        definitions.search(("name", "main", "one")) == definitions.search(("name", "space", "one")) == (one,)
    )
    assert [each.kind for each in definitions.search(("name", "main", "other"))] == ["EXTERNAL_MODULE"]


def test_two_files_of_one_name_are_searched_in_order() -> None:
    sources = {
        "m.py": "def f(): ...\n",
        "src/m.py": "def f(): ...\ndef g(): ...\n",
        "main.py": "from m import f, g\n",
    }
    definitions = NameResolver(solved(sources))
    assert definitions.search(("name", "main", "f")) == (
        definitions.function(definitions.values.files["m.py"], 0),
    )
    assert definitions.search(("name", "main", "g")) == (
        definitions.function(definitions.values.files["src/m.py"], 1),
    )


@pytest.mark.system
def test_a_long_chain_of_imports_is_followed() -> None:
    count = 1000
    sources = {f"m{at}.py": f"from m{at + 1} import f\n" for at in range(count)} | {
        f"m{count}.py": "def f(): ...\n"
    }
    assert meant(sources, "f", "m0") == [("FUNCTION", f"m{count}.f")]


def test_alternatives_of_alternatives_are_looked_at_once() -> None:
    hop = "try:\n  from m{0} import f\nexcept ImportError:\n  from m{0} import f\n"
    sources = {f"m{at}.py": hop.format(at + 1) for at in range(60)} | {"m60.py": "def f(): ...\n"}
    assert meant(sources, "f", "m0") == [("FUNCTION", "m60.f")]


def test_alternatives_of_all_from_all_end() -> None:
    count = 12
    text = "".join(f"try:\n  from m{at} import f\nexcept ImportError: ...\n" for at in range(count))
    assert meant({f"m{at}.py": text for at in range(count)}, "f", "m0") == []


def test_attributes_of_classes_are_bindings_or_definitions() -> None:
    values = solved(
        {"main.py": "import os\nclass A:\n  x = 1\n  def m(self): ...\n  o = os\n  from json import dumps\n"}
    )
    definitions, cls = NameResolver(values), values.object("C", 0, 0)
    found = {name: definitions.targets_in_class(cls, name)[0] for name in ("x", "m", "o", "dumps", "later")}
    assert {name: (each.kind, each.qname) for name, each in found.items()} == {
        "x": ("BINDING", "main.A.x"),
        "m": ("FUNCTION", "main.A.m"),
        "o": ("BINDING", "main.A.o"),
        "dumps": ("QUALIFIED_NAME", "json.dumps"),
        "later": ("BINDING", "main.A.later"),
    }


def test_what_has_no_place_has_an_id() -> None:
    definitions = NameResolver(solved({"main.py": ""}))
    assert definitions.node_id_at("FUNCTION", 0, (None, None, None)).startswith("function:")
    assert NameResolver(solved({})).repo_id == ""
