"""Declare the part of the SCIP protocol that is read, as protobuf messages without generated code.

SCIP is one protobuf schema; a field is identified by its number, so the tables below are all that a reader
needs. `*` marks a repeated field. Enums are encoded as numbers and are declared as such; their names are in
`KINDS`, `SYNTAX_KINDS` and the other tables of names.

>>> message = Occurrence(range=[4, 0, 7], symbol="local 1", symbol_roles=1)
>>> message.SerializeToString().hex(), name_of(KINDS, 26), name_of(KINDS, 0), name_of(KINDS, 9999)
('0a0304000712076c6f63616c20311801', 'Method', None, '9999')

Fields that are not listed are skipped by protobuf. A range is a list of three or four numbers in indexes
older than 2026 and a message of its own in newer ones; both are here.

Tests: `tests/unit/extract/test_scip_index.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Protobuf has no type hints.
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

PACKAGE = "codeanatomy.scip"

# Message: its fields as "name number type".
MESSAGES: Mapping[str, tuple[str, ...]] = {
    "Index": ("metadata 1 Metadata", "documents 2 Document*", "external_symbols 3 SymbolInformation*"),
    "Metadata": (
        "version 1 int",
        "tool_info 2 ToolInfo",
        "project_root 3 str",
        "text_document_encoding 4 int",
    ),
    "ToolInfo": ("name 1 str", "version 2 str", "arguments 3 str*"),
    "Document": (
        "relative_path 1 str",
        "occurrences 2 Occurrence*",
        "symbols 3 SymbolInformation*",
        "language 4 str",
        "position_encoding 6 int",
    ),
    "Occurrence": (
        "range 1 int*",
        "symbol 2 str",
        "symbol_roles 3 int",
        "syntax_kind 5 int",
        "diagnostics 6 Diagnostic*",
        "enclosing_range 7 int*",
        "single_line_range 8 SingleLineRange",
        "multi_line_range 9 MultiLineRange",
        "single_line_enclosing_range 10 SingleLineRange",
        "multi_line_enclosing_range 11 MultiLineRange",
    ),
    "SingleLineRange": ("line 1 int", "start_character 2 int", "end_character 3 int"),
    "MultiLineRange": (
        "start_line 1 int",
        "start_character 2 int",
        "end_line 3 int",
        "end_character 4 int",
    ),
    "SymbolInformation": (
        "symbol 1 str",
        "documentation 3 str*",
        "relationships 4 Relationship*",
        "kind 5 int",
        "display_name 6 str",
        "signature_documentation 7 Signature",
        "enclosing_symbol 8 str",
    ),
    "Signature": ("language 4 str", "text 5 str"),
    "Relationship": (
        "symbol 1 str",
        "is_reference 2 bool",
        "is_implementation 3 bool",
        "is_type_definition 4 bool",
        "is_definition 5 bool",
    ),
    "Diagnostic": ("severity 1 int", "code 2 str", "message 3 str", "source 4 str", "tags 5 int*"),
}

TEXT_ENCODINGS = {1: "UTF8", 2: "UTF16"}
SEVERITIES = {1: "error", 2: "warning", 3: "info", 4: "hint"}
DIAGNOSTIC_TAGS = {1: "Unnecessary", 2: "Deprecated"}
# fmt: off
SYNTAX_KINDS = dict(enumerate((
    "Comment", "PunctuationDelimiter", "PunctuationBracket", "Keyword", "IdentifierOperator", "Identifier",
    "IdentifierBuiltin", "IdentifierNull", "IdentifierConstant", "IdentifierMutableGlobal",
    "IdentifierParameter", "IdentifierLocal", "IdentifierShadowed", "IdentifierNamespace",
    "IdentifierFunction", "IdentifierFunctionDefinition", "IdentifierMacro", "IdentifierMacroDefinition",
    "IdentifierType", "IdentifierBuiltinType", "IdentifierAttribute", "RegexEscape", "RegexRepeated",
    "RegexWildcard", "RegexDelimiter", "RegexJoin", "StringLiteral", "StringLiteralEscape",
    "StringLiteralSpecial", "StringLiteralKey", "CharacterLiteral", "NumericLiteral", "BooleanLiteral",
    "Tag", "TagAttribute", "TagDelimiter",
), start=1))
# 83 is not assigned.
KINDS = dict(enumerate((
    "Array", "Assertion", "AssociatedType", "Attribute", "Axiom", "Boolean", "Class", "Constant",
    "Constructor", "DataFamily", "Enum", "EnumMember", "Event", "Fact", "Field", "File", "Function",
    "Getter", "Grammar", "Instance", "Interface", "Key", "Lang", "Lemma", "Macro", "Method",
    "MethodReceiver", "Message", "Module", "Namespace", "Null", "Number", "Object", "Operator", "Package",
    "PackageObject", "Parameter", "ParameterLabel", "Pattern", "Predicate", "Property", "Protocol",
    "Quasiquoter", "SelfParameter", "Setter", "Signature", "Subscript", "String", "Struct", "Tactic",
    "Theorem", "ThisParameter", "Trait", "Type", "TypeAlias", "TypeClass", "TypeFamily", "TypeParameter",
    "Union", "Value", "Variable", "Contract", "Error", "Library", "Modifier", "AbstractMethod",
    "MethodSpecification", "ProtocolMethod", "PureVirtualMethod", "TraitMethod", "TypeClassMethod",
    "Accessor", "Delegate", "MethodAlias", "SingletonClass", "SingletonMethod", "StaticDataMember",
    "StaticEvent", "StaticField", "StaticMethod", "StaticProperty", "StaticVariable",
), start=1)) | {84: "Extension", 85: "Mixin", 86: "Concept"}
# fmt: on


def name_of(names: Mapping[int, str], number: int) -> str | None:
    """Return the name of an enum value; None if unspecified, its digits if it is newer than our tables."""
    return (names.get(number) or str(number)) if number else None


def _classes() -> dict[str, Any]:
    """Create the message classes in a separate pool, because another package may register its own SCIP."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3")
    scalars = {
        "int": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
        "str": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
        "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
        "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    }
    for message, fields in MESSAGES.items():
        declared = file.message_type.add(name=message)
        for name, number, kind in map(str.split, fields):
            single = kind.removesuffix("*")
            field = declared.field.add(name=name, number=int(number))
            field.label = field.LABEL_OPTIONAL if kind == single else field.LABEL_REPEATED
            field.type = scalars.get(single, field.TYPE_MESSAGE)
            if single in MESSAGES:
                field.type_name = f".{PACKAGE}.{single}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in MESSAGES
    }


_CLASSES = _classes()
Index = _CLASSES["Index"]
Metadata = _CLASSES["Metadata"]
Document = _CLASSES["Document"]
Occurrence = _CLASSES["Occurrence"]
SymbolInformation = _CLASSES["SymbolInformation"]
