"""Normalize the evidence of the extractors into flat facts: one function per table, of the table's name.

    rules            run all rules on one file and pack the rows
    table_rows       rows of a table as columns and as Arrow
    flow             control flow, definitions and uses of variables, from bytecode
    types            annotations and type comments, from LibCST
    anchors          find the syntax node of a definition or use of a variable
    diagnostics      `diagnostics_norm_v1`: errors and warnings of all witnesses
    disagreements    compare the claims of witnesses about one file
    topics           state the claims of each witness by topic
    span_errors      `span_errors_v1`: positions that could not be converted to byte spans
    evidence         `normalize_evidence_v1`: the witnesses behind each row

Tests: `tests/unit/normalize`, `tests/spark/test_normalize.py`.
"""
