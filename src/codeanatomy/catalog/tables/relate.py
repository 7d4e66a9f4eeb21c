"""Tables of the relate stage: what every name, import, base class, argument and call refers to.

`import os; os.getcwd()` gives an IMPORTS_MODULE row from the import alias to the external module and a
CALLS_NAME row from the call to the qualified name `os.getcwd`. A call that nothing explains is a row without
`dst_id` that says why in `reason`. Two candidates are two rows with one `ambiguity_group_id`.

The rows are made in `codeanatomy.relate.repository`, by what docs/relate.md tells. What a file contributes to
them is kept in `relate_programs_v1`, from which a refresh goes on (docs/incremental.md). Tests:
`tests/unit/catalog/test_catalog.py`, `tests/spark/test_relate.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import MB, Column, Constraint, DeltaWritePolicy, Table, WriterProperties
from codeanatomy.catalog.tables.columns import (
    FILE_KEY,
    KEPT_BY_FILE,
    LINE,
    NO_ZORDER,
    OWNER_KEY,
    PATH,
    PLACE,
    REPO_ID,
    SPAN_ORDERED,
    span,
    structs,
)

RELATIONS_V1 = Table(
    "relations_v1",
    "relate",
    "One row per resolved relation of two entities, or per attempt that stayed unresolved.",
    (
        REPO_ID,
        Column("relation_id", "string", "The relation.", False, "RelationId"),
        Column("relation_kind", "string", "Edge kind it becomes, such as CALLS.", nullable=False),
        Column("src_id", "string", "Node it starts from.", False, "NodeId"),
        Column("src_kind", "string", "Kind of that node.", nullable=False),
        Column(
            "src_qname",
            "string",
            "Qualified name it starts from, of CALL_GRAPH; of SCOPE_PARENT the scope's name.",
            semantic_type="QName",
        ),
        Column("dst_id", "string", "Node it leads to; null if unresolved.", semantic_type="NodeId"),
        Column("dst_kind", "string", "Kind of that node; null if unresolved."),
        Column("dst_qname", "string", "Qualified name it leads to, where it has one.", semantic_type="QName"),
        Column("role", "string", "Part it plays, such as the argument's keyword."),
        Column("ordinal", "int", "Place among its like, such as the base class's, from 0."),
        Column("owner_file_id", "string", "File whose change invalidates the row.", False, "FileId"),
        PATH,
        *span(of="the source of the relation"),
        LINE,
        Column("origin", "string", "Witness or rule family it comes from.", nullable=False),
        Column("resolution_method", "string", "How the target was found; null if unresolved."),
        Column("confidence", "double", "Trust in it: 1, 0.9, 0.7, 0.5 or 0.3.", semantic_type="Confidence"),
        Column("score", "double", "Rank among the candidates of its group, higher is better."),
        Column("symbol_roles", "int", "Bit set of SCIP's roles, where SCIP speaks."),
        Column("ambiguity_group_id", "string", "Shared by alternatives.", semantic_type="AmbiguityGroupId"),
        Column("rule_name", "string", "Rule that made the row.", nullable=False),
        structs(
            "evidence",
            "What it rests on.",
            Column("witness", "string", "Who says so."),
            Column("key", "string", "Id of the row that says so.", semantic_type="EvidenceKey"),
            Column("agrees", "boolean", "False if the witness says otherwise."),
        ),
        Column("reason", "string", "Why it is unresolved, or that candidates were cut; else null."),
    ),
    primary_key=("relation_id",),
    foreign_keys=(OWNER_KEY,),
    owner="owner_file_id",
    inputs=(
        "ast_files_v1",
        "libcst_files_v1",
        "symtable_files_v1",
        "scip_index_v1",
        "type_checker_files_v1",
    ),
    adds_to=("diagnostics_norm_v1",),
    constraints=(
        SPAN_ORDERED,
        Constraint(
            "resolved_or_reason",
            "dst_id IS NOT NULL OR reason IS NOT NULL",
            "What could not be resolved says why.",
        ),
        Constraint(
            "resolved_is_trusted",
            "dst_id IS NULL OR (dst_kind IS NOT NULL AND confidence IS NOT NULL"
            " AND confidence >= 0.3 AND confidence <= 1)",
            "A resolved relation knows its target's kind and is on the confidence scale.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("owner_file_id", "src_id"),
        stats_policy="explicit",
        stats_columns=("owner_file_id", "relation_kind", "src_id", "dst_id"),
        writer=WriterProperties(dictionary_off=("relation_id",)),
        enable_features=("change_data_feed",),
    ),
    cache="memory",
)

RELATE_PROGRAMS_V1 = Table(
    "relate_programs_v1",
    "relate",
    "One row per file: what it contributes to the analysis of its repository, and what came of it.",
    (
        *PLACE,
        Column("program", "binary", "The file's program, packed; `relate.program` tells what is in it."),
        Column("rows_digest", "string", "Digest of the rows it owns.", False, "Fingerprint"),
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=RELATIONS_V1.inputs,
    write=KEPT_BY_FILE,
    upkeep=NO_ZORDER,
)

TABLES = (RELATIONS_V1, RELATE_PROGRAMS_V1)
