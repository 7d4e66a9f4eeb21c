"""Implement the verbs: a verb is a function of a reader and symbols that returns an unevaluated query.

    result = callers(reader, resolve(reader, "Session.send"), depth=2)
    result.columns      # ("symbol", "kind", "subkind", "path", "line", ...), declared in `answers.COLUMNS`
    result.query        # the light reader runs it and counts its rows, Spark makes a DataFrame of it

The command line, `Lake` and `SparkLake` call the same functions through `query.ask`. Tests: one
`tests/unit/query/test_verb_*.py` per module.

    calls         callers and callees of a symbol
    cycles        cycles of imports or calls
    errors        failures of the last builds
    explain       evidence and rules behind edges
    find          definitions by name or pattern
    flows         where the value of a variable flows
    impact        what may break if symbols change
    path          shortest path between two symbols
    refs          references to a symbol
    result        what a verb returns
    show          signature, docstring and usage counts of a symbol
    stats         counts of files, nodes, edges and calls
    unresolved    names and calls that could not be resolved
    unused        functions and classes that nothing uses
"""
