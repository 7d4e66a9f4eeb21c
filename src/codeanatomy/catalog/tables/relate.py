"""Declare the tables of the relate stage: targets of names, imports, base classes, arguments and calls.

`import os; os.getcwd()` gives an IMPORTS_MODULE row from the import alias to the external module and a
CALLS_NAME row from the call to the qualified name `os.getcwd`. An unresolved call is a row without `dst_id`
and with a `reason`. Two candidates are two rows with one `ambiguity_group_id`.

`codeanatomy.relate.repository` derives the rows as described in docs/relate.md. `relate_programs_v1` keeps
each file's input to this analysis for the next refresh (docs/incremental.md). Tests:
`tests/unit/catalog/test_catalog.py`, `tests/spark/test_relate.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import MB, Column, Constraint, DeltaWritePolicy, Table
from codeanatomy.catalog.tables.columns import (
    FEED_GATE,
    FILE_COLUMNS,
    FILE_KEY,
    FOLLOWED,
    LINE,
    NO_ZORDER,
    OWNER_KEY,
    PATH,
    REPO_ID,
    SPAN_ORDERED,
    STATE_BY_FILE,
    diagnostics_table,
    span,
    structs,
)

RELATIONS_V1 = Table(
    "relations_v1",
    "relate",
    "One row per resolved relation between two nodes, and per relation that could not be resolved.",
    (
        REPO_ID,
        Column("relation_kind", "string", "Edge kind that it becomes, such as CALLS.", nullable=False),
        Column("src_id", "string", "Source node.", False, "NodeId"),
        Column("src_kind", "string", "Kind of the source node.", nullable=False),
        Column(
            "src_qname",
            "string",
            "Qualified name of the source, for CALL_GRAPH; name of the scope, for SCOPE_PARENT.",
            semantic_type="QName",
        ),
        Column("dst_id", "string", "Target node; null if unresolved.", semantic_type="NodeId"),
        Column("dst_kind", "string", "Kind of the target node; null if unresolved."),
        Column("dst_qname", "string", "Qualified name of the target, if it has one.", semantic_type="QName"),
        Column("role", "string", "Role of the target, such as the keyword of an argument."),
        Column(
            "ordinal",
            "int",
            "Index among relations of the same kind and source, such as that of a base class, from 0.",
        ),
        Column("owner_file_id", "string", "File whose change invalidates the row.", False, "FileId"),
        PATH,
        *span(of="the source of the relation"),
        LINE,
        Column("origin", "string", "Witness or rule family it comes from.", nullable=False),
        Column("resolution_method", "string", "Method that resolved the target; null if unresolved."),
        Column("confidence", "double", "Confidence: 1, 0.9, 0.7, 0.5 or 0.3.", semantic_type="Confidence"),
        Column("score", "double", "Rank among the candidates of its group, higher is better."),
        Column("symbol_roles", "int", "SCIP symbol roles as a bit set; null without SCIP evidence."),
        Column(
            "ambiguity_group_id", "string", "Group of alternative targets.", semantic_type="AmbiguityGroupId"
        ),
        Column("rule_name", "string", "Rule that derived the row.", nullable=False),
        structs(
            "evidence",
            "Witnesses of the relation.",
            Column("witness", "string", "Name of the witness."),
            Column("key", "string", "Id of the row with the evidence.", semantic_type="EvidenceKey"),
            Column("agrees", "boolean", "False if the witness disagrees."),
        ),
        Column("reason", "string", "Why it is unresolved, or that candidates were dropped; else null."),
    ),
    primary_key=(
        "relation_kind",
        "src_id",
        "dst_id",
        "rule_name",
        "role",
        "ordinal",
        "reason",
        "bstart",
        "bend",
    ),
    foreign_keys=(OWNER_KEY,),
    owner="owner_file_id",
    inputs=(
        "repo_files_v1",
        "ast_files_v1",
        "libcst_files_v1",
        "symtable_files_v1",
        "scip_index_v1",
        "type_checker_files_v1",
    ),
    constraints=(
        SPAN_ORDERED,
        Constraint(
            "resolved_or_reason",
            "dst_id IS NOT NULL OR reason IS NOT NULL",
            "An unresolved relation has a reason.",
        ),
        Constraint(
            "resolved_is_trusted",
            "dst_id IS NULL OR (dst_kind IS NOT NULL AND confidence IS NOT NULL"
            " AND confidence >= 0.3 AND confidence <= 1)",
            "A resolved relation has the kind of its target, and a confidence of 0.3 to 1.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("repo_id", "owner_file_id", "src_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "owner_file_id", "relation_kind", "src_id", "dst_id"),
        enable_features=FOLLOWED,
    ),
    gate=FEED_GATE,
)

RELATE_DIAGNOSTICS_V1 = diagnostics_table(
    "relate_diagnostics_v1",
    "relate",
    "One row per diagnostic of the value analysis: where it contradicts a witness, or could not work.",
    ("disagreement", "relate"),
    RELATIONS_V1.inputs,
)

RELATE_PROGRAMS_V1 = Table(
    "relate_programs_v1",
    "relate",
    "One row per file: its compiled program, the input of the repository's value analysis.",
    (
        *FILE_COLUMNS,
        Column("program", "binary", "The file's program, serialized by `codeanatomy.relate.program`."),
        Column(
            "rows_digest", "string", "Digest of the relation rows that the file owns.", False, "Fingerprint"
        ),
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=RELATIONS_V1.inputs,
    write=STATE_BY_FILE,
    upkeep=NO_ZORDER,
)

TABLES = (RELATIONS_V1, RELATE_DIAGNOSTICS_V1, RELATE_PROGRAMS_V1)
