"""The code whose change redoes a step: compared with the import graph that grimp builds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from codeanatomy.plan import step_code
from codeanatomy.plan.step_code import DECLARED, DRIVERS, PACKAGES, ROOT, code_digest, code_files
from codeanatomy.plan.steps import STAGES


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the code, whose digests are computed."""
    copied = tmp_path / "codeanatomy"
    shutil.copytree(ROOT, copied, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(step_code, "ROOT", copied)
    forget()
    yield copied
    forget()


def forget() -> None:
    code_digest.cache_clear()
    code_files.cache_clear()


def path_of(module: str) -> str:
    path = Path(*module.split(".")[1:])
    return (path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py")).as_posix()


@pytest.mark.parametrize("step", STAGES)
def test_the_code_of_a_step_is_all_that_it_imports(step: str) -> None:
    graph = grimp.build_graph("codeanatomy")
    expected: set[str] = set()
    for part in PACKAGES[step]:
        package = ".".join(("codeanatomy", *part.removesuffix(".py").split("/")))
        own = {package, *graph.find_descendants(package)}
        waiting = [*own]
        while waiting:
            module = waiting.pop()
            path = path_of(module)
            is_declared = DECLARED.match(path) and module not in own
            if path not in expected and not is_declared and module != "codeanatomy":
                expected.add(path)
                waiting += graph.find_modules_directly_imported_by(module)
    shared = {path for path in code_files(step) if path.startswith(DRIVERS)} - expected
    found = {path for path in code_files(step) if path.endswith(".py")} - shared
    assert found == expected


@pytest.mark.parametrize(
    ("changed", "redone"),
    [
        ("relate/values/solver.py", {"relate"}),
        ("relate/values/standard_library.txt", {"relate"}),
        ("graph/rows.py", {"graph"}),
        ("file_view.py", {"normalize", "relate", "graph"}),
        ("pipeline/passes.py", {*STAGES}),
        ("catalog/entry_points.py", {"graph"}),
        ("catalog/tables/normalize.py", set()),
        ("query/ask.py", set()),
        ("catalog/views.py", set()),
    ],
)
def test_a_changed_module_redoes_the_steps_that_use_it(changed: str, redone: set[str], copy: Path) -> None:
    before = {step: code_digest(step) for step in STAGES}
    with (copy / changed).open("a", encoding="utf-8") as file:
        file.write("\n# Changed.\n")
    forget()
    assert {step for step in STAGES if code_digest(step) != before[step]} == redone


def test_a_module_that_is_new_belongs_to_the_steps_that_import_it(copy: Path) -> None:
    before = code_digest("relate")
    (copy / "new_rules.py").write_text("LIMIT = 3\n", encoding="utf-8")
    forget()
    assert code_digest("relate") == before
    text = "def f():\n    from codeanatomy import (  # late\n        spans,  # x\n        new_rules,\n    )\n"
    (copy / "relate" / "more.py").write_text(text, encoding="utf-8")
    forget()
    assert {"relate/more.py", "new_rules.py"} <= code_files("relate")
