"""Declare the tables of the optional whole-program tools: a SCIP indexer and a type checker.

`import os; os.getcwd()` is a document row of `scip_index_v1` with an occurrence of the symbol of `getcwd` in
typeshed, and a row of `type_checker_files_v1` whose call target is `os.getcwd`. The tools count columns in
units of their own; `bstart` and `bend` are converted, and null where the position is not in the file.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from msgspec.structs import replace

from codeanatomy.catalog.spec import MB, Column, DeltaWritePolicy, Table
from codeanatomy.catalog.tables.columns import (
    ERRORS,
    FEED_GATE,
    FILE_COLUMNS_WITH_DIGEST,
    FILE_KEY,
    FOLLOWED,
    ONE_ROW_PER_FILE,
    REPO_ID,
    WITNESS_VERSION,
    ZORDER_WHEN_IDLE,
    one_of,
    span,
    strings,
    structs,
)

SCIP_RANGE = (
    Column("start_line", "int", "First line, counted from 0.", semantic_type="LineNo0"),
    Column("start_col", "int", "Column in that line, in units of `position_encoding`, from 0."),
    Column("end_line", "int", "Last line, counted from 0.", semantic_type="LineNo0"),
    Column("end_col", "int", "Column after the end, in units of `position_encoding`."),
    *span(of="the range; null if it could not be converted"),
)
SCIP_SYMBOL = Column("symbol", "string", "SCIP symbol.", semantic_type="ScipSymbol")
SCIP_SYMBOL_FIELDS = (
    SCIP_SYMBOL,
    Column("display_name", "string", "Display name."),
    Column(
        "kind", "string", "SCIP symbol kind, such as Method; a number if the kind is unknown to this version."
    ),
    Column("enclosing_symbol", "string", "Enclosing symbol.", semantic_type="ScipSymbol"),
    strings("documentation", "Paragraphs of documentation."),
    Column("signature", "string", "Source text of the signature."),
)
SCIP_INDEX_V1 = Table(
    "scip_index_v1",
    "extract",
    "One row per document of a SCIP index, and one for the index itself.",
    (
        REPO_ID,
        Column("index_id", "string", "Id of the index.", False, "IndexId"),
        Column(
            "index_path", "string", "Path of the index in the repository, or its file name.", False, "Path"
        ),
        Column(
            "index_sha256", "string", "SHA-256 of the index; only on the index row.", semantic_type="Sha256"
        ),
        Column("row_kind", "string", "index or document.", nullable=False),
        Column("path", "string", "Path of the document; on the index row, the index path.", False, "Path"),
        Column(
            "file_id",
            "string",
            "File of the document; null on the index row, and if the repository has no such file.",
            semantic_type="FileId",
        ),
        Column("file_sha256", "string", "SHA-256 of that file's raw bytes.", semantic_type="Sha256"),
        WITNESS_VERSION,
        Column(
            "metadata",
            "struct",
            "Indexer that created the index; only on the index row.",
            fields=(
                Column("protocol_version", "int", "Version of the SCIP protocol."),
                Column("tool_name", "string", "Name of the indexer."),
                Column("tool_version", "string", "Version of the indexer."),
                strings("tool_arguments", "Command line of the indexer."),
                Column("text_document_encoding", "string", "Declared encoding of the documents."),
                Column("document_count", "bigint", "Number of documents in the index."),
            ),
        ),
        Column("language", "string", "Language of the document."),
        Column(
            "position_encoding",
            "string",
            "Unit of columns: utf8, utf16 or utf32; null if unknown.",
        ),
        structs(
            "occurrences",
            "Occurrences of symbols.",
            SCIP_SYMBOL,
            Column("symbol_roles", "int", "SCIP symbol roles, as a bit set."),
            Column("is_definition", "boolean", "Role bit 1."),
            Column("is_import", "boolean", "Role bit 2."),
            Column("is_write", "boolean", "Role bit 4."),
            Column("is_read", "boolean", "Role bit 8."),
            Column("is_generated", "boolean", "Role bit 16."),
            Column("is_test", "boolean", "Role bit 32."),
            Column("is_forward_definition", "boolean", "Role bit 64."),
            Column("syntax_kind", "string", "SCIP syntax kind (highlighting class)."),
            *SCIP_RANGE,
            Column(
                "enclosing_start_line",
                "int",
                "First line of the enclosing range, from 0.",
                semantic_type="LineNo0",
            ),
            Column("enclosing_start_col", "int", "Column in that line, in units of `position_encoding`."),
            Column(
                "enclosing_end_line",
                "int",
                "Last line of the enclosing range, from 0.",
                semantic_type="LineNo0",
            ),
            Column("enclosing_end_col", "int", "Column after its end, in units of `position_encoding`."),
            *span("enclosing", "the definition including its body; null if it could not be converted"),
        ),
        structs("symbols", "Symbols that the document defines.", *SCIP_SYMBOL_FIELDS),
        structs(
            "external_symbols",
            "External symbols described by the index that the document uses or relates to.",
            *SCIP_SYMBOL_FIELDS,
        ),
        structs(
            "relationships",
            "Relationships of the document's symbols to other symbols.",
            SCIP_SYMBOL,
            Column("related_symbol", "string", "The other symbol.", semantic_type="ScipSymbol"),
            Column("is_reference", "boolean", "References to one symbol are references to the other."),
            Column("is_implementation", "boolean", "Implements or overrides the other symbol."),
            Column("is_type_definition", "boolean", "The other symbol is its type."),
            Column("is_definition", "boolean", "The other symbol is its definition."),
        ),
        structs(
            "diagnostics",
            "Diagnostics of the indexer.",
            Column("severity", "string", "error, warning, info or hint."),
            Column("code", "string", "Code of the rule."),
            Column("message", "string", "Text of the diagnostic."),
            Column("source", "string", "Tool that reported it."),
            strings("tags", "SCIP diagnostic tags, such as Deprecated."),
            *SCIP_RANGE,
        ),
        ERRORS,
    ),
    primary_key=("index_id", "row_kind", "path"),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_file_blobs_v1",),
    constraints=(
        one_of("row_kind", "index", "document"),
        one_of("position_encoding", "utf8", "utf16", "utf32", nullable=True),
    ),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "index_path", "file_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "file_id", "index_id", "index_path"),
        enable_features=FOLLOWED,
    ),
    gate=FEED_GATE,
)

CALL_FORM = Column(
    "call_form",
    "string",
    "Form of the call: call, init, new, property, operator, subscript, iteration, with, decorator, format, "
    "dunder (a builtin such as str), argument (a callable passed on), other, or reference (no call).",
)
TYPE_CHECKER_FILES_V1 = Table(
    "type_checker_files_v1",
    "extract",
    "One row per file: call targets and expression types from a whole-program type checker.",
    (
        *FILE_COLUMNS_WITH_DIGEST,
        WITNESS_VERSION,
        structs(
            "call_targets",
            "One entry per call or reference, and function that it may run.",
            *span("call", "the calling expression"),
            CALL_FORM,
            Column("argument_index", "int", "Index of a callable among the arguments of the call, from 0."),
            Column("target_module", "string", "Module of the target.", semantic_type="QName"),
            Column(
                "target_name", "string", "Qualified name of the target, a function.", semantic_type="QName"
            ),
            Column(
                "target_path",
                "string",
                "File of the target; null outside of the repository.",
                semantic_type="Path",
            ),
            *span("target", "the target's name; null outside of the repository, or without a definition"),
            Column(
                "receiver_class",
                "string",
                "Class of the receiver, or the called class, if any.",
                semantic_type="QName",
            ),
            Column("is_override_candidate", "boolean", "An override of the target may run instead of it."),
        ),
        structs(
            "unresolved_calls",
            "Calls that the checker could not resolve, or only in part.",
            *span("call", "the calling expression"),
            CALL_FORM,
            Column("reason", "string", "Reason, as given by the checker."),
        ),
        structs(
            "expression_types",
            "Types of expressions that name a class or a module.",
            *span(of="the expression"),
            Column("type_repr", "string", "The type as printed by the checker, truncated."),
            strings("class_names", "Qualified names of the classes that the value may be an instance of."),
            strings("class_object_names", "Qualified names of the classes that the value itself may be."),
            Column("is_exhaustive", "boolean", "The value cannot be anything else, except None."),
        ),
        ERRORS,
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_file_blobs_v1",),
    write=replace(ONE_ROW_PER_FILE, enable_features=FOLLOWED),
    gate=FEED_GATE,
    upkeep=ZORDER_WHEN_IDLE,
)
