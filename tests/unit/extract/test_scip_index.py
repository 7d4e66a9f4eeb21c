"""Reading SCIP indexes: frames, spans, symbols; hand-made indexes and one that scip-python made."""

from __future__ import annotations

import ast
import builtins
import gzip
import io
import json
import re
import tokenize
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy.arrow import array
from codeanatomy.catalog.tables.extract_program import SCIP_INDEX_V1
from codeanatomy.extract.scip import schema as scip_schema
from codeanatomy.extract.scip.documents import VERSION, document_cells, index_cells
from codeanatomy.extract.scip.index_file import (
    MAX_PROBLEMS,
    Dialect,
    IndexScan,
    copy_without_root,
    read_document,
    read_external_symbols,
    scan_index,
)
from codeanatomy.extract.scip.schema import Document, Index, Metadata, Occurrence, SymbolInformation
from codeanatomy.sources.source_file import Source, decode
from support import corpus, scip_tool

PYTHON = Metadata(tool_info={"name": "scip-python", "version": "0.6.6"}, text_document_encoding=1)
UTF16 = Dialect("utf16", bom_columns=1)
COLUMNS = {column.name: column for column in SCIP_INDEX_V1.columns}


def source_of(raw: bytes, path: str = "a.py") -> Source:
    source = decode(path, raw)
    assert isinstance(source, Source)
    return source


def cells_of(
    document: Any,
    raw: bytes | None = b"",
    dialect: Dialect = UTF16,
    outside: Mapping[str, bytes] | None = None,
) -> tuple[Any, list[str]]:
    """The cells of a document, and what its problems say."""
    source = None if raw is None else source_of(raw)
    said = document_cells(document.SerializeToString(), source, dialect, outside or {})
    return said.cells, [problem.message for problem in said.problems]


def spans_of(raw: bytes, *ranges: list[int], dialect: Dialect = UTF16, encoding: int = 0) -> list[Any]:
    document = Document(occurrences=[Occurrence(range=each) for each in ranges], position_encoding=encoding)
    occurrences = cells_of(document, raw, dialect)[0]["occurrences"]
    return list(zip(occurrences["bstart"], occurrences["bend"], strict=True))


def frames_of(folder: Path, content: bytes) -> IndexScan:
    (folder / "index.scip").write_bytes(content)
    return scan_index(folder / "index.scip")


def kinds(frames: IndexScan) -> list[str]:
    return [problem.error_type for problem in frames.problems]


# Positions


@given(st.text(st.sampled_from("a\tè\u2028\x0c😀\uff58\N{COMBINING ACUTE ACCENT}"), max_size=9))
def test_columns_of_every_unit_become_bytes(line: str) -> None:
    """Against the definition of a unit: the length of what comes before, encoded that way."""
    raw = f"# before\n{line}\nafter".encode()
    units = {1: ("utf-8", 1), 2: ("utf-16-le", 2), 3: ("utf-32-le", 4)}
    for number, (codec, size) in units.items():
        places = {
            len(line[:count].encode(codec)) // size: len(line[:count].encode())
            for count in range(len(line) + 1)
        }
        columns = range(max(places) + 1)
        found = spans_of(raw, *([1, col, col] for col in columns), encoding=number)
        expected = [places.get(col) for col in columns]
        assert [start for start, _ in found] == [None if at is None else 9 + at for at in expected]


def test_the_document_says_the_unit_or_else_the_dialect() -> None:
    raw = 'e = "😀"; name\n'.encode()
    for number, col in ((1, 10), (2, 8), (3, 7)):
        assert spans_of(raw, [0, col + 1, col + 5], encoding=number) == [(11, 15)]
        document = Document(position_encoding=number)
        assert cells_of(document, raw)[0]["position_encoding"] == f"utf{2 ** (number + 2)}"
    assert spans_of(raw, [0, 9, 13]) == [(11, 15)]


def test_of_an_unknown_unit_only_ascii_lines_are_placed() -> None:
    raw = "é = 1\nname = 2\n".encode()
    document = Document(occurrences=[Occurrence(range=[0, 0, 1]), Occurrence(range=[1, 0, 4])])
    cells, problems = cells_of(document, raw, Dialect())
    assert cells["position_encoding"] is None
    assert cells["occurrences"]["bstart"] == [None, 7]
    assert problems == ["1 ranges cannot be placed in the file, the first: [0, 0, 0, 1]"]


