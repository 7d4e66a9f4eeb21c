"""Find changes: of definitions since a commit, of the graph between two runs.

    changed_definitions    definitions that differ from a commit
    run_diff               nodes and edges that differ between two runs
    change_tables          the same as tables in DuckDB, with the contents of definitions
    touched                maps changed lines to definitions

Tests: `tests/unit/query/test_run_diff.py`, `tests/unit/query/test_changed_definitions.py`.
"""
