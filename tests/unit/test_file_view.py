"""Views of files: fresh ones and those loaded from Arrow give the same cells and the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, to_python
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import extract_file, table_batches
from codeanatomy.extract.worker import extract_tables
from codeanatomy.file_view import (
    AST,
    BYTECODE,
    FILES,
    INNER,
    LIBCST,
    LINES,
    NESTED,
    SCIP,
    FileView,
    Lines,
    Reads,
    fresh_view,
    load_views,
    project,
    union_reads,
)
from codeanatomy.graph.reads import READS as GRAPH_READS
from codeanatomy.graph.reads import reads as graph_reads
from codeanatomy.node_ids import file_id
from codeanatomy.normalize import rules
from codeanatomy.relate.compile.file_program import (
    NO_TREE,
    READS,
    WITNESS_READS,
    compile_file,
    with_witnesses,
)
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import Reading
from support import corpus
from support.file_evidence import document
from support.graph_stage import whole_graph
from support.hostile_files import HOSTILE, STRANGE
from support.marks import quick
from support.relate_stage import repository_rows, sources_below

ALL_READS = (rules.READS, READS, WITNESS_READS, GRAPH_READS)
# Text that UTF-8 cannot encode, where extractors evaluate it.
SURROGATES = {
    "docstrings.py": b"'\\ud800 doc'\ndef f(x: 'int'):\n    '\\udfff'\n    return '\\ud800', x\n",
    "names.py": b"getattr(f, '\\ud800')\nx = {'\\udc00': 1}\nclass A:\n    '''\\ud83d'''\n",
}
# Bytes of the smallest buffer that counts as copied.
OFFSETS = 64
PACKAGES = ("requests", pytest.param("flask", marks=pytest.mark.system), "hostile")
Batches = Mapping[str, Sequence[pa.RecordBatch]]


def extracted(sources: Mapping[str, bytes]) -> list[dict[str, Any]]:
    readings = [
        Reading(Entry(path, f"/{path}", len(raw), 0, False, None), raw, 0, None)
        for path, raw in sources.items()
    ]
    return [extract_file("r", each, EXTRACTORS, ExtractOptions(), {}, lambda _: None) for each in readings]


@cache
def rows_of(package: str) -> list[dict[str, Any]]:
    if package == "hostile":
        # This one ends the process of a parser.
        sources = {**HOSTILE, **STRANGE, **SURROGATES}
        return extracted({path: raw for path, raw in sources.items() if path != "deeper.py"})
    return extracted(sources_below(corpus.package(package)))


def batches_of(files: Sequence[dict[str, Any]], size: int | None = None) -> dict[str, list[pa.RecordBatch]]:
    """The rows of files in Arrow, in chunks of so many files."""
    chunks = [files[at : at + (size or len(files))] for at in range(0, len(files), size or len(files))]
    made = [table_batches(extract_tables(EXTRACTORS), chunk) for chunk in chunks]
    return {name: [each[name] for each in made] for name in made[0]}


def plain(cell: Any) -> Any:
    """A cell as Arrow would return it."""
    if isinstance(cell, Mapping):
        return {name: plain(value) for name, value in cell.items()}
    if isinstance(cell, (list, tuple, range)):
        return [plain(value) for value in cell]
    return cell.encode("utf-8", "backslashreplace").decode() if isinstance(cell, str) else cell


def chosen(view: FileView, reads: Reads) -> dict[str, Any]:
    """The cells of a view that are declared as read."""
    found: dict[str, Any] = {}
    for table, columns in reads.items():
        cells = view.rows(table)
        # An empty file has a line index without rows.
        has_rows = any(map(len, cells.values())) if table == LINES else bool(cells)
        for name, fields in columns.items() if has_rows else ():
            found[table, name] = _fields(cells.get(name), fields)
    return found


def _fields(cell: Any, fields: Sequence[str]) -> Any:
    if not fields or cell is None:
        return plain(cell)
    return {
        field: [_fields(each, INNER[field]) for each in cell[field]] if field in INNER else plain(cell[field])
        for field in fields
    }


def typed(cells: Any) -> str:
    """Cells with their types: True is not 1."""
    return repr(cells)


# Fresh and loaded


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("reads", ALL_READS, ids=["normalize", "relate", "witnesses", "graph"])
def test_a_loaded_view_has_the_cells_of_the_fresh_one(package: str, reads: Reads) -> None:
    files = rows_of(package)
    loaded = load_views(batches_of(files, 5), reads)
    for rows in files:
        fresh = fresh_view(rows)
        view = loaded.get(fresh.file_id)
        if view is None:
            assert not chosen(fresh, reads)
        else:
            assert view.key == fresh.key
            assert typed(chosen(view, reads)) == typed(chosen(fresh, reads))


@pytest.mark.parametrize("package", PACKAGES)
def test_rules_and_programs_do_not_depend_on_how_a_file_was_read(package: str) -> None:
    files = rows_of(package)
    loaded = load_views(batches_of(files, 7), union_reads(rules.READS, READS))
    assert loaded.keys() == {rows["file"]["file_id"] for rows in files}
    for rows in files:
        fresh = fresh_view(rows)
        view = loaded[fresh.file_id]
        one, other = rules.file_rows(fresh), rules.file_rows(view)
        for name in rules.FILE_TABLES:
            assert one[name].equals(other[name]), (fresh.path, name)
        assert msgpack.encode(compile_file(fresh)) == msgpack.encode(compile_file(view))


@pytest.mark.parametrize(
    ("package", "profile"),
    quick([("requests", "default"), ("requests", "full"), ("hostile", "full"), ("flask", "full")], 1, 2),
)
def test_graph_rows_do_not_depend_on_how_a_file_was_read(package: str, profile: Any) -> None:
    files = rows_of(package)
    fresh = {view.file_id: view for view in map(fresh_view, files)}
    derived: dict[str, list[pa.RecordBatch]] = {}
    for view in fresh.values():
        for name, batch in rules.file_rows(view).items():
            derived.setdefault(name, []).append(batch)
    programs = [compile_file(view) for view in fresh.values() if view.row(LIBCST)]
    for _, tables in repository_rows(programs):
        for name, batch in tables.items():
            derived.setdefault(name, []).append(batch)
    loaded = load_views({**batches_of(files), **derived}, graph_reads(profile))
    assert loaded.keys() == fresh.keys()
    for key, view in loaded.items():
        both = FileView(*view.key, {**view.tables, **fresh[key].tables})
        one, other = whole_graph(both, profile), whole_graph(view, profile)
        assert one == other, view.path


def test_the_lists_of_a_fresh_view_are_those_of_the_extractors() -> None:
    (rows,) = extracted({"a.py": b"x = 1\n"})
    view = fresh_view(rows)
    assert view.list(AST, "nodes") is rows[AST]["nodes"]
    assert view.rows(LINES) is rows[LINES]


def test_text_that_cannot_be_encoded_is_escaped_in_rows() -> None:
    rows = extracted(SURROGATES)
    fresh = [fresh_view(each).list(AST, "docstrings")["text"] for each in rows]
    # Lists, because a linter takes such texts for the same.
    assert fresh == [["\ud800 doc", "\udfff"], ["\ud83d"]]
    loaded = load_views(batches_of(rows), GRAPH_READS).values()
    assert [view.list(AST, "docstrings")["text"] for view in loaded] == [
        ["\\ud800 doc", "\\udfff"],
        ["\\ud83d"],
    ]


# What is read


def test_reads_name_columns_and_fields_of_the_catalogue() -> None:
    for table, columns in union_reads(*ALL_READS).items():
        known = {column.name: column for column in catalog.table(table).columns}
        for name, fields in columns.items():
            of_lists = {field.name: field for field in known[name].fields}
            for field in fields:
                inner = {each.name for each in of_lists[field].fields}
                assert set(INNER.get(field, ())) <= inner, (table, name, field)
                assert not inner or field in INNER


def test_lists_inside_of_lists_have_what_the_packages_read() -> None:
    flags = ("is_declared_global", "is_nonlocal", "is_free", "is_local", "is_assigned", "is_imported")
    assert {"name", *flags} <= set(INNER["symbols"])
    assert "instructions" not in graph_reads("default")[BYTECODE]["code_objects"]
    assert "instructions" in graph_reads("full")[BYTECODE]["code_objects"]


def test_tables_with_one_row_per_file() -> None:
    assert {FILES, AST, LIBCST, BYTECODE, "type_checker_files_v1"} <= NESTED
    assert NESTED.isdisjoint({SCIP, LINES, "relations_v1", "diagnostics_norm_v1"})


# Projections


@pytest.mark.parametrize("reads", ALL_READS, ids=["normalize", "relate", "witnesses", "graph"])
def test_a_projection_has_keys_and_what_is_read(reads: Reads) -> None:
    batches = batches_of(rows_of("hostile"))
    for table, fields in reads.items():
        for batch in batches.get(table, ()):
            read = project(table, batch, fields)
            read.validate(full=True)
            keys = ["repo_id", "file_id", "path", *(("index_id", "row_kind") if table == SCIP else ())]
            assert read.schema.names == [*keys, *fields]
            for name, names in fields.items():
                kind = read.schema.field(name).type
                if names:
                    assert [field.name for field in kind.value_type] == list(names)
                assert _addresses(read.column(name)) <= _addresses(batch.column(name))


def _addresses(array: pa.Array) -> set[int]:
    """Addresses of buffers; those of arrays without values are made anew, with one offset."""
    return {buffer.address for buffer in array.buffers() if buffer is not None and buffer.size > OFFSETS}


def test_a_projection_of_a_projection_is_the_same() -> None:
    batches = batches_of(rows_of("hostile"))
    whole = load_views(batches, rules.READS)
    projected = {
        table: [project(table, project(table, batch, fields), fields) for batch in batches.get(table, ())]
        for table, fields in rules.READS.items()
    }
    again = load_views(projected, rules.READS)
    assert typed([chosen(view, rules.READS) for view in again.values()]) == typed(
        [chosen(view, rules.READS) for view in whole.values()]
    )


ITEMS = st.none() | st.lists(
    st.fixed_dictionaries({"kind": st.none() | st.text(max_size=2), "bstart": st.none() | st.integers(0, 9)}),
    max_size=3,
)


@given(st.lists(ITEMS, max_size=6), st.integers(0, 4), st.integers(0, 4))
def test_projections_of_slices(lists: list[Any], skip: int, take: int) -> None:
    kind = pa.list_(pa.struct({"kind": pa.string(), "other": pa.int64(), "bstart": pa.int64()}))
    ids = [f"file:{number}" for number in range(len(lists))]
    columns = {"repo_id": ["r"] * len(ids), "file_id": ids, "path": ids}
    batch = pa.RecordBatch.from_arrays(
        [*(pa.array(values, pa.string()) for values in columns.values()), pa.array(lists, kind)],
        [*columns, "nodes"],
    ).slice(skip, take)
    read = project(AST, batch, {"nodes": ("bstart", "kind")})
    read.validate(full=True)
    expected = [
        each and [{"bstart": one["bstart"], "kind": one["kind"]} for one in each]
        for each in lists[skip : skip + take]
    ]
    assert read.column("nodes").to_pylist() == expected
    assert to_python(read.column("nodes")) == [
        None if each is None else {name: [one[name] for one in each] for name in ("bstart", "kind")}
        for each in lists[skip : skip + take]
    ]


def test_null_structs_and_missing_columns() -> None:
    kind = pa.list_(pa.struct({"kind": pa.string(), "line": pa.int64()}))
    nodes = pa.array([[{"kind": "a", "line": 1}, None], [{"kind": "b", "line": None}]], kind)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["r", "r"]), pa.array(["f", "g"]), pa.array(["f", "g"]), nodes],
        ["repo_id", "file_id", "path", "nodes"],
    )
    read = project(AST, batch.slice(0, 2), {"nodes": ("kind", "absent"), "imports": ("kind",)})
    assert read.schema.names == ["repo_id", "file_id", "path", "nodes"]
    assert read.column("nodes").to_pylist() == [[{"kind": "a"}, None], [{"kind": "b"}]]
    view = load_views({AST: [batch]}, {AST: {"nodes": ("kind",), "imports": ("kind",)}})["g"]
    assert (view.list(AST, "nodes"), view.list(AST, "imports")) == ({"kind": ["b"]}, {})


# Chunks


def test_rows_of_flat_tables_keep_their_order_across_batches() -> None:
    def batch(ids: Iterable[str], numbers: Iterable[int]) -> pa.RecordBatch:
        rows = [
            {"repo_id": "r", "file_id": each, "path": f"{each}.py", "diag_code": str(number)}
            for each, number in zip(ids, numbers, strict=True)
        ]
        return pa.RecordBatch.from_pylist(rows, arrow_schema(catalog.table("diagnostics_norm_v1")))

    reads = {"diagnostics_norm_v1": {"diag_code": ()}}
    views = load_views({"diagnostics_norm_v1": [batch("aabba", range(5)), batch("ba", (5, 6))]}, reads)
    codes = {view.path: view.rows("diagnostics_norm_v1") for view in views.values()}
    assert codes == {"a.py": {"diag_code": ["0", "1", "4", "6"]}, "b.py": {"diag_code": ["2", "3", "5"]}}


def test_chunks_and_slices_do_not_matter() -> None:
    files = list(rows_of("requests"))
    random.Random(7).shuffle(files)
    reads = union_reads(*ALL_READS)
    whole = load_views(batches_of(rows_of("requests")), reads)
    parts: dict[str, list[pa.RecordBatch]] = {}
    for name, batches in batches_of(files, 6).items():
        for batch in batches:
            # Slices also divide the lines of a file.
            middle = batch.num_rows // 2
            parts.setdefault(name, []).extend((batch.slice(0, middle), batch.slice(middle)))
    again = load_views(parts, reads)
    assert again.keys() == whole.keys()
    for key, view in whole.items():
        assert typed(chosen(again[key], reads)) == typed(chosen(view, reads))
        assert again[key].lines.count == view.lines.count


def test_a_file_without_rows_is_empty() -> None:
    view = FileView("r", "f", "a.py", {})
    assert (view.row(AST), view.list(AST, "nodes"), view.rows("relations_v1")) == ({}, {}, {})
    assert (view.documents, view.list(SCIP, "occurrences"), view.lines.count) == ((), {}, None)
    empty = pa.RecordBatch.from_pylist([], arrow_schema(catalog.table(AST)))
    assert load_views({AST: [empty]}, READS) == {}
    assert project(AST, empty, READS[AST]).num_rows == 0


def test_lines_of_lists_and_of_batches_are_the_same() -> None:
    (rows,) = extracted({"a.py": b"a\r\nbc\r\rd"})
    fresh = fresh_view(rows).lines
    loaded = Lines(batches_of([rows])[LINES])
    for lines in (fresh, loaded):
        assert lines.count == 4
        assert [lines.span(number) for number in (0, 1, 2, 3, 4, None)] == [
            (0, 3),
            (3, 6),
            (6, 7),
            (7, 8),
            (None, None),
            (None, None),
        ]
        assert [lines.at(byte) for byte in (0, 3, 8, 9)] == [(1, 0), (2, 3), (4, 7), (1, 0)]


# Documents of SCIP


def documents(*rows: Mapping[str, Any]) -> dict[str, FileView]:
    batch = pa.RecordBatch.from_pylist(list(rows), arrow_schema(catalog.table(SCIP)))
    return load_views({SCIP: [batch]}, union_reads(rules.READS, WITNESS_READS, GRAPH_READS))


def test_documents_are_ordered_by_index_and_indexes_are_none() -> None:
    views = documents(
        document("a.py", index_id="index:2", position_encoding="utf8"),
        document("a.py", index_id="index:1"),
        document("", index_id="index:1", row_kind="index", file_id=None),
    )
    (view,) = views.values()
    assert [each["index_id"] for each in view.documents] == ["index:1", "index:2"]
    assert view.row(SCIP)["position_encoding"] == "utf16"
    assert [each["is_missing"] for each in view.documents] == [False, False]


def test_a_document_of_a_missing_file_belongs_to_the_file_it_would_be() -> None:
    views = documents(document("gone.py", file_id=None), document("a.py"))
    assert views.keys() == {file_id("r", "gone.py"), file_id("r", "a.py")}
    gone = views[file_id("r", "gone.py")]
    assert (gone.path, [each["is_missing"] for each in gone.documents]) == ("gone.py", [True])
    # Only the rules read it.
    assert (gone.row(SCIP), gone.list(SCIP, "occurrences")) == ({}, {})


def test_a_projected_document_needs_no_kind_of_row() -> None:
    batch = pa.RecordBatch.from_pylist([document("a.py")], arrow_schema(catalog.table(SCIP)))
    names = [name for name in batch.schema.names if name != "row_kind"]
    (view,) = load_views({SCIP: [batch.select(names)]}, WITNESS_READS).values()
    assert len(view.documents) == 1
    assert project(SCIP, batch, {}).schema.names == ["repo_id", "file_id", "path", "index_id", "row_kind"]


OCCURRENCE = {"bstart": [4, None, 7], "bend": [5, None, 8], "symbol": ["s f", "s g", "local 1"]}


def test_witnesses_replace_earlier_claims() -> None:
    (rows,) = extracted({"a.py": b"def f(): ...\nf()\n"})
    program = compile_file(fresh_view(rows))
    assert (program.scip, program.checker_calls) == ([], [])
    one = {"index_id": "1", "occurrences": {**OCCURRENCE, "symbol_roles": [1, 2, 3]}}
    other = {"index_id": "0", "is_missing": True, "occurrences": {**OCCURRENCE, "symbol_roles": [0, 0, 0]}}
    later = {"index_id": "2", "occurrences": None}
    claimed = with_witnesses(program, [later, other, one], None)
    assert claimed.scip == [(4, 5, "s f", 1)]
    assert program.scip == []
    assert with_witnesses(claimed, [], {"call_targets": None}).scip == []


def test_a_file_without_a_tree_has_no_claims() -> None:
    (rows,) = extracted({"a.py": b"def f(:\n"})
    program = compile_file(fresh_view(rows))
    assert program.failure == NO_TREE
    claims = [{"occurrences": {**OCCURRENCE, "symbol_roles": [1, 2, 3]}}]
    assert with_witnesses(program, claims, None).scip == []
