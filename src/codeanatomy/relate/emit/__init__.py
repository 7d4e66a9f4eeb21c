"""Emit relations: turn the solved values of a repository into rows of `relations_v1`.

Rules are functions over the `FileRows` of one file; `relations.RULES` has them in order.

relations          all rows of each file; the call graph, the module of the file
attributes         attribute reads, writes and deletions, and the classes that own attributes
absent_attributes  attributes of builtin classes, and the reasons for attributes without a target
calls              callees, arguments
cut_receivers      further candidates where an attribute is read of too many objects
names              names, imports, classes, decorators
references         rows of the candidates of one reference, weighed against other witnesses

Tests: `tests/unit/relate/test_emit.py`, `test_absent_attributes.py`; of calls also `test_callgraph_cases.py`.
"""
