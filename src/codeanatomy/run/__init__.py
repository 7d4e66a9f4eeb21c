"""Run builds: execute a plan step by step, publish the result, and record what happened.

    build            plan and execute a build under the lease of the lake
    clean_build      build the sources of a lake again into a new lake, to compare them
    entry            build and plan from Python, as the commands do
    given_session    check a caller's session, and build in it without changing it
    record           append manifest rows and plan artifacts
    report           summarize a build for the command line
    signals          turn SIGTERM into an exception

Tests: `tests/spark/test_build.py`, `tests/unit/run/test_clean_build.py`.
"""
