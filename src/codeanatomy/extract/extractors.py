"""Who is heard about every file, in this order. SCIP speaks for a whole repository: see `scip_rows`.

>>> [witness.table for witness in EXTRACTORS]
['ast_files_v1', 'symtable_files_v1', 'bytecode_files_v1', 'libcst_files_v1', 'tree_sitter_files_v1']

Tests: one file per witness, such as `tests/unit/extract/test_ast_files.py`.
"""

from __future__ import annotations

from codeanatomy.extract import ast_files, bytecode_files, libcst_files, symtable_files, tree_sitter_files
from codeanatomy.extract.evidence import Extractor

EXTRACTORS = (
    Extractor("ast_files_v1", ast_files.ast_files_v1, ast_files.VERSION),
    Extractor("symtable_files_v1", symtable_files.symtable_files_v1, symtable_files.VERSION),
    Extractor("bytecode_files_v1", bytecode_files.bytecode_files_v1, bytecode_files.VERSION),
    Extractor("libcst_files_v1", libcst_files.libcst_files_v1, libcst_files.VERSION, "max_libcst_size"),
    Extractor("tree_sitter_files_v1", tree_sitter_files.tree_sitter_files_v1, tree_sitter_files.VERSION),
)
