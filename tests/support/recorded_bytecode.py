"""Record the bytecode that other Python versions compile from the same programs.

    python tests/support/recorded_bytecode.py        # under the Python to be recorded

This writes `tests/cases/bytecode/3.13.json.gz`, or the file of another version. Only the fields that the flow
rules read are kept. The programs are those of the hand-drawn cases, whose facts are known;
`tests/unit/normalize/test_other_pythons.py` compares.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.file_view import AST, BYTECODE, FileView
from codeanatomy.normalize.flow.tables import EXCEPTION_FIELDS, INSTRUCTION_FIELDS, UNIT_FIELDS
from codeanatomy.sources.source_file import Source, decode
from support.folders import CASES

FOLDER = CASES / "bytecode"
OPTIONS = ExtractOptions()
# Of `<module>/f@1#0`.
UNIT_NAME = re.compile(r".*?([^/]*?)(@\d+#\d+)?$")


def recording(source: Source) -> dict[str, Any]:
    """Return the recorded fields of a text."""
    bytecode = bytecode_files_v1(source, OPTIONS).cells
    units = bytecode["code_objects"]
    return {
        "text": source.text,
        "bytecode": {
            "python_version": bytecode["python_version"],
            "code_objects": {
                **chosen(units, UNIT_FIELDS),
                "instructions": [chosen(each, INSTRUCTION_FIELDS) for each in units["instructions"]],
                "exception_table": [chosen(each, EXCEPTION_FIELDS) for each in units["exception_table"]],
            },
        },
    }


def chosen(columns: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    return {field: columns[field] for field in fields}


def recorded(version: str) -> dict[str, FileView]:
    """Return the programs as compiled by one Python version, by name."""
    with gzip.open(FOLDER / f"{version}.json.gz", "rt", encoding="utf-8") as stream:
        programs = json.load(stream)
    for each in programs.values():
        units = each["bytecode"]["code_objects"]
        # The recordings were made before the rules read names, which the keys have, too.
        units.setdefault("name", [UNIT_NAME.sub(r"\1", key) for key in units["code_unit_key"]])
    return {
        name: FileView("test", f"file:{name}", name, {AST: tree_of(each["text"]), BYTECODE: each["bytecode"]})
        for name, each in programs.items()
    }


def tree_of(text: str) -> Mapping[str, Any]:
    """Return the syntax tree of a recorded program, which is the same under every Python."""
    source = decode("a.py", text.encode())
    assert isinstance(source, Source)
    return ast_files_v1(source, OPTIONS).cells


def record(programs: Mapping[str, str]) -> Path:
    """Record the programs as compiled by this Python."""
    found = {}
    for name, text in programs.items():
        source = decode(name, text.encode())
        assert isinstance(source, Source)
        found[name] = recording(source)
    path = FOLDER / f"{sys.version_info.major}.{sys.version_info.minor}.json.gz"
    FOLDER.mkdir(exist_ok=True)
    # Without a time in it: the same programs give the same bytes.
    path.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), mtime=0))
    return path


if __name__ == "__main__":
    from support.flow_cases import CASES as PROGRAMS

    print(record({name: case.code.removeprefix("\n") for name, case in PROGRAMS.items()}))
