r"""Read the entry points that packaging files declare, and write them as Python.

    pyproject.toml                          its canonical text
    [project.scripts]                       # [project.scripts]
    web = "shop.web:run"                    {'console_scripts': 'web = shop.web:run'}  # web = "shop.web:run"

A build needs little of a packaging file. So its canonical text is Python: each line is a comment, and one
that declares entry points begins with what `setup.py` has for them. Lines keep their numbers and their text,
and all extractors, tables and positions work as for other files. A file without any has only comments.

| file | entry points |
|---|---|
| `pyproject.toml` | `project.scripts`, `.gui-scripts`, `.entry-points`; `tool.poetry.scripts`, `.plugins` |
| `setup.cfg` | `[options.entry_points]`, and `[entry_points]` of pbr |
| `entry_points.txt` in a folder `.dist-info` of a wheel | each section is a group |

>>> print(as_python("setup.cfg", "[options.entry_points]\nconsole_scripts =\n  web = shop.web:run [fast]"))
# [options.entry_points]
# console_scripts =
{'console_scripts': 'web = shop.web:run'}  #   web = shop.web:run [fast]

What setuptools generates in a folder `.egg-info` repeats the others and is not read. A file that cannot be
parsed is skipped as undecodable.

Tests: `tests/unit/sources/test_packaging_files.py`.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from configparser import RawConfigParser
from typing import Any, NamedTuple

PYPROJECT, SETUP_CFG, ENTRY_POINTS = "pyproject.toml", "setup.cfg", "entry_points.txt"
METADATA_FOLDER = ".dist-info"
# Larger files are written by machines or to do harm; the largest of known projects have some 100 KB.
MAX_BYTES, MAX_ENTRY_POINTS = 1024 * 1024, 1000
NEWLINE = re.compile(r"(\r\n|\r|\n)")
# Tables of programs, with their groups, and tables of groups.
PROGRAMS = (
    ("project.scripts", "console_scripts"),
    ("project.gui-scripts", "gui_scripts"),
    ("tool.poetry.scripts", "console_scripts"),
)
GROUPS = ("project.entry-points", "tool.poetry.plugins")
SECTIONS = ("options.entry_points", "entry_points")
# In Poetry, an entry point may be a table.
REFERENCES = ("reference", "callable")


class DeclaredEntry(NamedTuple):
    """What a line `label = reference` of a group declares."""

    group: str
    label: str
    # `shop.web:run`, or a module; without extras such as `[fast]`.
    reference: str


def is_packaging_file(path: str) -> bool:
    """Return whether a file may declare entry points.

    >>> [is_packaging_file(path) for path in ("a/setup.cfg", "a.dist-info/entry_points.txt", "a.toml")]
    [True, True, False]
    """
    folder, _, name = path.rpartition("/")
    return name in (PYPROJECT, SETUP_CFG) or (name == ENTRY_POINTS and folder.endswith(METADATA_FOLDER))


def as_python(path: str, text: str) -> str:
    """Return the canonical text of a packaging file; raise ValueError and others if it cannot be read."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"a packaging file of more than {MAX_BYTES} characters")
    declared = list(dict.fromkeys(_declared(path.rpartition("/")[2], text)))
    if len(declared) > MAX_ENTRY_POINTS:
        raise ValueError(f"more than {MAX_ENTRY_POINTS} entry points")
    # Lines and, in between, their ends.
    parts = NEWLINE.split(text)
    by_line: defaultdict[int, list[str]] = defaultdict(list)
    for each in declared:
        literal = repr({each.group: f"{each.label} = {each.reference}"})
        by_line[_line_of(parts[::2], each)].append(literal)
    parts[::2] = [_as_comment(line, by_line.get(number, ())) for number, line in enumerate(parts[::2])]
    return "".join(parts)


def _as_comment(line: str, literals: Sequence[str]) -> str:
    code = "; ".join(literals)
    comment = f"# {line}" if line.strip() else ""
    return f"{code}  {comment}" if code and comment else code or comment


def _line_of(lines: Sequence[str], declared: DeclaredEntry) -> int:
    """Return the index of the line that declares an entry point; 0 if it is written in another way."""
    begins = re.compile(rf"(?<![\w.-]){re.escape(declared.label)}[\"']?\s*=")
    having = [number for number, line in enumerate(lines) if declared.reference in line]
    named = (each for each in having if begins.search(lines[each].partition(declared.reference)[0]))
    return next(named, having[0] if having else 0)


def _declared(name: str, text: str) -> Iterator[DeclaredEntry]:
    for group, label, value in _in_toml(text) if name == PYPROJECT else _in_sections(name, text):
        reference = value.partition("[")[0].strip()
        if label.strip() and reference:
            yield DeclaredEntry(group, label.strip(), reference)


def _in_toml(text: str) -> Iterator[tuple[str, str, str]]:
    document = tomllib.loads(text)
    for table, group in PROGRAMS:
        yield from _in_table(group, _table(document, table))
    for table in GROUPS:
        groups = _table(document, table)
        for group in groups:
            yield from _in_table(group, _table(groups, group, ""))


def _in_table(group: str, entries: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for label, value in entries.items():
        written = [value] if isinstance(value, str) else [_text(value, key) for key in REFERENCES]
        yield group, label, next(filter(None, written), "")


def _text(table: object, key: str) -> str:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, str) else ""


def _table(document: Mapping[str, Any], path: str, separator: str = ".") -> Mapping[str, Any]:
    """Return a table of a document; empty if there is none, or something else in its place."""
    table: Any = document
    for key in path.split(separator) if separator else (path,):
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def _in_sections(name: str, text: str) -> Iterator[tuple[str, str, str]]:
    parser = RawConfigParser(strict=False, allow_no_value=True, delimiters=("=",))
    # Labels are kept as they are written.
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    for section in parser.sections() if name == ENTRY_POINTS else ():
        for label, value in parser.items(section):
            yield section, label, value or ""
    for section in SECTIONS if name == SETUP_CFG else ():
        for group, lines in parser.items(section) if parser.has_section(section) else ():
            for line in (lines or "").splitlines():
                label, _, value = line.partition("=")
                yield group, label, value
