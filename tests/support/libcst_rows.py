"""Extract texts with the LibCST extractor, and list real files to extract."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import ExtractorResult
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.sources.source_file import Source, decode
from support import corpus

PACKAGES = ("requests", "flask", "django")


def read(code: str | bytes) -> Source:
    source = decode("a.py", code.encode() if isinstance(code, str) else code)
    assert isinstance(source, Source), source
    return source


def extract_libcst(code: str | bytes) -> ExtractorResult:
    return libcst_files_v1(read(code), ExtractOptions())


def table(testimony: ExtractorResult, name: str, *fields: str) -> list[Any]:
    """Rows of a table as tuples of these fields; one field alone is not wrapped."""
    cell = testimony.cells[name]
    return list(cell[fields[0]]) if len(fields) == 1 else list(zip(*(cell[f] for f in fields), strict=True))


def rows(code: str | bytes, name: str, *fields: str) -> list[Any]:
    """Return rows of a text that the extractor must accept."""
    testimony = extract_libcst(code)
    assert not testimony.problems
    return table(testimony, name, *fields)


def texts(code: str, name: str, prefix: str = "") -> list[str | None]:
    """The texts under the spans of a table."""
    spans = rows(code, name, f"{prefix}bstart", f"{prefix}bend")
    utf8 = read(code).utf8
    return [None if start is None else utf8[start:end].decode() for start, end in spans]


def names(code: str, name: str = "callsites") -> list[list[str]]:
    """The qualified names of calls or definitions, in source order."""
    return [found["name"] for found in rows(code, name, "qualified_names")]


def stdlib(step: int = 1) -> Iterator[Source]:
    """Return every n-th file of the standard library that can be decoded."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for path in folder.rglob("*.py") if "site-packages" not in path.parts)
    yield from sources(paths[::step])


def package(name: str) -> Iterator[Source]:
    yield from sources(sorted(corpus.package(name).rglob("*.py")))


def sources(paths: list[Path]) -> Iterator[Source]:
    for path in paths:
        source = decode(path.as_posix(), path.read_bytes())
        if isinstance(source, Source):
            yield source
