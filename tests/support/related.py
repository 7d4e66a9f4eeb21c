"""The relate stage without Spark: programs, values and rows of sources that a test has at hand.

values = solved({"main.py": "def f(): ...\\nf()\\n"})
edges(values)            # {"main": ["main.f"]}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.file_rows import file_id
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.relate.compile.file_summary import Witnessed, summary
from codeanatomy.relate.program import Program
from codeanatomy.relate.values.analysis import Values
from support.normalized import OPTIONS, source_of


def witnessed(text: str | bytes, path: str = "main.py", repo_id: str = "test") -> Witnessed:
    """What the witnesses say of a text."""
    source = source_of(text, path)
    said = [witness(source, OPTIONS).cells for witness in (ast_files_v1, symtable_files_v1, libcst_files_v1)]
    return Witnessed(repo_id, file_id(repo_id, path), path, *said)


def programs_of(sources: Mapping[str, str | bytes]) -> list[Program]:
    """The programs of a repository."""
    return [summary(witnessed(text, path)) for path, text in sources.items()]


def solved(sources: Mapping[str, str | bytes]) -> Values:
    """The values of a repository, solved."""
    values = Values(programs_of(sources))
    values.solve()
    return values


def sources_below(folder: Path) -> dict[str, bytes]:
    """The sources of a folder by their paths in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*.py*"))
        if path.suffix in (".py", ".pyi")
    }
