"""Make the inputs of the normalize rules from text, by the real extractors."""

from __future__ import annotations

from pathlib import Path

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.extract.evidence import ExtractFunction
from codeanatomy.file_view import FileView
from codeanatomy.node_ids import file_id
from codeanatomy.sources.source_file import Source, decode

OPTIONS = ExtractOptions()


def source_of(text: str | bytes, path: str = "a.py") -> Source:
    """Decode a text."""
    source = decode(path, text if isinstance(text, bytes) else text.encode())
    assert isinstance(source, Source)
    return source


def file_of(source: Source, *witnesses: ExtractFunction) -> FileView:
    """Return the evidence of a text; by default that of the extractors of the flow rules."""
    chosen = witnesses or (ast_files_v1, bytecode_files_v1)
    rows = {witness.__name__: witness(source, OPTIONS).cells for witness in chosen}
    return FileView("test", file_id("test", source.path), source.path, rows)


def sources_in(folder: Path) -> list[Source]:
    """Return the files of a package that can be read."""
    found = [decode(str(path), path.read_bytes()) for path in sorted(folder.rglob("*.py"))]
    return [source for source in found if isinstance(source, Source)]
