"""Compile the evidence about one file to its program, and to relations that need no other file.

The compiler is functions over a `Builder`. What compiles a node is found by its kind, in one table each in
`statements`, `expressions` and `targets`; a module imports only those below it in this list.

file_program     one file from extracted rows to its program: the entry point
statements       statements in execution order
expressions      expressions to operations
definitions      functions, lambdas, classes, imports
targets          targets of assignments, deletions, patterns
annotations      annotations to hints
names            reads and writes of names
builder          nodes, sites, definitions and operations of the program
variables        versions of variables, frames, cells
scope            one scope, and how names resolve in it
scope_tree       the scope of every node of a file, matched with the blocks of the symbol table
bindings         relations of scopes, names and their bindings

Tests: `tests/unit/relate/test_statements.py`; of scopes and bindings `test_scopes.py` (against compiled code:
`tests/oracles/scope_oracle.py`) and `test_scope_relations.py`, of annotations `test_annotations.py`.
"""
