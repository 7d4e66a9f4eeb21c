"""Analyse control flow and data flow of the code objects of one file.

    tables         the four flow tables of a file
    opcodes        the effect of bytecode instructions on control and data flow, by Python version
    blocks         basic blocks and control flow edges of a code object
    conditions     tests as the source has them, where the compiler tests the opposite
    events         definitions, uses and deletions of variables
    reaching       reaching definitions within a code object
    cross_scope    reaching definitions between code objects: closures and globals

Tests: `tests/unit/normalize`.
"""
