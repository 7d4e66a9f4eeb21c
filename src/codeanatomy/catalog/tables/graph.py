"""Tables of the graph stage: nodes, edges and properties, and copies laid out for lookups.

`def f(): g()` gives FUNCTION and CALLSITE rows in `cpg_nodes`, a CALLS row in `cpg_edges` (and in its two
sorted copies), and a row in `cpg_props` for what only some kinds have, such as the text of a docstring.

`owner_file_id` is the file whose change invalidates a row. It is null for what belongs to a repository as a
whole (repository, packages, external modules, qualified names, types) and is derived anew from all its files;
what each of them says of it is kept in `graph_shared_v1`, from which a refresh goes on (docs/incremental.md).

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import (
    MB,
    BloomFilter,
    Column,
    Constraint,
    DeltaWritePolicy,
    ForeignKey,
    Table,
    WriterProperties,
)
from codeanatomy.catalog.tables.columns import (
    FILE_KEY,
    KEPT_BY_FILE,
    LINE,
    NO_ZORDER,
    OWNER_KEY,
    PLACE,
    REPO_ID,
    SPAN_ORDERED,
    one_of,
    span,
    structs,
)

OWNER_FILE_ID = Column(
    "owner_file_id",
    "string",
    "File whose change invalidates the row; null if it belongs to the repository as a whole.",
    semantic_type="FileId",
)
# Rows of a row group where single nodes are looked up: found and read in a few milliseconds.
LOOKUP_ROWS = 50_000
ENTITIES = (
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
)

CPG_NODES = Table(
    "cpg_nodes",
    "graph",
    "One row per node of the graph.",
    (
        REPO_ID,
        Column("node_id", "string", "The node.", False, "NodeId"),
        Column("node_kind", "string", "Its kind, from the catalogue of kinds.", nullable=False),
        Column(
            "subkind", "string", "Finer kind: ast class, function kind, scope type, where a variable lives."
        ),
        Column("file_id", "string", "File it stands in; null if it stands in none.", semantic_type="FileId"),
        Column("path", "string", "Path of that file, of a package its folder.", semantic_type="Path"),
        *span(of="its source; null if it has none"),
        LINE,
        Column("name", "string", "Short name, where it has one."),
        Column("qualname", "string", "Qualified name, where it has one.", semantic_type="QName"),
        OWNER_FILE_ID,
    ),
    primary_key=("node_id",),
    foreign_keys=(FILE_KEY, OWNER_KEY),
    owner="owner_file_id",
    inputs=ENTITIES,
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
        zorder_by=("file_id", "bstart", "node_id"),
        stats_policy="explicit",
        stats_columns=("file_id", "path", "node_id", "node_kind", "bstart", "bend"),
        writer=WriterProperties(bloom_filters=(BloomFilter("node_id"),), dictionary_off=("node_id",)),
    ),
    cache="memory",
)

EDGE = (
    REPO_ID,
    Column("edge_id", "string", "The edge.", False, "EdgeId"),
    Column("edge_kind", "string", "Its kind, from the catalogue of kinds.", nullable=False),
    Column("src_node_id", "string", "Node it starts from.", False, "NodeId"),
    Column("dst_node_id", "string", "Node it leads to.", False, "NodeId"),
    Column("role", "string", "Part it plays: slot, argument name, branch."),
    Column("ordinal", "int", "Place among its like, from 0."),
    OWNER_FILE_ID,
    Column("path", "string", "File the fact is stated in; null if in none.", semantic_type="Path"),
    *span(of="the source that states it; null if none does"),
    LINE,
    Column("origin", "string", "Witness or rule family it comes from.", nullable=False),
    Column("resolution_method", "string", "How its target was found; null where nothing had to be resolved."),
    Column("confidence", "double", "Trust in it: 1, 0.9, 0.7, 0.5 or 0.3.", False, "Confidence"),
    Column("score", "double", "Rank among the candidates of its group, higher is better."),
    Column("symbol_roles", "int", "Bit set of SCIP's roles, where SCIP speaks."),
    Column("ambiguity_group_id", "string", "Shared by alternatives.", semantic_type="AmbiguityGroupId"),
    Column("rule_name", "string", "Rule that made it.", nullable=False),
)
EDGE_KEYS = (
    ForeignKey(("src_node_id",), "cpg_nodes", ("node_id",)),
    ForeignKey(("dst_node_id",), "cpg_nodes", ("node_id",)),
    OWNER_KEY,
)
COPY_KEYS = (ForeignKey(("edge_id",), "cpg_edges", ("edge_id",)), *EDGE_KEYS)

CPG_EDGES = Table(
    "cpg_edges",
    "graph",
    "One row per edge of the graph.",
    EDGE,
    primary_key=("edge_id",),
    foreign_keys=EDGE_KEYS,
    owner="owner_file_id",
    inputs=(*ENTITIES, "py_bc_cfg_edges_norm_v1", "py_bc_reaches_v1"),
    constraints=(
        SPAN_ORDERED,
        Constraint(
            "file_has_owner", "path IS NULL OR owner_file_id IS NOT NULL", "An edge in a file has an owner."
        ),
        Constraint("span_has_file", "bstart IS NULL OR path IS NOT NULL", "A span is a span of a file."),
        Constraint(
            "confidence_scale", "confidence >= 0.3 AND confidence <= 1", "Below 0.3 there is no edge."
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        partition_by=("edge_kind",),
        zorder_by=("path", "bstart", "src_node_id", "dst_node_id"),
        stats_policy="explicit",
        stats_columns=(
            "path",
            "edge_id",
            "edge_kind",
            "src_node_id",
            "dst_node_id",
            "bstart",
            "bend",
            "owner_file_id",
        ),
        writer=WriterProperties(
            bloom_filters=(BloomFilter("edge_id"), BloomFilter("src_node_id"), BloomFilter("dst_node_id")),
            dictionary_off=("edge_id",),
        ),
    ),
)

ENTITY = (
    REPO_ID,
    Column("entity_kind", "string", "node or edge.", nullable=False),
    Column("entity_id", "string", "The node or edge.", False, "EntityId"),
    Column("node_kind", "string", "Kind of the node; null for an edge."),
    OWNER_FILE_ID,
)
VALUE = (
    Column("value_type", "string", "Which value column holds it: string, int, float, bool or json."),
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
        "Nodes, and only they, have a kind here.",
    ),
)

CPG_PROPS = Table(
    "cpg_props",
    "graph",
    "One row per property of a node or edge; what is a column there is not repeated here.",
    (*ENTITY, Column("prop_key", "string", "Name of the property.", nullable=False), *VALUE),
    primary_key=("entity_kind", "entity_id", "prop_key"),
    foreign_keys=(OWNER_KEY,),
    owner="owner_file_id",
    inputs=ENTITIES,
    constraints=(
        *ENTITY_RULES,
        Constraint(
            "value_present",
            "CASE value_type WHEN 'string' THEN value_string IS NOT NULL"
            " WHEN 'int' THEN value_int IS NOT NULL WHEN 'float' THEN value_float IS NOT NULL"
            " WHEN 'bool' THEN value_bool IS NOT NULL WHEN 'json' THEN value_json IS NOT NULL ELSE FALSE END",
            "The type is known and its column is filled.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        partition_by=("entity_kind",),
        zorder_by=("entity_kind", "prop_key", "entity_id"),
        stats_policy="explicit",
        stats_columns=("entity_kind", "entity_id", "prop_key", "node_kind", "owner_file_id"),
        writer=WriterProperties(bloom_filters=(BloomFilter("entity_id"),)),
    ),
)

CPG_PROPS_MAP = Table(
    "cpg_props_map",
    "graph",
    "One row per node or edge that has properties: all of them at once.",
    (
        *ENTITY,
        structs("props", "Its properties, sorted by key.", Column("prop_key", "string", "Name."), *VALUE),
    ),
    primary_key=("entity_kind", "entity_id"),
    foreign_keys=(OWNER_KEY,),
    owner="owner_file_id",
    inputs=("cpg_props",),
    constraints=ENTITY_RULES,
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("entity_kind", "entity_id"),
        stats_policy="explicit",
        stats_columns=("entity_kind", "entity_id", "node_kind"),
        writer=WriterProperties(
            bloom_filters=(BloomFilter("entity_id"),),
            dictionary_off=("entity_id",),
            row_group_rows=LOOKUP_ROWS,
        ),
    ),
)

CPG_EDGES_BY_SRC = Table(
    "cpg_edges_by_src",
    "graph",
    "One row per edge, sorted by where it starts: what leaves a node is read from a file or two.",
    EDGE,
    primary_key=("edge_id",),
    foreign_keys=COPY_KEYS,
    owner="owner_file_id",
    inputs=("cpg_edges",),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("src_node_id",),
        stats_policy="explicit",
        stats_columns=("src_node_id",),
        writer=WriterProperties(
            bloom_filters=(BloomFilter("src_node_id"),),
            dictionary_off=("edge_id",),
            row_group_rows=LOOKUP_ROWS,
        ),
    ),
)

CPG_EDGES_BY_DST = Table(
    "cpg_edges_by_dst",
    "graph",
    "One row per edge, sorted by where it leads: what arrives at a node is read from a file or two.",
    EDGE,
    primary_key=("edge_id",),
    foreign_keys=COPY_KEYS,
    owner="owner_file_id",
    inputs=("cpg_edges",),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("dst_node_id",),
        stats_policy="explicit",
        stats_columns=("dst_node_id",),
        writer=WriterProperties(
            bloom_filters=(BloomFilter("dst_node_id"),),
            dictionary_off=("edge_id",),
            row_group_rows=LOOKUP_ROWS,
        ),
    ),
)

GRAPH_SHARED_V1 = Table(
    "graph_shared_v1",
    "graph",
    "One row per file: what it says of what belongs to the repository as a whole.",
    (
        *PLACE,
        Column("nodes", "binary", "Rows of `cpg_nodes`, as an Arrow stream."),
        Column("edges", "binary", "Rows of `cpg_edges`, as an Arrow stream."),
        Column("props", "binary", "Rows of `cpg_props`, as an Arrow stream."),
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=CPG_EDGES.inputs,
    write=KEPT_BY_FILE,
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
