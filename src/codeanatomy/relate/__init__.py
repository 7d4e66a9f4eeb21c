"""Resolve names, imports, classes, values and calls of a repository into relations with evidence.

compile        a file's evidence -> its program: definitions, and constraints among values
values         the programs of a repository -> the objects that each expression may hold
witnesses      claims of SCIP and the type checker, compared with our own candidates
emit           solved values -> rows of `relations_v1`
own_imports    count imports of a repository that another root would resolve
program        the program of a file: operations, kinds of objects, definitions
relation_rows  rows of `relations_v1`, collected and converted to Arrow
repository     a whole repository: solve it, then build the rows of each file, and its diagnostics
"""
