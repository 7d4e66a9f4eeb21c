"""Emit relations: turn the solved values of a repository into rows of `relations_v1`.

relations         all rows of each file; explicit and implicit calls
references        rows of the candidates of one reference, weighed against other witnesses
names             names, imports, classes, decorators
calls             callees, arguments, edges of the call graph
attributes        attribute reads, writes and deletions
attribute_owners  classes that own attributes assigned on instances
file_relations    the module of a file, attributes of its classes that no symbol table lists
"""
