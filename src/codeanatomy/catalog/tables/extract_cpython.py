"""Declare the tables of CPython's own analyses of a file: syntax tree, bytecode and symbol tables.

`x = f(1)` is one row of `ast_files_v1` whose `nodes` are Module, Assign, Name, Store, Call, Name, Load and
Constant; one row of `bytecode_files_v1` with one code object that loads `f` and stores `x`; one row of
`symtable_files_v1` with one block in which `x` is assigned and `f` referenced.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.catalog.tables.columns import (
    ERRORS,
    FILE_COLUMNS_WITH_DIGEST,
    FILE_KEY,
    LINE,
    ONE_ROW_PER_FILE,
    WITNESS_VERSION,
    ZORDER_WHEN_IDLE,
    span,
    strings,
    structs,
)

AST_ID = Column("ast_id", "int", "Number of the node in a preorder traversal, from 0.")
AST_FILES_V1 = Table(
    "ast_files_v1",
    "extract",
    "One row per file: its syntax tree from CPython's `ast`.",
    (
        *FILE_COLUMNS_WITH_DIGEST,
        WITNESS_VERSION,
        structs(
            "nodes",
            "All nodes of the tree, in preorder.",
            AST_ID,
            Column("parent_ast_id", "int", "`ast_id` of the parent; null for the module."),
            Column("slot", "string", "Field of the parent that holds it, such as body."),
            Column("idx", "int", "Index in that field if it is a list, from 0."),
            Column("kind", "string", "AST class of the node, such as FunctionDef."),
            Column("name", "string", "Identifier in the node: name, attribute, argument or alias."),
            Column(
                "value",
                "string",
                "`repr` of a constant, truncated; the conversion of a FormattedValue.",
            ),
            *span(of="the node"),
            LINE,
        ),
        structs(
            "defs",
            "Functions, lambdas and classes.",
            AST_ID,
            Column("kind", "string", "FunctionDef, AsyncFunctionDef, Lambda or ClassDef."),
            Column("name", "string", "Name; null for a lambda."),
            Column(
                "qualname", "string", "Names of the enclosing definitions and its own name, joined by dots."
            ),
            Column("posonly_count", "int", "Number of positional-only parameters."),
            Column("arg_count", "int", "Number of positional-or-keyword parameters."),
            Column("kwonly_count", "int", "Number of keyword-only parameters."),
            Column("has_vararg", "boolean", "Has a `*args` parameter."),
            Column("has_kwarg", "boolean", "Has a `**kwargs` parameter."),
            Column("decorator_count", "int", "Number of decorators."),
            Column("base_count", "int", "Number of base classes of a class."),
            Column("type_param_count", "int", "Number of type parameters in brackets after the name."),
            *span(of="the definition without decorators"),
            LINE,
        ),
        structs(
            "calls",
            "Call expressions.",
            AST_ID,
            Column("func_ast_id", "int", "`ast_id` of the called expression."),
            Column("func_kind", "string", "AST class of that expression, such as Attribute."),
            Column("func_name", "string", "Last identifier of that expression, if it ends in one."),
            Column("arg_count", "int", "Number of positional arguments, including starred ones."),
            Column("keyword_count", "int", "Number of keyword arguments, including `**` ones."),
            Column("starred_count", "int", "Number of `*` arguments."),
            Column("kw_star_count", "int", "Number of `**` arguments."),
            *span(of="the call"),
            LINE,
        ),
        structs(
            "imports",
            "One entry per imported name.",
            AST_ID,
            Column("kind", "string", "Import or ImportFrom."),
            Column("module", "string", "Module after `from`; null for `import x` and `from . import x`."),
            Column("name", "string", "Imported module or name; `*` for a star import."),
            Column("asname", "string", "Name after `as`."),
            Column("alias_index", "int", "Index in the statement, from 0."),
            Column("level", "int", "Number of leading dots of a relative import."),
            *span("stmt", "the statement"),
            *span(of="the alias"),
            LINE,
        ),
        structs(
            "docstrings",
            "Docstrings of the module, classes and functions.",
            Column("owner_ast_id", "int", "`ast_id` of the documented node."),
            Column("owner_kind", "string", "AST class of that node."),
            Column("owner_name", "string", "Its name; null for the module."),
            Column("text", "string", "The docstring as evaluated, with its indentation."),
            *span(of="the string literal"),
            LINE,
        ),
        structs(
            "type_ignores",
            "`# type: ignore` comments.",
            Column("tag", "string", "Text after `ignore`."),
            LINE,
        ),
        ERRORS,
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_file_blobs_v1",),
    write=ONE_ROW_PER_FILE,
    upkeep=ZORDER_WHEN_IDLE,
)

BYTECODE_FILES_V1 = Table(
    "bytecode_files_v1",
    "extract",
    "One row per file: the code objects that CPython's compiler generates for it.",
    (
        *FILE_COLUMNS_WITH_DIGEST,
        WITNESS_VERSION,
        Column(
            "python_version", "string", "Python version of the opcodes; null if the file was not compiled."
        ),
        structs(
            "code_objects",
            "The module's code and everything nested in it, in preorder.",
            Column(
                "code_unit_key", "string", "Path of names, first lines and ordinals; unique within the file."
            ),
            Column("parent_key", "string", "Key of the enclosing code object; null for the module."),
            Column("qualname", "string", "`co_qualname`."),
            Column("name", "string", "`co_name`."),
            Column("firstlineno", "int", "`co_firstlineno`, counted from 1; 0 or 1 for a module."),
            Column("argcount", "int", "Number of positional parameters, including positional-only ones."),
            Column("posonlyargcount", "int", "Number of positional-only parameters."),
            Column("kwonlyargcount", "int", "Number of keyword-only parameters."),
            Column("nlocals", "int", "Number of local variables."),
            Column("stacksize", "int", "Maximum stack depth."),
            Column("flags", "int", "`co_flags`."),
            Column("code_len", "int", "Length of the bytecode in bytes."),
            strings("varnames", "Local variables, parameters first."),
            strings("freevars", "Free variables: those of enclosing functions that it uses."),
            strings("cellvars", "Cell variables: its own that nested functions use."),
            strings("names", "Global names, attributes and module names."),
            structs(
                "consts",
                "Constants, in order.",
                Column("kind", "string", "Type of the constant, such as int or code."),
                Column("repr", "string", "`repr` of the constant, truncated; for a code object, its name."),
            ),
            structs(
                "instructions",
                "Instructions in order; caches and EXTENDED_ARG prefixes are merged into their instruction.",
                Column(
                    "offset",
                    "int",
                    "Offset of the instruction, or of its first prefix.",
                    semantic_type="BcOffset",
                ),
                Column("opname", "string", "Operation name, never the specialized form."),
                Column(
                    "arg", "int", "Argument with its prefixes; null, as are the next two, if it has none."
                ),
                Column("argval_kind", "string", "const, name, local, free, compare, jump or other."),
                Column("argval", "string", "Resolved argument, as text."),
                Column("jump_target", "int", "Target offset of a jump.", semantic_type="BcOffset"),
                Column(
                    "is_jump_target",
                    "boolean",
                    "Some instruction jumps here; for exception handlers see `exception_table`.",
                ),
                Column("stack_depth", "int", "Stack depth before the instruction; null if unknown."),
                *span(of="the source it was compiled from"),
                LINE,
            ),
            structs(
                "exception_table",
                "Protected ranges, innermost first where they overlap.",
                Column("start_offset", "int", "First protected offset.", semantic_type="BcOffset"),
                Column("end_offset", "int", "Offset after the range.", semantic_type="BcOffset"),
                Column("target_offset", "int", "Offset of the handler.", semantic_type="BcOffset"),
                Column("depth", "int", "Stack depth at which the handler starts."),
                Column("lasti", "boolean", "The offset of the raising instruction is pushed on the stack."),
            ),
            structs(
                "line_table",
                "Runs of bytecode that belong to one line.",
                Column("start_offset", "int", "First offset of the run.", semantic_type="BcOffset"),
                Column("end_offset", "int", "Offset after the run.", semantic_type="BcOffset"),
                Column(
                    "line",
                    "int",
                    "Line number, counted from 1; null if there is none.",
                    semantic_type="LineNo1",
                ),
            ),
            *span(of="the source of the code object, without decorators"),
        ),
        ERRORS,
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_file_blobs_v1",),
    write=ONE_ROW_PER_FILE,
    upkeep=ZORDER_WHEN_IDLE,
)

SYMTABLE_FILES_V1 = Table(
    "symtable_files_v1",
    "extract",
    "One row per file: scopes and symbols from CPython's `symtable`.",
    (
        *FILE_COLUMNS_WITH_DIGEST,
        WITNESS_VERSION,
        structs(
            "blocks",
            "Scopes, in preorder.",
            Column("scope_key", "string", "Path of names, lines and ordinals; unique within the file."),
            Column("parent_key", "string", "Key of the enclosing scope; null for the module."),
            Column("type", "string", "Scope type, such as function or class."),
            Column("name", "string", "Name of the scope; `top` for the module."),
            Column("lineno", "int", "Line number from the compiler, counted from 1; 0 for the module."),
            Column("is_nested", "boolean", "Inside a function."),
            Column("is_optimized", "boolean", "Its locals are fast variables."),
            structs(
                "symbols",
                "Names of the scope, sorted.",
                Column("name", "string", "The name, mangled as by the compiler."),
                Column("is_referenced", "boolean", "Used in the scope."),
                Column("is_imported", "boolean", "Bound by an import."),
                Column("is_parameter", "boolean", "A parameter."),
                Column(
                    "is_type_parameter", "boolean", "A type parameter; false in Python versions without them."
                ),
                Column("is_global", "boolean", "Global, declared or implicit."),
                Column("is_nonlocal", "boolean", "Declared nonlocal."),
                Column("is_declared_global", "boolean", "Declared global."),
                Column("is_local", "boolean", "Local to the scope."),
                Column("is_annotated", "boolean", "Has an annotation."),
                Column("is_free", "boolean", "Bound in an enclosing function."),
                Column("is_assigned", "boolean", "Assigned in the scope."),
                Column("is_namespace", "boolean", "Bound by a class or function definition."),
                strings("namespaces", "Scope keys of the definitions that bind it."),
            ),
            strings("parameters", "Parameters of a function, in order."),
            strings("locals", "Local variables of a function, sorted."),
            strings("globals", "Global names that a function uses, sorted."),
            strings("nonlocals", "Names that a function declares nonlocal, sorted."),
            strings("frees", "Free variables of a function, sorted."),
            strings("methods", "Functions that a class defines, sorted."),
        ),
        ERRORS,
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_file_blobs_v1",),
    write=ONE_ROW_PER_FILE,
    upkeep=ZORDER_WHEN_IDLE,
)
