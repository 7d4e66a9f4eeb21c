"""Search the graph on behalf of several verbs.

    components      strongly connected components and shortest cycles
    docstrings      docstrings of definitions
    enclosing       definitions around a place, contents of a definition
    reachability    breadth-first search over edges
    test_code       which paths and names are test code
    usage           possible uses of definitions that no edge shows
    usage_facts     queries for the facts that `usage` combines
    value_flow      one step of a value from variable to variable

Tests: `tests/unit/query`.
"""
