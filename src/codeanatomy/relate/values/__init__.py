"""Analyse which objects each expression of a repository may evaluate to (points-to analysis).

    analysis            solve a repository: the tables of rules, and the rounds that apply them
    arguments           match arguments of a call to parameters
    dispatch            call objects and read their attributes, by the tables of rules; special methods
    external_names      classify names outside of the repository by their spelling
    forwarding          look through wrappers: what a call runs that passes its arguments on
    function_copies     copy functions per call site (context sensitivity)
    hierarchy           method resolution order, and lookup of the class that defines an attribute
    models              models of builtin and standard library functions
    modules             module names from paths, and resolution of imports to modules
    name_resolution     resolve names by scope and import rules alone
    records             constructors of dataclasses and the like, made of their fields
    results             read the solved values: objects of a node, callees of a site
    rules               rules of the operations: functions over the state
    solver              propagate sets of objects along edges to a fixpoint
    state               what rules read and change: solver, programs, objects, fields, tables

Rules are functions over one `State`. A module imports only those below it:

    name_resolution > analysis > rules.calls, forwarding > rules.classes > models > records > other rules
    > dispatch > function_copies | results > hierarchy > state > solver, arguments and the rest

Where rules need each other both ways, they go through a table of the state: calling an object may read an
attribute, and reading one may call a function, so `dispatch` finds the rule for a kind of object in
`state.rules`; and a function copy applies the rules of all rounds to its operations.

Tests: `tests/unit/relate/test_callgraph_cases.py`; of arguments, modules, name resolution, the solver and the
state those named so; of `hierarchy` `test_attributes.py`, of `external_names` `test_absent_attributes.py`, of
`results` `test_emit.py`.
"""
