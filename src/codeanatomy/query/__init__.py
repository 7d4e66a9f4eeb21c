"""Query a published snapshot of a lake: verbs, SQL, exports, comparisons. Nothing here writes to a lake.

    answers             the answer of every verb and its columns
    ask                 runs a verb: resolves symbols, evaluates the query, adds freshness and coverage
    checks              whole-graph checks: integrity rules, comparison of two lakes, call graphs
    diff                definitions changed since a commit, changes of graph and tables between two runs
    engines             queries as data, and the readers that run them on DuckDB, Spark or Ibis
    export              graph exports to files and pictures
    lake                `Lake`, the Python interface with a method per verb
    overriding_methods  notes on methods that override a symbol
    pictures            diagrams, their layout, and SVG
    recording           notes on the tables and columns that queries read
    source_lines        the text of the source line of each row
    sql                 user-written SQL over the views: checks, rewrites, execution
    status              state of a lake: repositories, runs, failures, costs
    symbols             resolves names typed by users to nodes of the graph
    unresolved_uses     places that may use a definition of their name, and calls that are not resolved
    verbs               one module per verb
    walks               graph searches shared by verbs

Tests: `tests/unit/query`, `tests/spark/test_spark_lake.py`.
"""
