"""Declare the tables of the graph stage: nodes, edges and properties, and copies sorted for lookups.

`def f(): g()` gives FUNCTION and CALLSITE rows in `cpg_nodes`, a CALLS row in `cpg_edges` (and in its two
sorted copies), and a row in `cpg_props` for what only some kinds have, such as the text of a docstring.

`owner_file_id` is the file whose change invalidates a row. It is null for rows that belong to the repository
as a whole (repository, packages, external modules, qualified names, types). These are derived from the
contributions of all files, which `graph_shared_v1` keeps for the next refresh (docs/incremental.md).

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import (
    MB,
    BloomFilter,
    Column,
    Constraint,
    DeltaMaintenancePolicy,
    DeltaWritePolicy,
    DerivedColumn,
    ForeignKey,
    Table,
    WriterProperties,
)
from codeanatomy.catalog.tables.columns import (
    BY_OWNER,
    FILE_COLUMNS,
    FILE_KEY,
    LINE,
    NO_ZORDER,
    OWNER_KEY,
    REPO_ID,
    SPAN_ORDERED,
    STATE_BY_FILE,
    one_of,
    span,
    structs,
)

OWNER_FILE_ID = Column(
    "owner_file_id",
    "string",
    "File whose change invalidates the row; null if the row belongs to the repository as a whole.",
    semantic_type="FileId",
)
# Row group size of tables for lookups of single nodes: one group is read in a few milliseconds.
LOOKUP_ROW_GROUP = 50_000
ENTITY_INPUTS = (
    "repo_files_v1",
    "ast_files_v1",
    "libcst_files_v1",
    "tree_sitter_files_v1",
    "bytecode_files_v1",
    "symtable_files_v1",
    "scip_index_v1",
    "type_exprs_norm_v1",
    "type_nodes_v1",
    "py_bc_blocks_norm_v1",
    "py_bc_def_use_events_v1",
    "diagnostics_norm_v1",
    "relations_v1",
    "relate_diagnostics_v1",
)

CPG_NODES = Table(
    "cpg_nodes",
    "graph",
    "One row per node of the graph.",
    (
        REPO_ID,
        Column("node_id", "string", "Id of the node.", False, "NodeId"),
        Column("node_kind", "string", "Node kind (docs/kinds.md).", nullable=False),
        Column(
            "subkind", "string", "Finer kind: AST class, function kind, scope type, storage of a variable."
        ),
        Column("file_id", "string", "File that contains it; null if none does.", semantic_type="FileId"),
        Column("path", "string", "Path of that file; for a package, its folder.", semantic_type="Path"),
        *span(of="its source; null if it has none"),
        LINE,
        Column("name", "string", "Short name, if it has one."),
        Column("qualname", "string", "Qualified name, if it has one.", semantic_type="QName"),
        OWNER_FILE_ID,
    ),
    primary_key=("node_id",),
    foreign_keys=(FILE_KEY, OWNER_KEY),
    owner="owner_file_id",
    inputs=ENTITY_INPUTS,
    constraints=(
        SPAN_ORDERED,
        Constraint(
            "file_has_owner", "file_id IS NULL OR owner_file_id IS NOT NULL", "A node in a file has an owner."
        ),
        Constraint("span_has_file", "bstart IS NULL OR file_id IS NOT NULL", "A span is a span of a file."),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        partition_by=("node_kind",),
        zorder_by=("repo_id", "file_id", "bstart", "node_id"),
        stats_policy="explicit",
        stats_columns=(
            "repo_id",
            "owner_file_id",
            "file_id",
            "path",
            "node_id",
            "node_kind",
            "bstart",
            "bend",
        ),
        writer=WriterProperties(bloom_filters=(BloomFilter("node_id"),), dictionary_off=("node_id",)),
        enable_features=BY_OWNER,
    ),
    # A node is looked up by its id, which is a hash, or with those of its file.
    upkeep=DeltaMaintenancePolicy(z_order_cols=("file_id", "node_id")),
)

EDGE_COLUMNS = (
    REPO_ID,
    Column("edge_kind", "string", "Edge kind (docs/kinds.md).", nullable=False),
    Column("src_node_id", "string", "Source node.", False, "NodeId"),
    Column("dst_node_id", "string", "Target node.", False, "NodeId"),
    Column("repeat", "int", "Number among the edges of the same kind and ends, from 0.", nullable=False),
    Column("role", "string", "Role of the target: AST field, argument name, branch."),
    Column("ordinal", "int", "Index among edges of the same kind and source, from 0."),
    OWNER_FILE_ID,
    Column("path", "string", "Source file of the fact; null if there is none.", semantic_type="Path"),
    *span(of="the source of the fact; null if there is none"),
    LINE,
    Column("origin", "string", "Witness or rule family it comes from.", nullable=False),
    Column(
        "resolution_method",
        "string",
        "Method that resolved the target; null where nothing had to be resolved.",
    ),
    Column("confidence", "double", "Confidence: 1, 0.9, 0.7, 0.5 or 0.3.", False, "Confidence"),
    Column("score", "double", "Rank among the candidates of its group, higher is better."),
    Column("symbol_roles", "int", "SCIP symbol roles as a bit set; null without SCIP evidence."),
    Column("ambiguity_group_id", "string", "Group of alternative targets.", semantic_type="AmbiguityGroupId"),
    Column("rule_name", "string", "Rule that derived the edge.", nullable=False),
)
EDGE_KEY = ("edge_kind", "src_node_id", "dst_node_id", "repeat")
# The SQL of `node_ids.edge_id`.
EDGE_ID = DerivedColumn(
    Column("edge_id", "string", "Id of the edge: its kind and ends.", False, "EdgeId"),
    "edge_kind || ';' || src_node_id || ';' || dst_node_id"
    " || CASE WHEN repeat > 0 THEN ';' || CAST(repeat AS STRING) ELSE '' END",
    EDGE_KEY,
)
EDGE_KEYS = (
    ForeignKey(("src_node_id",), "cpg_nodes", ("node_id",)),
    ForeignKey(("dst_node_id",), "cpg_nodes", ("node_id",)),
    OWNER_KEY,
)
COPY_KEYS = (ForeignKey(EDGE_KEY, "cpg_edges", EDGE_KEY), *EDGE_KEYS)

CPG_EDGES = Table(
    "cpg_edges",
    "graph",
    "One row per edge of the graph.",
    EDGE_COLUMNS,
    primary_key=EDGE_KEY,
    derived=(EDGE_ID,),
    foreign_keys=EDGE_KEYS,
    owner="owner_file_id",
    inputs=(*ENTITY_INPUTS, "py_bc_cfg_edges_norm_v1", "py_bc_reaches_v1"),
    constraints=(
        SPAN_ORDERED,
        Constraint(
            "file_has_owner", "path IS NULL OR owner_file_id IS NOT NULL", "An edge in a file has an owner."
        ),
        Constraint("span_has_file", "bstart IS NULL OR path IS NOT NULL", "A span is a span of a file."),
        Constraint(
            "confidence_scale",
            "confidence >= 0.3 AND confidence <= 1",
            "Edges have a confidence of at least 0.3.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        partition_by=("edge_kind",),
        zorder_by=("repo_id", "path", "bstart", "src_node_id", "dst_node_id"),
        stats_policy="explicit",
        stats_columns=(
            "repo_id",
            "owner_file_id",
            "path",
            "edge_kind",
            "src_node_id",
            "dst_node_id",
            "bstart",
            "bend",
        ),
        writer=WriterProperties(
            bloom_filters=(BloomFilter("src_node_id"), BloomFilter("dst_node_id")),
        ),
        enable_features=BY_OWNER,
    ),
)

ENTITY_COLUMNS = (
    REPO_ID,
    Column("entity_kind", "string", "node or edge.", nullable=False),
    Column("entity_id", "string", "Id of the node or edge.", False, "EntityId"),
    Column("node_kind", "string", "Kind of the node; null for an edge."),
    OWNER_FILE_ID,
)
VALUE_COLUMNS = (
    Column("value_type", "string", "Value column that is set: string, int, float, bool or json."),
    Column("value_string", "string", "Value of type string."),
    Column("value_int", "bigint", "Value of type int."),
    Column("value_float", "double", "Value of type float."),
    Column("value_bool", "boolean", "Value of type bool."),
    Column("value_json", "string", "Value of type json, as canonical JSON."),
)
ENTITY_RULES = (
    one_of("entity_kind", "node", "edge"),
    Constraint(
        "node_has_kind",
        "(entity_kind = 'node') = (node_kind IS NOT NULL)",
        "`node_kind` is set for nodes and only for nodes.",
    ),
)

CPG_PROPS = Table(
    "cpg_props",
    "graph",
    "One row per property of a node or edge; values that have a column of their own are not repeated.",
    (*ENTITY_COLUMNS, Column("prop_key", "string", "Name of the property.", nullable=False), *VALUE_COLUMNS),
    primary_key=("entity_kind", "entity_id", "prop_key"),
    foreign_keys=(OWNER_KEY,),
    owner="owner_file_id",
    inputs=ENTITY_INPUTS,
    constraints=(
        *ENTITY_RULES,
        Constraint(
            "value_present",
            "CASE value_type WHEN 'string' THEN value_string IS NOT NULL"
            " WHEN 'int' THEN value_int IS NOT NULL WHEN 'float' THEN value_float IS NOT NULL"
            " WHEN 'bool' THEN value_bool IS NOT NULL WHEN 'json' THEN value_json IS NOT NULL ELSE FALSE END",
            "The type is known and its value column is set.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        partition_by=("entity_kind",),
        zorder_by=("repo_id", "entity_kind", "prop_key", "entity_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "owner_file_id", "entity_kind", "entity_id", "prop_key", "node_kind"),
        writer=WriterProperties(bloom_filters=(BloomFilter("entity_id"),)),
        enable_features=BY_OWNER,
    ),
)

CPG_PROPS_MAP = Table(
    "cpg_props_map",
    "graph",
    "One row per node or edge that has properties, with all of them.",
    (
        *ENTITY_COLUMNS,
        structs(
            "props",
            "Its properties, sorted by key.",
            Column("prop_key", "string", "Name of the property."),
            *VALUE_COLUMNS,
        ),
    ),
    primary_key=("entity_kind", "entity_id"),
    foreign_keys=(OWNER_KEY,),
    owner="owner_file_id",
    inputs=("cpg_props",),
    constraints=ENTITY_RULES,
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "entity_kind", "entity_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "owner_file_id", "entity_kind", "entity_id", "node_kind"),
        writer=WriterProperties(
            bloom_filters=(BloomFilter("entity_id"),),
            dictionary_off=("entity_id",),
            row_group_rows=LOOKUP_ROW_GROUP,
        ),
        enable_features=BY_OWNER,
    ),
)

CPG_EDGES_BY_SRC = Table(
    "cpg_edges_by_src",
    "graph",
    "One row per edge, sorted by source node: a copy of `cpg_edges` for outgoing edges.",
    EDGE_COLUMNS,
    primary_key=EDGE_KEY,
    derived=(EDGE_ID,),
    foreign_keys=COPY_KEYS,
    owner="owner_file_id",
    inputs=("cpg_edges",),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "src_node_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "owner_file_id", "src_node_id"),
        writer=WriterProperties(
            bloom_filters=(BloomFilter("src_node_id"),),
            # A dictionary of ids, most of which are seen once or twice, makes files 7 % larger.
            dictionary_off=("dst_node_id",),
            row_group_rows=LOOKUP_ROW_GROUP,
        ),
        enable_features=BY_OWNER,
    ),
)

CPG_EDGES_BY_DST = Table(
    "cpg_edges_by_dst",
    "graph",
    "One row per edge, sorted by target node: a copy of `cpg_edges` for incoming edges.",
    EDGE_COLUMNS,
    primary_key=EDGE_KEY,
    derived=(EDGE_ID,),
    foreign_keys=COPY_KEYS,
    owner="owner_file_id",
    inputs=("cpg_edges",),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "dst_node_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "owner_file_id", "dst_node_id"),
        writer=WriterProperties(
            bloom_filters=(BloomFilter("dst_node_id"),),
            # A dictionary of ids, most of which are seen once or twice, makes files 7 % larger.
            dictionary_off=("src_node_id",),
            row_group_rows=LOOKUP_ROW_GROUP,
        ),
        enable_features=BY_OWNER,
    ),
)

GRAPH_SHARED_V1 = Table(
    "graph_shared_v1",
    "graph",
    "One row per file: its contributions to the rows that belong to the repository as a whole.",
    (
        *FILE_COLUMNS,
        Column("nodes", "binary", "Rows of `cpg_nodes`, as an Arrow stream."),
        Column("edges", "binary", "Rows of `cpg_edges`, as an Arrow stream."),
        Column("props", "binary", "Rows of `cpg_props`, as an Arrow stream."),
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=CPG_EDGES.inputs,
    write=STATE_BY_FILE,
    upkeep=NO_ZORDER,
)

TABLES = (
    CPG_NODES,
    CPG_EDGES,
    CPG_PROPS,
    CPG_PROPS_MAP,
    CPG_EDGES_BY_SRC,
    CPG_EDGES_BY_DST,
    GRAPH_SHARED_V1,
)
