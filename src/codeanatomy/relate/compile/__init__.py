"""Compile the evidence about one file to its program, and to relations that need no other file.

file_program     one file from extracted rows to its program: the entry point
statements       statements in execution order
definitions      functions, lambdas, classes, imports
targets          targets of assignments, deletions, patterns
expressions      expressions to operations
names            reads and writes of names; nodes, sites, definitions
variables        versions of variables, frames, cells
annotations      annotations to hints
scope            one scope, and how names resolve in it
scope_tree       the scope of every node of a file
scope_blocks     scopes matched with blocks of the symbol table
scope_relations  relations of scopes
bindings         relations of names and their bindings
"""
