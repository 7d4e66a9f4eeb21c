r"""Parse a module into a LibCST tree whose most frequent nodes are cheap objects.

LibCST's parser is native, but it makes each node by calling the node's class in the module `libcst`: a frozen
dataclass that sets each field through `object.__setattr__` and then checks itself. This takes longer than
the parsing (django's sdist, 2,823 files: about 20 of 39 s). Four of five nodes are whitespace, punctuation,
names, attributes, calls and strings, and their checks cannot fail for a tree that the parser has made. For
these classes the parser is given structs with the same names and fields, which takes 10 to 11 s less;
compound statements and most operations stay LibCST's own, with their checks.

>>> tree = parse_light("x = 1\n", "utf-8")
>>> statement = tree.body[0].body[0]
>>> type(statement), isinstance(statement, cst.Assign)
(<class 'codeanatomy.extract.libcst.light_tree.Assign'>, True)

`LIGHT` has the struct of each replaced class. A struct is a virtual subclass of its class, so `isinstance` is
true, in LibCST's checks too. A check that needs a method a struct does not have (of `return(x)`: is the space
needed?) raises an exception. After any exception there is no tree, and the caller parses with LibCST's own
classes.

Tests: `tests/unit/extract/test_libcst_light_tree.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from types import ModuleType
from typing import Any

import libcst as cst
from libcst import native  # type: ignore[attr-defined]
from msgspec import defstruct

# The patterns of their checks are those by which the parser finds them.
TOKENS = (cst.SimpleWhitespace, cst.Newline, cst.Comment)
# The parser sets stars, keywords and defaults as the checks demand, refuses arguments in another order, and a
# string or number that is none. A name is checked for the version of Unicode: only one in ASCII is replaced.
CHECKED_BY_GRAMMAR = (
    *(cst.Name, cst.Arg, cst.Call, cst.Param, cst.SimpleString, cst.Integer),
    *(cst.Assign, cst.SimpleStatementLine),
)
# Properties that checks of LibCST's own classes read.
PROPERTIES = ("empty", "prefix")
# Without a check, or with one that parentheses are balanced.
UNCHECKED = (cst.CSTNode._validate, cst.Attribute._validate)  # noqa: SLF001


def parse_light(text: str, encoding: str) -> cst.Module | None:
    """Parse a text; None if LibCST's own classes are needed, for their checks or the message of an error."""
    # The parser looks up `libcst` for every node.
    sys.modules["libcst"] = _ASCII if text.isascii() else _UNICODE
    try:
        module: cst.Module = native.parse_module(text, encoding=encoding)
    except (KeyboardInterrupt, SystemExit):
        raise
    # A panic of the Rust parser is not an Exception.
    except BaseException:  # noqa: BLE001
        return None
    else:
        return module
    finally:
        sys.modules["libcst"] = cst


def _light_classes() -> Iterator[tuple[type[cst.CSTNode], type]]:
    """Yield the classes that are replaced, with their structs."""
    for name, kind in vars(cst).items():
        is_node = isinstance(kind, type) and issubclass(kind, cst.CSTNode) and kind.__name__ == name
        if not is_node or kind.__abstractmethods__ or kind is cst.Module:
            continue
        if kind._validate in UNCHECKED or kind in (*TOKENS, *CHECKED_BY_GRAMMAR):  # noqa: SLF001
            yield kind, _struct(kind)


def _struct(kind: type[cst.CSTNode]) -> type:
    namespace = {name: vars(kind)[name] for name in PROPERTIES if name in vars(kind)}
    # A tree has no cycles. Two nodes are equal only if they are the same.
    struct = defstruct(
        kind.__name__, map(_field, fields(kind)), namespace=namespace, module=__name__, eq=False, gc=False
    )
    kind.register(struct)
    return struct


def _field(field: Field[Any]) -> tuple[str, Any] | tuple[str, Any, Any]:
    if field.default is not MISSING:
        return field.name, Any, field.default
    # Nodes are immutable, so a default can be shared.
    return (
        (field.name, Any) if field.default_factory is MISSING else (field.name, Any, field.default_factory())
    )


def _module(**others: object) -> ModuleType:
    module = ModuleType("libcst")
    vars(module).update({**vars(cst), **{kind.__name__: light for kind, light in LIGHT.items()}, **others})
    return module


def _name(value: str, **rest: Any) -> Any:
    """Make a name, with its check if it is not ASCII."""
    return (LIGHT[cst.Name] if value.isascii() else cst.Name)(value=value, **rest)


LIGHT = dict(_light_classes())
_ASCII, _UNICODE = _module(), _module(Name=_name)
