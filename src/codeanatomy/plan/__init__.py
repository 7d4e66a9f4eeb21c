"""Plan a run: list the sources, compare them with the lake, and decide what each step does.

    build_request   describe a build, and the settings and versions that its rows depend on
    changes         compare the files of a source with `repo_files_v1`; skip those that git has as unchanged
    feeds           read from change feeds which files a step has to redo
    repositories    parse the sources of a command line, and list their files
    run_plan        decide per step and repository: run, refresh, resume or skip
    step_code       hash the code that the rows of a step depend on, by the import graph
    steps           derive the steps and their fingerprints from the catalogue
    stored_sources  list sources in object stores, and fetch their files

Tests: `tests/unit/plan/test_run_plan.py`, `tests/unit/plan/test_steps.py`.
"""
