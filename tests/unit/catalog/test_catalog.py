"""The catalogue fits together, says what the design asks for, and its check finds every kind of mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from codeanatomy.catalog import TABLES, derivation_order, names, table
from codeanatomy.catalog.semantic_types import SEMANTIC_TYPES
from codeanatomy.catalog.spec import (
    MB,
    BloomFilter,
    Column,
    Constraint,
    DeltaSchemaPolicy,
    DeltaWritePolicy,
    DerivedColumn,
    ForeignKey,
    SemanticType,
    Table,
    WriterProperties,
)
from codeanatomy.catalog.validation import check_catalog
from codeanatomy.errors import CatalogError, UnknownName

# table: partition, cluster, stats, target MB. The requirement, as they must be.
LAYOUT = {
    "repo_files_v1": (
        "",
        "repo_id file_id path",
        "repo_id file_id path file_sha256 size_bytes mtime_ns",
        128,
    ),
    "repo_file_blobs_v1": (
        "",
        "repo_id file_id path",
        "repo_id file_id path file_sha256 size_bytes mtime_ns",
        128,
    ),
    "file_line_index_v1": (
        "",
        "repo_id file_id line_no",
        "repo_id file_id path line_no line_start_byte line_end_byte",
        128,
    ),
    "ast_files_v1": ("", "repo_id file_id path", "repo_id file_id path", 128),
    "libcst_files_v1": ("", "repo_id file_id path", "repo_id file_id path", 128),
    "tree_sitter_files_v1": ("", "repo_id file_id path", "repo_id file_id path", 128),
    "bytecode_files_v1": ("", "repo_id file_id path", "repo_id file_id path", 128),
    "symtable_files_v1": ("", "repo_id file_id path", "repo_id file_id path", 128),
    "scip_index_v1": ("", "repo_id index_path file_id", "repo_id file_id index_id index_path", 128),
    "type_checker_files_v1": ("", "repo_id file_id path", "repo_id file_id path", 128),
    "normalize_evidence_v1": (
        "",
        "repo_id file_id dataset_name evidence_key",
        "repo_id file_id dataset_name evidence_family evidence_key timestamp_ms",
        128,
    ),
    "type_exprs_norm_v1": (
        "",
        "repo_id file_id bstart bend expr_id",
        "repo_id file_id path expr_id expr_kind bstart bend",
        256,
    ),
    "type_nodes_v1": (
        "",
        "repo_id file_id bstart bend type_id",
        "repo_id file_id path type_id type_kind type_name",
        256,
    ),
    "py_bc_blocks_norm_v1": (
        "",
        "repo_id file_id code_unit_id bc_offset_start bc_block_id",
        "repo_id file_id code_unit_id bc_block_id bc_offset_start bc_offset_end",
        256,
    ),
    "py_bc_cfg_edges_norm_v1": (
        "",
        "repo_id file_id code_unit_id bc_src_block_id bc_dst_block_id",
        "repo_id file_id code_unit_id bc_edge_id bc_edge_kind bc_src_block_id bc_dst_block_id",
        256,
    ),
    "py_bc_def_use_events_v1": (
        "",
        "repo_id file_id code_unit_id bc_block_id bc_event_offset",
        "repo_id file_id code_unit_id bc_event_id bc_event_kind bc_block_id bc_var_name",
        256,
    ),
    "py_bc_reaches_v1": (
        "",
        "repo_id file_id code_unit_id bc_use_event_id bc_def_event_id",
        "repo_id file_id code_unit_id bc_reach_id bc_reach_kind bc_use_event_id bc_def_event_id",
        256,
    ),
    "span_errors_v1": (
        "",
        "repo_id file_id bstart bend span_error_kind",
        "repo_id file_id span_error_id span_error_kind bstart bend",
        128,
    ),
    "diagnostics_norm_v1": (
        "",
        "repo_id file_id diag_line_start diag_col_start diag_id",
        "repo_id file_id diag_id diag_kind diag_severity diag_code diag_line_start diag_line_end",
        128,
    ),
    "relate_diagnostics_v1": (
        "",
        "repo_id file_id diag_line_start diag_col_start diag_id",
        "repo_id file_id diag_id diag_kind diag_severity diag_code diag_line_start diag_line_end",
        128,
    ),
    "relations_v1": (
        "",
        "repo_id owner_file_id src_id",
        "repo_id owner_file_id relation_kind src_id dst_id",
        256,
    ),
    "cpg_nodes": (
        "node_kind",
        "repo_id file_id bstart node_id",
        "repo_id owner_file_id file_id path node_id node_kind bstart bend",
        256,
    ),
    "cpg_edges": (
        "edge_kind",
        "repo_id path bstart src_node_id dst_node_id",
        "repo_id owner_file_id path edge_kind src_node_id dst_node_id bstart bend",
        256,
    ),
    "cpg_props": (
        "entity_kind",
        "repo_id entity_kind prop_key entity_id",
        "repo_id owner_file_id entity_kind entity_id prop_key node_kind",
        256,
    ),
    "cpg_props_map": (
        "",
        "repo_id entity_kind entity_id",
        "repo_id owner_file_id entity_kind entity_id node_kind",
        128,
    ),
    "cpg_edges_by_src": ("", "repo_id src_node_id", "repo_id owner_file_id src_node_id", 128),
    "cpg_edges_by_dst": ("", "repo_id dst_node_id", "repo_id owner_file_id dst_node_id", 128),
    "extract_error_artifacts": (
        "",
        "run_id extractor_name path",
        "run_id extractor_name error_type path",
        64,
    ),
    "run_manifest": ("", "run_id started_at", "run_id started_at status", 32),
}
WITHOUT_LAYOUT = {"run_lease", "cdf_cursors"}
# What a refresh goes on from, by file.
KEPT = {"relate_programs_v1", "relate_diagnostics_v1", "graph_shared_v1"}

# Two tables that are right; each rule below breaks a copy.
FILES = Table(
    "files",
    "extract",
    "One row per file.",
    (
        Column("file_id", "string", "The file.", nullable=False, semantic_type="FileId"),
        Column("size", "bigint", "Its size.", default=0),
        Column("is_stub", "boolean", "A stub."),
        Column(
            "marks", "struct", "What was seen.", array=True, fields=(Column("line", "int", "Line, from 1."),)
        ),
    ),
    primary_key=("file_id",),
    owner="file_id",
    constraints=(Constraint("size_counted", "size IS NULL OR size >= 0", "Not negative."),),
    write=DeltaWritePolicy(zorder_by=("file_id",), stats_policy="explicit", stats_columns=("file_id",)),
)
NODES = Table(
    "nodes",
    "graph",
    "One row per node.",
    (
        Column("node_id", "string", "The node.", nullable=False, semantic_type="NodeId"),
        Column("file_id", "string", "Its file.", semantic_type="FileId"),
    ),
    primary_key=("node_id",),
    foreign_keys=(ForeignKey(("file_id",), "files", ("file_id",)),),
    owner="file_id",
    inputs=("files",),
)


def with_column(number: int, **changes: object) -> Table:
    """FILES with one of its columns changed."""
    columns = list(FILES.columns)
    columns[number] = replace(columns[number], **changes)
    return replace(FILES, columns=tuple(columns))


def with_policy(**changes: object) -> Table:
    return replace(FILES, write=replace(FILES.write, **changes))


def with_key(columns: tuple[str, ...], target_table: str, target: tuple[str, ...]) -> Table:
    return replace(NODES, foreign_keys=(ForeignKey(columns, target_table, target),))


def with_constraint(name: str, expression: str, doc: str) -> Table:
    return replace(FILES, constraints=(*FILES.constraints, Constraint(name, expression, doc)))


def with_bloom(column: str) -> Table:
    return with_policy(writer=WriterProperties(bloom_filters=(BloomFilter(column),)))


def with_derived(name: str, expression: str, *inputs: str) -> Table:
    return replace(FILES, derived=(DerivedColumn(Column(name, "string", "Made."), expression, inputs),))


def with_dictionary_off(column: str) -> Table:
    return with_policy(writer=WriterProperties(dictionary_off=(column,)))


BROKEN = {
    "table name": (replace(FILES, name="Files"), "Files: its name is not snake_case"),
    "table doc": (replace(FILES, doc=" "), "files: it has no doc"),
    "column twice": (replace(FILES, columns=FILES.columns * 2), "column size is declared twice"),
    "nested twice": (
        with_column(3, fields=FILES.columns[3].fields * 2),
        "column marks.line is declared twice",
    ),
    "column name": (with_column(1, name="fileSize"), "column fileSize is not snake_case"),
    "column doc": (with_column(1, doc=""), "column size has no doc"),
    "nested doc": (with_column(3, fields=(Column("line", "int", ""),)), "column marks.line has no doc"),
    "nested not null": (
        with_column(3, fields=(Column("line", "int", "Line.", nullable=False),)),
        "column marks.line is nested, where Delta cannot enforce that it is never null",
    ),
    "struct without fields": (with_column(3, fields=()), "column marks is a struct without fields"),
    "fields without struct": (
        with_column(1, fields=FILES.columns[3].fields),
        "column size has fields but is bigint",
    ),
    "nested meaning of another type": (
        with_column(3, fields=(Column("line", "int", "Line.", semantic_type="FileId"),)),
        "column marks.line is int, but a FileId is string",
    ),
    "unknown meaning": (with_column(1, semantic_type="Size"), "column size: unknown semantic type Size"),
    "meaning of another type": (
        with_column(1, semantic_type="FileId"),
        "column size is bigint, but a FileId is string",
    ),
    "meaning of a list": (
        with_column(0, array=True),
        "column file_id is array<string>, but a FileId is string",
    ),
    "default of another type": (
        with_column(1, default="0"),
        "column size: default '0' is not a value of bigint",
    ),
    "default true is no number": (with_column(1, default=True), "default True is not a value of bigint"),
    "default of a list": (
        with_column(3, default="x"),
        "default 'x' is not a value of array<struct<line:int>>",
    ),
    "partition unknown": (
        with_policy(partition_by=("kind",)),
        "partition_by names kind, which is not a column",
    ),
    "partition type": (
        with_policy(partition_by=("is_stub",)),
        "partition_by names is_stub, but boolean is not",
    ),
    "cluster unknown": (with_policy(zorder_by=("kind",)), "zorder_by names kind, which is not a column"),
    "cluster type": (with_policy(zorder_by=("marks",)), "zorder_by names marks, but array<struct<line:int>>"),
    "cluster twice": (with_policy(zorder_by=("size", "size")), "zorder_by names size twice"),
    "stats unknown": (
        with_policy(stats_columns=("kind",)),
        "stats_columns names kind, which is not a column",
    ),
    "stats type": (
        with_policy(stats_columns=("is_stub",)),
        "stats_columns names is_stub, but boolean is not",
    ),
    "bloom unknown": (with_bloom("kind"), "bloom_filters names kind, which is not a column"),
    "bloom type": (with_bloom("is_stub"), "bloom_filters names is_stub, but boolean is not allowed there"),
    "dictionary unknown": (with_dictionary_off("kind"), "dictionary_off names kind, which is not a column"),
    "dictionary type": (with_dictionary_off("is_stub"), "dictionary_off names is_stub, but boolean is not"),
    "too many stats": (
        with_policy(stats_columns=("file_id", "size"), stats_max_columns=1),
        "2 stats_columns are more than stats_max_columns 1",
    ),
    "explicit without columns": (
        with_policy(stats_columns=()),
        "stats_policy is explicit without stats_columns",
    ),
    "mapping without feature": (
        replace(FILES, schema=DeltaSchemaPolicy(column_mapping_mode="name")),
        "column_mapping_mode is name without the feature column_mapping",
    ),
    "no primary key": (replace(FILES, primary_key=()), "files: it has no primary key"),
    "primary key unknown": (replace(FILES, primary_key=("kind",)), "primary key kind is not a column"),
    "primary key nullable": (
        replace(FILES, primary_key=("size",)),
        "files: every column of its primary key is nullable",
    ),
    "derived column stored": (
        with_derived("size", "file_id", "file_id"),
        "derived column size is stored, too",
    ),
    "derived column doc": (
        replace(FILES, derived=(DerivedColumn(Column("id", "string", " "), "file_id", ("file_id",)),)),
        "column id has no doc",
    ),
    "derived column input": (
        with_derived("id", "name", "name"),
        "derived column id is made of name, which is not a column",
    ),
    "derived column undeclared input": (
        with_derived("id", "concat(file_id, 'kind', size)", "file_id"),
        "derived column id: size is not among its inputs",
    ),
    "derived column unused input": (
        with_derived("id", "file_id", "file_id", "size"),
        "derived column id: size is not in its expression",
    ),
    "owner unknown": (replace(FILES, owner="owner_id"), "owner owner_id is not a column"),
    "foreign key column": (with_key(("kind",), "files", ("file_id",)), "(kind): kind is not a column"),
    "foreign key table": (with_key(("file_id",), "file", ("file_id",)), "(file_id): unknown table file"),
    "foreign key target": (
        with_key(("file_id",), "files", ("kind",)),
        "(file_id): kind is not a column of files",
    ),
    "foreign key arity": (
        with_key(("node_id", "file_id"), "files", ("file_id",)),
        "(node_id, file_id) has 2 columns, its target 1",
    ),
    "foreign key not a key": (
        with_key(("file_id",), "files", ("size",)),
        "(file_id): (size) is not the primary key of files",
    ),
    "foreign key meaning": (
        with_key(("node_id",), "files", ("file_id",)),
        "(node_id): node_id is a NodeId, but files.file_id is a FileId",
    ),
    "input unknown": (replace(NODES, inputs=("file",)), "nodes: unknown input file"),
    "input itself": (replace(NODES, inputs=("nodes",)), "nodes: it is its own input"),
    "input twice": (replace(NODES, inputs=("files", "files")), "nodes: inputs name files twice"),
    "inputs in a circle": (replace(FILES, inputs=("nodes",)), "inputs form a cycle: "),
    "constraint twice": (
        with_constraint("size_counted", "size > 0", "More."),
        "constraint size_counted is declared twice",
    ),
    "constraint name": (with_constraint("Size", "size > 0", "More."), "constraint Size is not snake_case"),
    "constraint empty": (with_constraint("more", " ", "More."), "constraint more has no expression"),
    "constraint doc": (with_constraint("more", "size > 0", ""), "constraint more has no doc"),
    "constraint column": (
        with_constraint("more", "length(name) > 0 AND file_id <> 'name'", "More."),
        "constraint more mentions name, which is not a column",
    ),
}


def problems_of(*tables: Table, semantic_types: tuple[SemanticType, ...] = SEMANTIC_TYPES) -> str:
    with pytest.raises(CatalogError) as caught:
        check_catalog(tables, semantic_types)
    return str(caught.value)


def test_the_catalogue_passes_its_own_check() -> None:
    check_catalog(TABLES)


def test_the_examples_that_get_broken_are_right() -> None:
    check_catalog((FILES, NODES))


@pytest.mark.parametrize("rule", BROKEN)
def test_check_finds(rule: str) -> None:
    broken, message = BROKEN[rule]
    rest = tuple(right for right in (FILES, NODES) if right.name.lower() != broken.name.lower())
    assert message in problems_of(broken, *rest)


def test_check_finds_a_table_declared_twice() -> None:
    assert "table files is declared twice" in problems_of(FILES, FILES)


def test_check_lists_all_problems_at_once() -> None:
    found = problems_of(replace(FILES, doc="", owner="nobody"), replace(NODES, inputs=("nothing",)))
    assert found.splitlines()[0] == "[CA001] 3 problems in the catalogue:"


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ((SemanticType("A", "string", "A."),) * 2, "semantic type A is declared twice"),
        ((SemanticType("A", "string", " "),), "semantic type A has no doc"),
        (
            (SemanticType("A", "string", "A.", check="x > 0"),),
            "semantic type A: its check does not mention {c}",
        ),
        ((SemanticType("A", "string", "A.", is_a=("B",)),), "semantic type A is a B, which is unknown"),
        (
            (SemanticType("A", "string", "A.", is_a=("B",)), SemanticType("B", "int", "B.")),
            "semantic type A is string, but B is int",
        ),
    ],
)
def test_check_finds_in_semantic_types(kinds: tuple[SemanticType, ...], message: str) -> None:
    assert message in problems_of(semantic_types=kinds)


def test_an_id_may_stand_where_a_wider_one_is_declared() -> None:
    entity = Column("node_id", "string", "Any entity.", nullable=False, semantic_type="EntityId")
    wide = replace(NODES, name="entities", columns=(entity,), foreign_keys=(), inputs=(), owner=None)
    check_catalog((FILES, wide, with_key(("file_id",), "entities", ("node_id",))))


OWNED = replace(
    FILES,
    columns=(Column("repo_id", "string", "Its repository.", nullable=False), *FILES.columns),
    write=DeltaWritePolicy(
        zorder_by=("repo_id", "file_id"), stats_policy="explicit", stats_columns=("file_id", "repo_id")
    ),
)


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"zorder_by": ("file_id", "repo_id")}, ["repo_id is not its first cluster column"]),
        ({"zorder_by": ()}, ["repo_id is not its first cluster column"]),
        ({"stats_columns": ("file_id",)}, ["repo_id has no statistics"]),
        ({"stats_columns": ("repo_id", "size")}, ["file_id has no statistics"]),
        ({"stats_policy": "off"}, ["repo_id has no statistics", "file_id has no statistics"]),
        ({"stats_policy": "auto"}, []),
        ({"stats_policy": "auto", "zorder_by": ("repo_id",)}, ["file_id has no statistics"]),
        ({"partition_by": ("file_id",), "stats_columns": ("repo_id",)}, []),
        ({"partition_by": ("repo_id",), "zorder_by": ("repo_id", "file_id")}, []),
    ],
)
def test_rows_are_laid_out_by_repository_and_owner(changes: dict[str, Any], problems: list[str]) -> None:
    table = replace(OWNED, write=replace(OWNED.write, **changes))
    if problems:
        assert problems_of(table).splitlines()[1:-1] == [f"  files: {problem}" for problem in problems]
    else:
        check_catalog((table,))
    # A user may lay out rows in another way, and tables of runs have no repository.
    check_catalog((table,), layout_is_free=True)
    check_catalog((replace(table, stage="observe"),))


def test_the_feature_alone_means_column_mapping_by_name() -> None:
    check_catalog((with_policy(enable_features=("column_mapping",)),))


@pytest.mark.parametrize("name", LAYOUT)
def test_layout(name: str) -> None:
    partition, cluster, stats, megabytes = LAYOUT[name]
    write = table(name).write
    assert write.partition_by == tuple(partition.split())
    assert write.zorder_by == tuple(cluster.split())
    assert write.stats_policy == "explicit"
    assert write.stats_columns == tuple(stats.split())
    assert write.target_file_size == megabytes * MB


def test_every_table_has_its_layout_in_the_design_or_is_known_to_have_none() -> None:
    observed = {known.name for known in TABLES if known.stage == "observe"}
    assert set(names()) == set(LAYOUT) | WITHOUT_LAYOUT | KEPT | observed


def test_hot_ids_of_the_graph_have_bloom_filters() -> None:
    blooms = {t.name: {b.column for b in t.write.writer.bloom_filters} for t in TABLES if t.stage == "graph"}
    assert blooms == {
        "cpg_nodes": {"node_id"},
        "cpg_edges": {"src_node_id", "dst_node_id"},
        "cpg_props": {"entity_id"},
        "cpg_props_map": {"entity_id"},
        "cpg_edges_by_src": {"src_node_id"},
        "cpg_edges_by_dst": {"dst_node_id"},
        "graph_shared_v1": set(),
    }


def test_tables_have_features_that_refreshes_need_and_gates_for_the_feeds_they_read() -> None:
    followed = {
        "repo_files_v1",
        "scip_index_v1",
        "type_checker_files_v1",
        "diagnostics_norm_v1",
        "relate_diagnostics_v1",
        "relations_v1",
    }
    for known in TABLES:
        feed = ("change_data_feed",) if known.name in followed else ()
        vectors = () if known.owner is None else ("deletion_vectors",)
        assert known.write.enable_features == (*feed, *vectors), known.name
        assert known.gate.required_writer_features == (("changeDataFeed",) if feed else ()), known.name
        assert not known.gate.required_reader_features, known.name


def test_rows_of_a_file_can_be_replaced() -> None:
    for known in TABLES:
        if known.stage in ("extract", "normalize", "relate", "graph"):
            is_per_file = known.stage in ("extract", "normalize") or known.name in KEPT
            owner = "file_id" if is_per_file else "owner_file_id"
            assert known.owner == owner, known.name
            assert "repo_id" in known.column_names, known.name
        else:
            assert known.owner is None, known.name


def test_every_witness_says_its_version() -> None:
    silent = {"repo_files_v1", "repo_file_blobs_v1", "file_line_index_v1"}
    for known in TABLES:
        if known.stage == "extract" and known.name not in silent:
            assert not known.column("witness_version").nullable, known.name


def test_edge_copies_have_the_columns_of_edges() -> None:
    assert table("cpg_edges_by_src").columns == table("cpg_edges").columns
    assert table("cpg_edges_by_dst").columns == table("cpg_edges").columns


def test_tables_are_listed_in_derivation_order() -> None:
    assert derivation_order() == TABLES


def test_derivation_order_puts_inputs_first_and_keeps_ties() -> None:
    shuffled = TABLES[::-1]
    order = [step.name for step in derivation_order(shuffled)]
    assert sorted(order) == sorted(names())
    for step in shuffled:
        assert all(order.index(name) < order.index(step.name) for name in step.inputs)
    a, b, c = (replace(FILES, name=name) for name in "abc")
    assert derivation_order((c, a, b)) == (c, a, b)
    assert derivation_order((replace(c, inputs=("b",)), a, b))[:2] == (a, b)


def test_derivation_order_of_some_tables_ignores_the_others() -> None:
    assert derivation_order((table("cpg_edges_by_src"),)) == (table("cpg_edges_by_src"),)


def test_an_unknown_table_lists_what_exists() -> None:
    with pytest.raises(UnknownName, match="unknown table 'cpg_node'") as caught:
        table("cpg_node")
    assert "did you mean cpg_nodes?" in caught.value.hint


def all_columns(columns: tuple[Column, ...]) -> Iterator[Column]:
    for column in columns:
        yield column
        yield from all_columns(column.fields)


def test_everything_is_documented_by_a_sentence() -> None:
    for known in TABLES:
        texts = [known.doc, *(c.doc for c in all_columns(known.columns)), *(c.doc for c in known.constraints)]
        assert all(text.endswith(".") for text in texts), known.name


def test_byte_positions_are_bigint_and_say_so() -> None:
    for known in TABLES:
        for column in all_columns(known.columns):
            if column.name.endswith(("bstart", "bend")):
                assert (column.type, column.semantic_type) == ("bigint", "BytePos"), (known.name, column.name)
