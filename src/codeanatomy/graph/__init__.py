"""Build nodes, edges and properties of the code property graph from facts and relations of one file.

    rows                  graph rows of a file, by the catalogue of kinds
    table_rows            rows of a table by file and kind, converted to Arrow together
    facts                 the lists of facts of a file, and what is kept of them for resolution
    resolution            the lists that other files decide: edges of resolution, names outside
    reads                 the columns and fields that are read of each table
    context               ids, syntax tree, definitions and scopes of a file, shared by all lists
    syntax                CPython's syntax tree, indexed by span; LibCST's lists made from it
    definitions           files, modules, classes, functions, imports, diagnostics
    entry_points          definitions that frameworks call, by the rules of the catalogue
    uses                  names, attributes, calls, arguments, literals, syntax nodes
    scopes                scopes and bindings of the symbol tables
    flow                  code units, basic blocks, control flow, variable events
    control_dependence    control dependence of basic blocks, by post-dominators
    types                 annotations, types, aliases, type parameters
    scip                  symbols and occurrences of a SCIP index
    merge                 merge what the files of a repository contribute to shared nodes and edges

Tests: `tests/unit/graph`, `tests/spark/test_graph.py`.
"""