@pytest.mark.parametrize(
    ("raw", "ranges", "spans"),
    [
        pytest.param(b"a\rb\r\nc", [[1, 0, 1], [2, 0, 1]], [(2, 3), (5, 6)], id="line ends"),
        pytest.param("a\x0c\u2028\x0b\x85\nb".encode(), [[1, 0, 1]], [(9, 10)], id="no line ends"),
        pytest.param(
            b"\xef\xbb\xbfone\ntwo", [[0, 0, 0], [0, 1, 4], [1, 0, 3]], [(0, 0), (0, 3), (4, 7)], id="BOM"
        ),
        pytest.param("\ufeffé=b".encode(), [[0, 1, 2], [0, 3, 4]], [(0, 2), (3, 4)], id="BOM, not ASCII"),
        pytest.param(
            b"ab\n", [[0, 2, 3], [0, 0, 1, 0], [1, 0, 0]], [(2, 3), (0, 3), (3, 3)], id="ends of lines"
        ),
        pytest.param(b"ab\n", [[0, 0, 4], [2, 0, 0], [1, 0, 1]], [(None, None)] * 3, id="beyond the ends"),
        pytest.param(b"", [[0, 0, 0], [0, 0, 1]], [(0, 0), (None, None)], id="empty file"),
    ],
)
def test_positions(raw: bytes, ranges: list[list[int]], spans: list[Any]) -> None:
    assert spans_of(raw, *ranges) == spans


def test_in_other_encodings_only_ascii_lines_are_placed() -> None:
    """The indexer takes the file for UTF-8; where that matters its columns mean nothing."""
    raw = "# coding: latin-1\ne = 'é'\nname = 1\n".encode("latin-1")
    assert spans_of(raw, [1, 0, 1], [2, 0, 4]) == [(None, None), (27, 31)]
    # ASCII text, but not the same as the bytes.
    assert spans_of(b"# coding: utf-7\n+AGE- = 1\nname = 1\n", [1, 0, 1], [2, 0, 4]) == [
        (None, None),
        (22, 26),
    ]


def test_a_mark_of_which_the_tool_is_not_known_to_count_it() -> None:
    assert spans_of(b"\xef\xbb\xbfone\ntwo", [0, 0, 3], [1, 0, 3], dialect=Dialect("utf8")) == [
        (None, None),
        (4, 7),
    ]


def test_ranges_of_three_and_four_numbers_and_of_the_newer_form() -> None:
    raw = b"def f():\n    pass\n"
    enclosing = {"start_line": 0, "start_character": 0, "end_line": 1, "end_character": 8}
    document = Document(
        occurrences=[
            Occurrence(range=[0, 4, 5], enclosing_range=[0, 0, 1, 8]),
            Occurrence(range=[0, 4, 0, 5], enclosing_range=[0, 0, 8]),
            Occurrence(
                single_line_range={"line": 0, "start_character": 4, "end_character": 5},
                multi_line_enclosing_range=enclosing,
            ),
            Occurrence(
                multi_line_range=enclosing,
                single_line_enclosing_range={"line": 1, "start_character": 4, "end_character": 8},
            ),
            Occurrence(range=[1, 4, 8]),
        ]
    )
    cells, problems = cells_of(document, raw)
    seen = cells["occurrences"]
    assert problems == []
    assert list(zip(seen["bstart"], seen["bend"], strict=True)) == [(4, 5), (4, 5), (4, 5), (0, 17), (13, 17)]
    assert list(zip(seen["enclosing_bstart"], seen["enclosing_bend"], strict=True)) == [
        (0, 17),
        (0, 8),
        (0, 17),
        (13, 17),
        (None, None),
    ]
    assert seen["end_line"] == [0, 0, 0, 1, 1]
    assert seen["enclosing_end_col"] == [8, 8, 8, 8, None]


@pytest.mark.parametrize(
    "numbers", [[], [0], [0, 1], [0, 0, 0, 1, 1], [-1, 0, 1], [0, -1, 1], [0, 2, 1], [1, 0, 0, 5], [0, 0, -1]]
)
def test_malformed_ranges_are_null_and_told(numbers: list[int]) -> None:
    document = Document(
        occurrences=[Occurrence(range=numbers, symbol="local 0"), Occurrence(range=[0, 0, 1])]
    )
    cells, problems = cells_of(document, b"abc\ndef\n")
    for name in ("start_line", "start_col", "end_line", "end_col", "bstart", "bend"):
        assert cells["occurrences"][name][0] is None
        assert cells["occurrences"][name][1] is not None
    assert problems == [f"1 ranges are malformed, the first: {numbers[:5]}"]


