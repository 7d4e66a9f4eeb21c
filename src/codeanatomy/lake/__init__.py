"""Describe one lake as a whole: who writes to it, what is published in it, and what runs have recorded.

    cursors           keep the position of each step in the change feeds that it reads
    engine_facts      describe the engine of a build: local processes, or Spark with master and versions
    lease             grant write access to a lake to one run at a time
    manifest          publish the runs of a lake: one manifest row per run and repository
    observations      record the storage events of a run as rows at its end, without secrets
    recorded_queries  keep questions, and the columns they read, until the next run records them
    snapshot          open a lake as one published run: every table at its pinned version

Tests: `tests/unit/lake`.
"""
