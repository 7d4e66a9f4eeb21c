"""Analyse which objects each expression of a repository may evaluate to (points-to analysis).

    analysis            run the analysis: apply the operations of all programs, in rounds
    arguments           match arguments of a call to parameters
    attributes          resolve imports, names bound outside of a file, and attributes
    calls               apply calls: record callees, pass arguments, return results
    classes             apply class statements and instantiation
    containers          elements of containers, subscripts, iteration, unpacking, `await`
    external_names      classify names outside of the repository by their spelling
    function_copies     copy functions per call site (context sensitivity)
    hierarchy           method resolution order, and lookup of the class that defines an attribute
    linked_programs     programs of a repository in one node space, with the table of objects
    models              models of builtin and standard library functions
    modules             module names from paths, and resolution of imports to modules
    name_resolution     resolve names by scope and import rules alone
    pending_call        a call that waits for its callees
    solver              propagate sets of objects along edges to a fixpoint

`analysis.Values` is the whole analysis; `solver`, `linked_programs`, `hierarchy`, `attributes`, `containers`,
`function_copies`, `calls`, `classes` and `analysis` each extend the class of the one before.
"""