def test_a_malformed_enclosing_range_leaves_the_range_alone() -> None:
    document = Document(occurrences=[Occurrence(range=[0, 0, 1], enclosing_range=[7])])
    cells, problems = cells_of(document, b"abc")
    assert cells["occurrences"]["bend"] == [1]
    assert cells["occurrences"]["enclosing_start_line"] == [None]
    assert problems == ["1 ranges are malformed, the first: [7]"]


def test_without_the_file_there_are_no_spans_and_nothing_is_wrong() -> None:
    cells, problems = cells_of(Document(occurrences=[Occurrence(range=[3, 1, 4])]), None)
    assert (cells["occurrences"]["start_line"], cells["occurrences"]["bstart"]) == ([3], [None])
    assert problems == []


# What documents say


def test_every_role_bit() -> None:
    flags = (
        *("is_definition", "is_import", "is_write", "is_read"),
        *("is_generated", "is_test", "is_forward_definition"),
    )
    roles = [0, *(1 << bit for bit in range(8)), 127]
    document = Document(occurrences=[Occurrence(range=[0, 0, 0], symbol_roles=role) for role in roles])
    seen = cells_of(document)[0]["occurrences"]
    assert seen["symbol_roles"] == roles
    for bit, flag in enumerate(flags):
        assert [role for role, is_set in zip(roles, seen[flag], strict=True) if is_set] == [1 << bit, 127]


def test_symbols_relationships_and_diagnostics() -> None:
    document = Document(
        language="python",
        occurrences=[
            Occurrence(
                range=[0, 4, 5],
                symbol="t . p 1 f().",
                syntax_kind=16,
                diagnostics=[
                    {"severity": 2, "code": "E1", "message": "old", "source": "lint", "tags": [2, 0, 9]},
                    {"severity": 7},
                ],
            )
        ],
        symbols=[
            SymbolInformation(
                symbol="t . p 1 f().",
                display_name="f",
                kind=17,
                documentation=["one", "two"],
                signature_documentation={"text": "def f()"},
                enclosing_symbol="t . p 1 m/",
                relationships=[
                    {"symbol": "t . q 2 g().", "is_reference": True, "is_implementation": True},
                    {"symbol": "t . q 2 T#", "is_type_definition": True, "is_definition": True},
                ],
            ),
            SymbolInformation(symbol="local 1", kind=9999),
        ],
    )
    # A field of a later version of the protocol.
    later = Document.FromString(document.SerializeToString() + b"\xfa\x3f\x03abc")
    cells, problems = cells_of(later, b"def f(): pass\n", Dialect("utf8"))
    assert problems == []
    assert cells["language"] == "python"
    assert rows(cells["symbols"]) == [
        ("t . p 1 f().", "f", "Function", "t . p 1 m/", ["one", "two"], "def f()"),
        ("local 1", None, "9999", None, [], None),
    ]
    assert rows(cells["relationships"]) == [
        ("t . p 1 f().", "t . q 2 g().", True, True, False, False),
        ("t . p 1 f().", "t . q 2 T#", False, False, True, True),
    ]
    place = (0, 4, 0, 5, 4, 5)
    assert rows(cells["diagnostics"]) == [
        ("warning", "E1", "old", "lint", ["Deprecated", "9"], *place),
        ("7", None, None, None, [], *place),
    ]
    assert cells["occurrences"]["syntax_kind"] == ["IdentifierFunctionDefinition"]


def test_cells_fit_the_catalogue() -> None:
    document = Document(
        occurrences=[
            Occurrence(range=[0, 0, 1], symbol="local 0", diagnostics=[{"tags": [1]}]),
            Occurrence(),
        ],
        symbols=[SymbolInformation(symbol="x", documentation=["d"], relationships=[{"symbol": "y"}])],
    )
    outside = {"y": SymbolInformation(symbol="y", documentation=["told"]).SerializeToString()}
    cells, _ = cells_of(document, b"a\n", outside=outside)
    for name, cell in cells.items():
        lists = array(COLUMNS[name], [cell, None])
        assert len(lists) == 2
    assert array(COLUMNS["external_symbols"], [cells["external_symbols"]]).to_pylist()[0][0][
        "documentation"
    ] == ["told"]
    assert array(COLUMNS["occurrences"], [cells["occurrences"]]).to_pylist()[0][1]["symbol"] is None


