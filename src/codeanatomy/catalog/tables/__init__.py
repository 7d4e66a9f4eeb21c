"""Declare the table literals, one module per stage.

    columns          columns, constraints and policies that several tables share
    extract          files, their bytes and lines; collects the tables of all extractors
    extract_cpython  CPython's syntax tree, bytecode and symbol tables
    extract_program  SCIP index and type checker, which analyse a whole program
    extract_trees    LibCST and tree-sitter syntax trees
    graph            nodes, edges and properties, and copies sorted for lookups
    meta             run manifest, lease, extraction failures and change-feed cursors
    normalize        types, control flow, data flow and diagnostics as flat rows
    observe          events of runs: commits, scans, plans, maintenance
    relate           relations between nodes, and the programs they are derived from

Tests: `tests/unit/catalog/test_catalog.py`.
"""
