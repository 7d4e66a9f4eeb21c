"""Find changes: of definitions since a commit or by a diff, of the graph and of tables between two runs.

    changed_definitions    definitions that differ from a commit
    changed_between_runs   definitions that differ between two runs
    patch_text             definitions that a diff changes
    run_diff               nodes and edges that differ between two runs
    change_tables          the same as tables in DuckDB, with the contents of definitions
    table_changes          rows of a table that differ between two runs, from its change feed
    change_windows         windows of change feeds between two runs
    touched                maps changed lines to definitions

Tests: `tests/unit/query/test_run_diff.py`, `tests/unit/query/test_changed_definitions.py`,
`tests/unit/query/test_changes.py`.
"""
