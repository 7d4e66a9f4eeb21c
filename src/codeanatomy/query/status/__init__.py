"""Report the state of a lake: what was built, when, at what cost, and whether its sources have changed.

    activity        costs of the last runs: slow steps, growth, retries, pruning, questions, maintenance
    failures        what failed in the last builds
    freshness       whether a source has changed since it was built
    lake_status     published repositories and the current writer
    run_comparison  what two runs have cost, and what may be the reason
    run_costs       seconds, rows and bytes of each run and table, for plots
    run_reports     list of runs, and the report of one run

Tests: `tests/unit/query/test_status.py`, `tests/unit/query/test_runs.py`,
`tests/unit/query/test_run_costs.py`, `tests/unit/query/test_run_comparison.py`,
`tests/unit/lake/test_observations.py`.
"""
