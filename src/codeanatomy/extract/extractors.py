"""Who is heard about every file, in this order. SCIP speaks for a whole repository: see `scip_rows`.

>>> [witness.table for witness in WITNESSES]
['ast_files_v1', 'symtable_files_v1', 'bytecode_files_v1', 'libcst_files_v1', 'tree_sitter_files_v1']

Tests: one file per witness, such as `tests/unit/extract/test_ast_files.py`.
"""

from __future__ import annotations

from codeanatomy.extract import ast_files, bytecode_files, libcst_files, symtable_files, tree_sitter_files
from codeanatomy.extract.evidence import Witness

WITNESSES = (
    Witness("ast_files_v1", ast_files.ast_files_v1, ast_files.VERSION),
    Witness("symtable_files_v1", symtable_files.symtable_files_v1, symtable_files.VERSION),
    Witness("bytecode_files_v1", bytecode_files.bytecode_files_v1, bytecode_files.VERSION),
    Witness("libcst_files_v1", libcst_files.libcst_files_v1, libcst_files.VERSION, "max_libcst_size"),
    Witness("tree_sitter_files_v1", tree_sitter_files.tree_sitter_files_v1, tree_sitter_files.VERSION),
)
