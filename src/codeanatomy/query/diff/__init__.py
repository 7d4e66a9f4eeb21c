"""Find changes: of definitions since a commit, of the graph between two runs.

    changed_definitions    definitions that differ from a commit
    run_diff               nodes and edges that differ between two runs
    touched                maps changed lines to definitions

Tests: `tests/unit/query/test_run_diff.py`, `tests/unit/query/test_changed_definitions.py`.
"""
