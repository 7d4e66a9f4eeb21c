"""Search the graph on behalf of several verbs.

    call_values     expressions that have the value a function returns, or that of a part
    components      strongly connected components and shortest cycles
    control_flow    basic blocks of a function, and the edges between them
    docstrings      docstrings of definitions
    enclosing       definitions around a place, contents of a definition
    entry_points    definitions that frameworks call
    flow_ends       why a value is followed no further
    identifiers     names in a file and what they refer to
    imports         which modules import each other, and when
    reachability    breadth-first search over edges
    relatives       members, bases and overrides of a symbol
    test_code       which paths and names are test code
    usage           possible uses of definitions that no edge shows
    usage_facts     queries for the facts that `usage` combines
    value_flow      one step of a value from variable to variable
    value_origin    one step of a value back to where it comes from

Tests: `tests/unit/query`.
"""
