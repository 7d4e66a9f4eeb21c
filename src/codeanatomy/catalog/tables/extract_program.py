"""What the witnesses of a whole program say: a SCIP index and a type checker. Both are optional.

`import os; os.getcwd()` is a document row of `scip_index_v1` with an occurrence of the symbol of `getcwd` in
typeshed, and a row of `type_checker_files_v1` whose call target is `os.getcwd`. They count columns in units
of their own; `bstart` and `bend` are what those became, null where the position does not exist in the file.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from msgspec.structs import replace

from codeanatomy.catalog.spec import MB, Column, DeltaWritePolicy, Table
from codeanatomy.catalog.tables.columns import (
    ERRORS,
    FILE,
    FILE_KEY,
    PER_FILE,
    REPO_ID,
    WHEN_QUIET,
    WITNESS_VERSION,
    one_of,
    span,
    strings,
    structs,
)

SCIP_RANGE = (
    Column("start_line", "int", "First line, counted from 0.", semantic_type="LineNo0"),
    Column("start_col", "int", "Column in it, in units of the document's position encoding, from 0."),
    Column("end_line", "int", "Last line, counted from 0.", semantic_type="LineNo0"),
    Column("end_col", "int", "Column after the end, in the same units."),
    *span(of="the range; null where it could not be placed"),
)
SCIP_SYMBOL = Column("symbol", "string", "The symbol.", semantic_type="ScipSymbol")
SCIP_SYMBOL_FIELDS = (
    SCIP_SYMBOL,
    Column("display_name", "string", "Name for people."),
    Column("kind", "string", "SCIP's name of the kind, such as Method; its number if that is newer."),
    Column("enclosing_symbol", "string", "Symbol around it.", semantic_type="ScipSymbol"),
    strings("documentation", "Paragraphs of documentation."),
    Column("signature", "string", "Source text of the signature."),
)
SCIP_INDEX_V1 = Table(
    "scip_index_v1",
    "extract",
    "One row per document of a SCIP index, and one for the index itself: what a type-aware indexer saw.",
    (
        REPO_ID,
        Column("index_id", "string", "The index.", False, "IndexId"),
        Column("index_path", "string", "Place of the index, or its file name.", False, "Path"),
        Column(
            "index_sha256", "string", "Digest of the index; on the index row only.", semantic_type="Sha256"
        ),
        Column("row_kind", "string", "index or document.", nullable=False),
        Column("path", "string", "Path of the document; on the index row the index path.", False, "Path"),
        Column(
            "file_id",
            "string",
            "File of the document; null on the index row and where the repository has no such file.",
            semantic_type="FileId",
        ),
        Column("file_sha256", "string", "Digest of that file's raw bytes.", semantic_type="Sha256"),
        WITNESS_VERSION,
        Column(
            "metadata",
            "struct",
            "Who made the index; on the index row only.",
            fields=(
                Column("protocol_version", "int", "Version of the SCIP protocol."),
                Column("tool_name", "string", "Name of the indexer."),
                Column("tool_version", "string", "Its version."),
                strings("tool_arguments", "Its command line."),
                Column("text_document_encoding", "string", "Encoding it says documents have."),
                Column("document_count", "bigint", "Documents in the index."),
            ),
        ),
        Column("language", "string", "Language of the document."),
        Column(
            "position_encoding",
            "string",
            "Unit of columns: utf8, utf16 or utf32; null if nobody tells it.",
        ),
        structs(
            "occurrences",
            "Places where a symbol stands.",
            SCIP_SYMBOL,
            Column("symbol_roles", "int", "Bit set of SCIP's roles."),
            Column("is_definition", "boolean", "Role bit 1."),
            Column("is_import", "boolean", "Role bit 2."),
            Column("is_write", "boolean", "Role bit 4."),
            Column("is_read", "boolean", "Role bit 8."),
            Column("is_generated", "boolean", "Role bit 16."),
            Column("is_test", "boolean", "Role bit 32."),
            Column("is_forward_definition", "boolean", "Role bit 64."),
            Column("syntax_kind", "string", "SCIP's name of the syntax highlighting class."),
            *SCIP_RANGE,
            Column(
                "enclosing_start_line", "int", "First line of its target, from 0.", semantic_type="LineNo0"
            ),
            Column("enclosing_start_col", "int", "Column in it, in the document's units."),
            Column("enclosing_end_line", "int", "Last line of its target, from 0.", semantic_type="LineNo0"),
            Column("enclosing_end_col", "int", "Column after its end, in the document's units."),
            *span("enclosing", "what it defines, body included; null where it could not be placed"),
        ),
        structs("symbols", "Symbols the document defines.", *SCIP_SYMBOL_FIELDS),
        structs(
            "external_symbols",
            "Outside symbols that the document uses or relates to, of those that the index tells about.",
            *SCIP_SYMBOL_FIELDS,
        ),
        structs(
            "relationships",
            "Relations of the document's symbols to others.",
            SCIP_SYMBOL,
            Column("related_symbol", "string", "The other symbol.", semantic_type="ScipSymbol"),
            Column("is_reference", "boolean", "References to one are references to the other."),
            Column("is_implementation", "boolean", "Implements or overrides the other."),
            Column("is_type_definition", "boolean", "The other is its type."),
            Column("is_definition", "boolean", "The other is where it is defined."),
        ),
        structs(
            "diagnostics",
            "What the indexer complained about.",
            Column("severity", "string", "error, warning, info or hint."),
            Column("code", "string", "Code of the rule."),
            Column("message", "string", "What it said."),
            Column("source", "string", "Who said it."),
            strings("tags", "SCIP's names of the tags, such as Deprecated."),
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
        zorder_by=("index_path",),
        stats_policy="explicit",
        stats_columns=("index_id", "index_path"),
        enable_features=("change_data_feed",),
    ),
)

CALL_FORM = Column(
    "call_form",
    "string",
    "What calls: call, init, new, property, operator, subscript, iteration, with, decorator, format, dunder "
    "(a builtin such as str), argument (a callable passed on) or other; or reference, which calls nothing.",
)
TYPE_CHECKER_FILES_V1 = Table(
    "type_checker_files_v1",
    "extract",
    "One row per file: call targets and expression types from a whole-program type checker.",
    (
        *FILE,
        WITNESS_VERSION,
        structs(
            "call_targets",
            "One entry per place that runs a function, or mentions one, and per function.",
            *span("call", "the expression that calls"),
            CALL_FORM,
            Column("argument_index", "int", "Place of a callable among the call's arguments, from 0."),
            Column("target_module", "string", "Module of the target.", semantic_type="QName"),
            Column(
                "target_name", "string", "Qualified name of the target, a function.", semantic_type="QName"
            ),
            Column("target_path", "string", "Its file; null outside the repository.", semantic_type="Path"),
            *span("target", "the target's name; null outside the repository, and without a definition"),
            Column(
                "receiver_class",
                "string",
                "Class of the receiver, or the class that is called, if any.",
                semantic_type="QName",
            ),
            Column("is_override_candidate", "boolean", "An override of the target may run instead."),
        ),
        structs(
            "unresolved_calls",
            "Calls the checker could not resolve, or not fully.",
            *span("call", "the expression that calls"),
            CALL_FORM,
            Column("reason", "string", "Why not, in the checker's word."),
        ),
        structs(
            "expression_types",
            "Types of expressions, where they name a class or a module.",
            *span(of="the expression"),
            Column("type_repr", "string", "The type as the checker spells it; the beginning of a long one."),
            strings("class_names", "Qualified names of the classes that it may be an instance of."),
            strings("class_object_names", "Qualified names of the classes that it may itself be."),
            Column("is_exhaustive", "boolean", "Besides None, it can be nothing else."),
        ),
        ERRORS,
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_file_blobs_v1",),
    write=replace(PER_FILE, enable_features=("change_data_feed",)),
    upkeep=WHEN_QUIET,
)