def test_a_damaged_document_has_null_cells() -> None:
    whole = Document(relative_path="a.py", occurrences=[Occurrence(symbol="local 0")]).SerializeToString()
    for damaged in (whole[:-1], b"\x0a\x02\xff\xfe", b"\xff" * 20):
        said = document_cells(damaged, source_of(b""), UTF16, {})
        assert said.cells == {}
        assert [problem.error_type for problem in said.problems] == ["corrupt_document"]


def rows(columns: Mapping[str, list[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*columns.values(), strict=True))


# Symbols


def test_the_project_loses_its_version(tmp_path: Path) -> None:
    own, other = (
        "scip-python python my  project 1a2b3c m/f().",
        "scip-python python my  project-x 1a2b3c m/f().",
    )
    document = Document(
        relative_path="m.py",
        occurrences=[
            Occurrence(range=[0, 0, 0], symbol="scip-python python python-stdlib 3.11 os/__init__:"),
            Occurrence(range=[0, 0, 0], symbol=own, symbol_roles=1),
            Occurrence(range=[0, 0, 0], symbol=other),
            Occurrence(range=[0, 0, 0], symbol="local 0"),
        ],
        symbols=[
            SymbolInformation(symbol=own, enclosing_symbol=own, relationships=[{"symbol": own}]),
        ],
    )
    frames = frames_of(tmp_path, Index(metadata=PYTHON, documents=[document]).SerializeToString())
    assert frames.dialect == Dialect("utf16", 1, "scip-python python my  project ", "1a2b3c")
    cells, _ = cells_of(document, b"", frames.dialect)
    assert cells["occurrences"]["symbol"] == [
        "scip-python python python-stdlib 3.11 os/__init__:",
        "scip-python python my  project 0 m/f().",
        other,
        "local 0",
    ]
    stable = "scip-python python my  project 0 m/f()."
    assert (cells["symbols"]["symbol"], cells["symbols"]["enclosing_symbol"]) == ([stable], [stable])
    assert (cells["relationships"]["symbol"], cells["relationships"]["related_symbol"]) == (
        [stable],
        [stable],
    )


def test_symbols_of_other_tools_stay_as_they_are(tmp_path: Path) -> None:
    symbol = "scip-java maven group/artifact 1.0 p/C#"
    document = Document(
        relative_path="src/C.java",
        language="java",
        occurrences=[Occurrence(range=[0, 6, 7], symbol=symbol, symbol_roles=1)],
    )
    made = Index(metadata=Metadata(tool_info={"name": "scip-java"}), documents=[document])
    frames = frames_of(tmp_path, made.SerializeToString())
    assert frames.dialect == Dialect()
    cells, problems = cells_of(document, b"class C {}\n", frames.dialect)
    assert (cells["language"], cells["occurrences"]["symbol"], problems) == ("java", [symbol], [])
    assert cells["occurrences"]["bstart"] == [6]


def test_documents_have_the_outside_symbols_that_they_mention(tmp_path: Path) -> None:
    names = ("used", "related", "unused")
    outside = [SymbolInformation(symbol=f"t . o 1 {name}#", documentation=[name]) for name in names]
    document = Document(
        relative_path="a.py",
        occurrences=[
            Occurrence(symbol="t . o 1 used#"),
            Occurrence(symbol="t . o 1 used#"),
            Occurrence(symbol="local 3"),
        ],
        symbols=[SymbolInformation(symbol="t . p 1 C#", relationships=[{"symbol": "t . o 1 related#"}])],
    )
    other = Document(relative_path="b.py", occurrences=[Occurrence(symbol="t . o 1 unknown#")])
    # scip-python tells of builtin functions by a symbol that is local to some document.
    mistaken = SymbolInformation(symbol="local 3", documentation=["of another document"])
    # Apart, as shards of an index that were joined.
    parts = (
        Index(metadata=PYTHON, external_symbols=outside[:1]),
        Index(documents=[document, other]),
        Index(external_symbols=[*outside[1:], mistaken]),
    )
    frames = frames_of(tmp_path, b"".join(part.SerializeToString() for part in parts))
    told = read_external_symbols(tmp_path / "index.scip", frames.external_symbols)
    assert sorted(told) == sorted(each.symbol for each in outside)
    assert cells_of(document, None, outside=told)[0]["external_symbols"]["documentation"] == [
        ["used"],
        ["related"],
    ]
    assert cells_of(other, None, outside=told)[0]["external_symbols"]["symbol"] == []
    assert read_external_symbols(tmp_path / "index.scip", None) == {}
    # What is remembered is forgotten when the index is another.
    again = frames_of(tmp_path, parts[0].SerializeToString())
    assert list(read_external_symbols(tmp_path / "index.scip", again.external_symbols)) == ["t . o 1 used#"]


# Frames

SMALL = [
    Index(metadata=PYTHON),
    *(
        Index(
            documents=[
                Document(
                    relative_path=f"{name}.py",
                    occurrences=[
                        Occurrence(range=[0, 0, 1], symbol=f"scip-python python p 7 {name}/", symbol_roles=1)
                    ],
                )
            ]
        )
        for name in "abc"
    ),
    Index(external_symbols=[SymbolInformation(symbol="t . o 1 x#")]),
]


def test_a_whole_index(tmp_path: Path) -> None:
    content = b"".join(part.SerializeToString() for part in SMALL)
    frames = frames_of(tmp_path, content)
    assert frames.problems == ()
    assert [frame.path for frame in frames.documents] == ["a.py", "b.py", "c.py"]
    whole = Index.FromString(content)
    for frame, document in zip(frames.documents, whole.documents, strict=True):
        assert read_document(tmp_path / "index.scip", frame) == document.SerializeToString()
    row = index_cells(frames)
    assert row.cells["metadata"] == {
        "protocol_version": 0,
        "tool_name": "scip-python",
        "tool_version": "0.6.6",
        "tool_arguments": [],
        "text_document_encoding": "UTF8",
        "document_count": 3,
    }
    assert len(array(COLUMNS["metadata"], [row.cells["metadata"]])) == 1
    assert VERSION.endswith("rules 1")


def test_cut_at_every_byte_the_documents_before_stay(tmp_path: Path) -> None:
    parts = [part.SerializeToString() for part in SMALL]
    content = b"".join(parts)
    ends = [sum(map(len, parts[: count + 1])) for count in range(len(parts))]
    for size in range(len(content)):
        frames = frames_of(tmp_path, content[:size])
        whole = sum(end <= size for end in ends)
        assert len(frames.documents) == min(max(whole - 1, 0), 3), size
        # A cut between two fields cannot be seen, except that there must be metadata.
        assert bool(frames.problems) is (size not in ends), size
        if frames.problems and size:
            assert kinds(frames) == ["corrupt_index"]
            assert frames.problems[0].message.startswith(f"byte {ends[whole - 1] if whole else 0}: ")
        for frame in frames.documents:
            said = document_cells(read_document(tmp_path / "index.scip", frame), None, frames.dialect, {})
            assert said.cells["occurrences"]["symbol"] == [f"scip-python python p 0 {frame.path[0]}/"]


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_looked_through(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, after: bool
) -> None:
    content = SMALL[0].SerializeToString() * after + SMALL[1].SerializeToString() * after + noise
    folder = tmp_path_factory.getbasetemp()
    frames = frames_of(folder, content)
    assert len(frames.index_sha256) == 64
    assert [frame.path for frame in frames.documents][:after] == ["a.py"] * after
    read_external_symbols(folder / "index.scip", frames.external_symbols)
    for frame in frames.documents:
        document_cells(read_document(folder / "index.scip", frame), source_of(b"x = 1\n"), frames.dialect, {})


def foreign() -> Iterator[Any]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.scip", SMALL[0].SerializeToString())
    lsif = json.dumps({"id": 1, "type": "vertex", "label": "metaData"}).encode()
    yield pytest.param(b"", "no_metadata", "the file is empty", id="empty")
    yield pytest.param(archive.getvalue(), "corrupt_index", "byte ", id="zip")
    yield pytest.param(gzip.compress(b"x"), "corrupt_index", "byte 0: ", id="gzip")
    yield pytest.param(lsif, "corrupt_index", "byte 0: ", id="LSIF")
    yield pytest.param(b"\n#!/usr/bin/env python3\nimport os\n", "corrupt_index", "byte 0: ", id="text")
    yield pytest.param(b"# comment\n" * 50, "corrupt_index", "byte ", id="more text")
    yield pytest.param(b"\x08\x01\x12\x00", "corrupt_index", "byte 0: ", id="metadata that is a number")
    yield pytest.param(
        b"\x12\xff\xff\xff\xff\x7f", "corrupt_index", "byte 0: ", id="a document beyond the end"
    )
    yield pytest.param(b"\x80" * 30, "corrupt_index", "byte 0: ", id="an endless number")
    yield pytest.param(b"\x78\x05", "no_metadata", "no metadata", id="only unknown fields")


@pytest.mark.parametrize(("content", "kind", "message"), list(foreign()))
def test_foreign_files(tmp_path: Path, content: bytes, kind: str, message: str) -> None:
    frames = frames_of(tmp_path, content)
    assert kinds(frames) == [kind]
    assert frames.problems[0].message.startswith(message)
    assert frames.documents == ()
    assert index_cells(frames).cells["metadata"]["tool_name"] is None


@pytest.mark.parametrize(
    "path", ["../a.py", "/a.py", "", "a//b.py", "./a.py", "a/../b.py", "a/.", "/", "a\0.py", "x" * 40_000]
)
def test_documents_outside_the_repository_are_left_out(tmp_path: Path, path: str) -> None:
    documents = [Document(relative_path=path), Document(relative_path="kept.py")]
    frames = frames_of(tmp_path, Index(metadata=PYTHON, documents=documents).SerializeToString())
    assert [frame.path for frame in frames.documents] == ["kept.py"]
    assert kinds(frames) == ["document_path"]


def test_a_path_that_is_not_text(tmp_path: Path) -> None:
    content = SMALL[0].SerializeToString() + b"\x12\x04\x0a\x02\xff\xfe" + SMALL[1].SerializeToString()
    frames = frames_of(tmp_path, content)
    assert ([frame.path for frame in frames.documents], kinds(frames)) == (["a.py"], ["document_path"])


def test_the_path_may_come_last(tmp_path: Path) -> None:
    occurrences = Document(occurrences=[Occurrence(symbol="local 0")]).SerializeToString()
    raw = occurrences + Document(relative_path="late.py").SerializeToString()
    content = SMALL[0].SerializeToString() + b"\x12" + bytes([len(raw)]) + raw
    assert [frame.path for frame in frames_of(tmp_path, content).documents] == ["late.py"]


def test_of_two_documents_for_a_path_the_first_is_kept(tmp_path: Path) -> None:
    first = Document(relative_path="a.py", occurrences=[Occurrence(symbol="local 1")])
    second = Document(relative_path="a.py", occurrences=[Occurrence(symbol="local 2")])
    frames = frames_of(tmp_path, Index(metadata=PYTHON, documents=[first, second]).SerializeToString())
    assert kinds(frames) == ["duplicate_document"]
    assert [read_document(tmp_path / "index.scip", frame) for frame in frames.documents] == [
        first.SerializeToString()
    ]


def test_problems_are_bounded(tmp_path: Path) -> None:
    documents = [Document(relative_path="/x")] * (MAX_PROBLEMS + 5)
    frames = frames_of(tmp_path, Index(metadata=PYTHON, documents=documents).SerializeToString())
    assert len(frames.problems) == MAX_PROBLEMS + 1
    assert frames.problems[-1].message == "5 more problems are not listed"


def test_an_index_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.scip"
    symbols = [SymbolInformation(symbol="local 1", documentation=["x" * 1_000_000])]
    with path.open("wb") as file:
        file.write(SMALL[0].SerializeToString())
        for number in range(40):
            document = Document(relative_path=f"{number}.py", symbols=symbols)
            file.write(Index(documents=[document]).SerializeToString())
    tracemalloc.start()
    try:
        frames = scan_index(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(frames.documents) == 40
    assert peak < 5_000_000


def test_a_copy_does_not_tell_where_it_was_made(tmp_path: Path) -> None:
    parts = [part.SerializeToString() for part in SMALL[1:]]
    for folder in ("one", "another"):
        made = Metadata()
        made.CopyFrom(PYTHON)
        made.project_root = f"file:///{folder}"
        (tmp_path / folder).write_bytes(b"".join((Index(metadata=made).SerializeToString(), *parts)))
        copy_without_root(tmp_path / folder, tmp_path / f"{folder}.scip")
    copy = (tmp_path / "one.scip").read_bytes()
    assert copy == (tmp_path / "another.scip").read_bytes()
    assert copy == b"".join((SMALL[0].SerializeToString(), *parts))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", "another.scip", "one", "one.scip"]


# What scip-python makes


@pytest.mark.system
def test_names_and_numbers_are_those_of_the_indexer() -> None:
    """Its source map has the bindings it was generated from: an oracle for every number."""
    folder = scip_tool.installed().resolve().parent / "dist"
    sources = json.loads((folder / "scip-python.js.map").read_text(encoding="utf-8"))
    bindings = next(
        text
        for name, text in zip(sources["sources"], sources["sourcesContent"], strict=True)
        if name.endswith("/scip.ts")
    )
    for name, table in (
        ("Kind", scip_schema.KINDS),
        ("SyntaxKind", scip_schema.SYNTAX_KINDS),
        ("DiagnosticTag", scip_schema.DIAGNOSTIC_TAGS),
        ("TextEncoding", scip_schema.TEXT_ENCODINGS),
    ):
        body = re.search(rf"export enum {name} \{{(.*?)\}}", bindings, re.DOTALL)
        assert body, name
        numbers: dict[int, str] = {}
        for word, number in re.findall(r"(\w+) = (\d+)", body[1]):
            numbers.setdefault(int(number), word)
        del numbers[0]
        assert numbers.items() <= table.items(), name
    classes = dict(re.findall(r"export class (\w+) extends(.*?)static deserialize\(", bindings, re.DOTALL))
    # The messages that are newer than this indexer.
    assert set(scip_schema.MESSAGES) - set(classes) == {"SingleLineRange", "MultiLineRange", "Signature"}
    for message in set(scip_schema.MESSAGES) & set(classes):
        getters = dict(
            re.findall(r"get (\w+)\(\) \{\s*return [^;{]*?this,\s*(?:[A-Z]\w*,\s*)?(\d+)", classes[message])
        )
        numbered = {name: number for name, number, _ in map(str.split, scip_schema.MESSAGES[message])}
        shared = set(getters) & set(numbered)
        assert {name: numbered[name] for name in shared} == {name: getters[name] for name in shared}
        assert {name for name in numbered if name not in getters} <= NEWER, message


NEWER = {
    "position_encoding",
    "single_line_range",
    "multi_line_range",
    "single_line_enclosing_range",
    "multi_line_enclosing_range",
}


@pytest.mark.system
def test_every_span_is_a_name_in_the_source() -> None:
    checked = Counter(how for source, seen in real("requests") for how in readings(source, seen))
    assert checked["strange"] < 0.005 * checked.total(), checked
    assert checked["name"] > 0.9 * (checked.total() - checked["local"]), checked


@pytest.mark.system
@pytest.mark.parametrize("package", ["flask", "django"])
def test_every_span_is_a_name_in_larger_sources(package: str) -> None:
    checked = Counter(how for source, seen in real(package) for how in readings(source, seen))
    assert checked["strange"] < 0.02 * checked.total(), checked
    assert checked["name"] > 0.9 * (checked.total() - checked["local"]), checked


@pytest.mark.system
def test_definitions_are_those_of_the_syntax_tree() -> None:
    compare_definitions("requests")


@pytest.mark.system
@pytest.mark.parametrize("package", ["flask", "django"])
def test_definitions_are_those_of_larger_syntax_trees(package: str) -> None:
    compare_definitions(package)


def real(package: str) -> Iterator[tuple[Source, Mapping[str, list[Any]]]]:
    """Each file of the package with its occurrences; every file must have some, and no problem."""
    index, folder = scip_tool.index(package), corpus.package(package)
    frames = scan_index(index)
    assert frames.problems == ()
    assert frames.dialect.package == f"scip-python python {package} "
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    assert {frame.path for frame in frames.documents} == files
    outside = read_external_symbols(index, frames.external_symbols)
    for frame in frames.documents:
        source = source_of((folder / frame.path).read_bytes(), frame.path)
        said = document_cells(read_document(index, frame), source, frames.dialect, outside)
        assert said.problems == ()
        assert None not in said.cells["occurrences"]["bstart"]
        yield source, said.cells["occurrences"]


LAST = re.compile(r"(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[\w$+-]+))(?:[/#.:!]|\(\)\.|\)|\])$")
MODULE = re.compile(r"\.*\w*(\.\w+)*")
PARENTHESES = re.compile(r"^\([(\s]*(\w+)\b.*\)$", re.DOTALL)


def readings(source: Source, seen: Mapping[str, list[Any]]) -> Iterator[str]:
    """How each occurrence fits the text below its span, which always begins and ends with a token.

    The indexer counts the parentheses around a name to it; a star import has the symbol of one name of its.
    """
    starts, ends = token_borders(source)
    aliases = import_aliases(source)
    for symbol, start, end, roles in zip(
        seen["symbol"], seen["bstart"], seen["bend"], seen["symbol_roles"], strict=True
    ):
        text = source.utf8[start:end].decode()
        last = LAST.search(symbol)
        name = last and (last["quoted"] or last["plain"])
        if start == end:
            # The module is defined at the first byte of its file.
            assert (start, roles, name) == (0, 1, "__init__")
            yield "module"
            continue
        assert start in starts, (source.path, text, symbol)
        assert end in ends, (source.path, text, symbol)
        text = PARENTHESES.sub(r"\1", text)
        if symbol.startswith("local "):
            assert MODULE.fullmatch(text.split(" as ")[0]), (source.path, text)
            yield "local"
        elif text == name:
            yield "name"
        elif name == "__init__" and MODULE.fullmatch(text):
            yield "module"
        elif " as " in text or aliases.get(text) == name or text in aliases.values():
            yield "alias"
        else:
            assert MODULE.fullmatch(text), (source.path, text, symbol)
            yield "strange"


def token_borders(source: Source) -> tuple[set[int], set[int]]:
    """The bytes at which names, dots and parentheses begin, and at which they end."""
    starts, ends = set(), set()
    for token in tokenize.tokenize(io.BytesIO(source.utf8).readline):
        if token.type == tokenize.NAME or token.string in {".", "...", "(", ")"}:
            line = source.line_starts[token.start[0] - 1]
            starts.add(line + len(token.line[: token.start[1]].encode()))
            ends.add(line + len(token.line[: token.end[1]].encode()))
        elif token.type == tokenize.STRING:
            # An annotation in quotes has names in it.
            begin = source.offset_at(token.start[0], 0) + len(token.line[: token.start[1]].encode())
            for found in re.finditer(r"\w+", token.string):
                starts.add(begin + len(token.string[: found.start()].encode()))
                ends.add(begin + len(token.string[: found.end()].encode()))
    return starts, ends


def import_aliases(source: Source) -> dict[str, str]:
    imports = (
        node for node in ast.walk(ast.parse(source.utf8)) if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return {
        each.asname: each.name.rpartition(".")[2] for node in imports for each in node.names if each.asname
    }


DEFINES = re.compile(rb"(?:async\s+def|def|class)\s+(\w+)")
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def compare_definitions(package: str) -> None:
    """Names, places and extents of functions and classes.

    Of several definitions of a name the indexer takes the first, and it takes a few names for builtins.
    """
    found = missed = unexplained = 0
    for source, seen in real(package):
        tree = ast.parse(source.utf8)
        expected = dict(definition(source, node) for node in ast.walk(tree) if isinstance(node, DEFINITIONS))
        defined = {
            (start, end): (LAST.search(symbol)["plain"], outer, outer_end)
            for symbol, start, end, outer, outer_end, is_definition in zip(
                *(seen[name] for name in ("symbol", "bstart", "bend", "enclosing_bstart", "enclosing_bend")),
                seen["is_definition"],
                strict=True,
            )
            if is_definition and outer is not None
        }
        assert defined.items() <= expected.items(), source.path
        bound = Counter(bound_names(tree))
        names = [expected[place][0] for place in set(expected) - set(defined)]
        found += len(defined)
        missed += len(names)
        unexplained += sum(bound[name] == 1 and not hasattr(builtins, name) for name in names)
    assert found > 10 * missed
    assert unexplained < 0.003 * found


def definition(source: Source, node: Any) -> tuple[tuple[int, int], tuple[str, int | None, int | None]]:
    begin = source.offset_at(node.lineno, node.col_offset)
    first = node.decorator_list[0] if node.decorator_list else None
    # A decorator begins with its "@", which the tree leaves out.
    outer = source.offset_at(first.lineno, first.col_offset - 1) if first else begin
    name = DEFINES.match(source.utf8, begin)
    assert name
    return name.span(1), (node.name, outer, source.offset_at(node.end_lineno, node.end_col_offset))


def bound_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name
