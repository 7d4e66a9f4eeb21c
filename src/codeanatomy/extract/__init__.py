"""Extract evidence rows from the bytes of files: one pure function per extractor, without Spark.

ast_files           CPython's syntax tree
bytecode            decode instructions and stack depths for `bytecode_files`
bytecode_files      CPython's code objects
evidence            the interface of an extractor: its result and its problems
extractors          the extractors run on every file, in order
file_rows           all rows of one file, and their Arrow batches
libcst              spans, facts and qualified names for `libcst_files`
libcst_files        LibCST's lossless tree
newer_syntax        name the Python version that a rejected file needs
partitions          divide files into tasks of equal cost
positions           convert line and column of other tools to byte offsets
pyrefly             read the report of the type checker for `type_checker_files`
scip                read the documents of an index for `scip_index`
scip_index          SCIP indexes of whole repositories
shared_rows         pass rows to the parent process
symtable_files      CPython's symbol tables
tools               run scip-python and pyrefly
tree_sitter_files   tree-sitter's error-tolerant tree and query captures
type_checker_files  call targets and types reported by pyrefly
worker              run extractors in a child process that may crash
"""
