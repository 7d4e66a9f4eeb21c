"""List the extractors run on every file, in execution order.

SCIP and the type checker report on whole repositories: see `extract.scip_index` and
`extract.type_checker_files`.

>>> [extractor.table for extractor in EXTRACTORS]
['ast_files_v1', 'symtable_files_v1', 'bytecode_files_v1', 'libcst_files_v1', 'tree_sitter_files_v1']

Tests: one file per extractor, such as `tests/unit/extract/test_ast_files.py`.
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
