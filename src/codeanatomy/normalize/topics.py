"""State the claims of each witness about a file, by topic, as comparable texts; see `disagreements`.

>>> ast_claims({"calls": {"bstart": [4], "bend": [9]}})["calls"]
['4|9||call']

A claim is `first byte|end|subject|statement`. A topic about which the witness claims nothing is None: its
list is null, or the witness gave up. Claims without a position are left out.

Tests: `tests/unit/normalize/test_diagnostics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from codeanatomy.file_view import Row, iter_rows

UNKNOWN = "?"
# Errors by which CPython rejects a text; others, such as RecursionError, do not judge it.
REJECTIONS = frozenset({"SyntaxError", "IndentationError", "TabError", "ValueError"})
# Bits of co_flags.
CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 2, 4, 8
# Characters that may separate the parts of a dotted name.
BETWEEN = re.compile(r"[ \t\n\x0b\f\r\\]")
# Stands for a text that was truncated: it is not ASCII, so it is claimed as unknown.
CUT = "\ufffd"
CAPTURE = ("pack", "match_index", "capture", "kind", "text", "bstart", "bend")

Claims: TypeAlias = Mapping[str, Sequence[str] | None]


def ast_claims(row: Row) -> Claims:
    """Return the claims of CPython's parser."""
    defs, imports, calls = row.get("defs"), row.get("imports"), row.get("calls")
    kinds = None if defs is None else defs["kind"]
    errors = row.get("errors") or {}
    return {
        "parse_outcome": _outcome(kinds is not None, not REJECTIONS.isdisjoint(errors.get("error_type", ()))),
        "defs": None
        if defs is None
        else _placed(
            _definition(_def_kind(kind), name, begin)
            for kind, name, begin in iter_rows(defs, "kind", "name", "bstart")
        ),
        "imports": None
        if imports is None
        else _placed(
            _import(_dotted(level, module) if kind == "ImportFrom" else None, name, asname, begin)
            for kind, level, module, name, asname, begin in iter_rows(
                imports, "kind", "level", "module", "name", "asname", "bstart"
            )
        ),
        "calls": _spans(calls, "bstart", "bend"),
        "scopes": None
        if kinds is None
        else _counts(
            functions=sum(kind.endswith("FunctionDef") for kind in kinds),
            lambdas=sum(kind == "Lambda" for kind in kinds),
            classes=sum(kind == "ClassDef" for kind in kinds),
        ),
    }


def libcst_claims(row: Row) -> Claims:
    """Return the claims of LibCST."""
    defs, imports = row.get("defs"), row.get("imports")
    errors = row.get("parse_errors") or {}
    return {
        "parse_outcome": _outcome(defs is not None, "ParserSyntaxError" in errors.get("error_type", ())),
        "defs": None
        if defs is None
        else _placed(
            _definition(kind, name, begin)
            for kind, name, begin in iter_rows(defs, "kind", "name", "def_bstart")
        ),
        "imports": None
        if imports is None
        else _placed(
            _import(_dotted(level, module) if kind == "from" else None, name, asname, begin)
            for kind, level, module, name, asname, begin in iter_rows(
                imports, "kind", "level", "module", "name", "asname", "alias_bstart"
            )
        ),
        "calls": _spans(row.get("callsites"), "call_bstart", "call_bend"),
    }


def tree_sitter_claims(row: Row) -> Claims:
    """Return the claims of tree-sitter; about a file with errors only that it is rejected."""
    stats = row.get("stats")
    if stats is None:
        return {}
    is_broken = stats["error_count"] + stats["missing_count"] > 0
    outcome = _outcome(not is_broken, is_broken)
    captures = row.get("captures")
    if is_broken or stats["match_limit_exceeded"] or captures is None:
        return {"parse_outcome": outcome}
    # Captures of a match side by side, its name last.
    ordered = sorted(
        (
            capture
            for capture in iter_rows(captures, *CAPTURE)
            if capture[0] in ("defs", "imports") and capture[2] != "import"
        ),
        key=_by_match,
    )
    claims: dict[str, list[str]] = {"defs": [], "imports": []}
    for index in range(len(ordered)):
        claim = _match_claim(ordered, index)
        if claim is not None:
            claims[ordered[index][0]].append(claim)
    return {"parse_outcome": outcome, **claims}


def symtable_claims(row: Row) -> Claims:
    """Return the claims of the symbol table."""
    blocks = row.get("blocks")
    if blocks is None:
        return {}
    functions = [
        (name, parameters)
        for kind, name, parameters in iter_rows(blocks, "type", "name", "parameters")
        if kind == "function" and _is_written(parameters)
    ]
    return {
        "parameters": [_parameters(name, parameters) for name, parameters in functions],
        "scopes": _counts(
            functions=sum(name != "lambda" for name, _ in functions),
            lambdas=sum(name == "lambda" for name, _ in functions),
            classes=sum(kind == "class" for kind in blocks["type"]),
        ),
    }


def bytecode_claims(row: Row) -> Claims:
    """Return the claims of the compiler."""
    units = row.get("code_objects")
    if units is None:
        return {}
    claims = []
    for name, flags, arguments, keywords, variables in iter_rows(
        units, "name", "flags", "argcount", "kwonlyargcount", "varnames"
    ):
        count = arguments + keywords + bool(flags & CO_VARARGS) + bool(flags & CO_VARKEYWORDS)
        parameters = variables[:count]
        spelled = "lambda" if name == "<lambda>" else name
        if flags & CO_NEWLOCALS and not spelled.startswith("<") and _is_written(parameters):
            claims.append(_parameters(spelled, parameters))
    return {"parameters": claims}


# Composing claims.


def _placed(claims: Iterable[str | None]) -> list[str]:
    return [claim for claim in claims if claim is not None]


def _definition(kind: str, name: str | None, begin: int | None) -> str | None:
    if begin is None:
        return None
    named = kind if kind == "lambda" else f"{kind} {_known(name)}"
    return f"{begin}|{begin}||{named}"


def _def_kind(kind: str) -> str:
    """Return the kind of a definition as the other parsers name it."""
    if kind.endswith("FunctionDef"):
        return "function"
    return "class" if kind == "ClassDef" else "lambda"


def _import(module: str | None, name: str | None, asname: str | None, begin: int | None) -> str | None:
    """Return the claim of an import; `module` has the dots of a relative import, None for `import x`."""
    if begin is None:
        return None
    head = "import " if module is None else "from "
    middle = "" if module is None else f"{module} import "
    tail = None if name is None else f"{middle}{name}" + ("" if asname is None else f" as {asname}")
    return f"{begin}|{begin}||{head}{_known(tail)}"


def _dotted(level: int | None, module: str | None) -> str | None:
    return None if level is None else "." * level + (module or "")


def _known(text: str | None) -> str:
    return text if text is not None and text.isascii() else UNKNOWN


def _spans(calls: Any, begin: str, end: str) -> list[str] | None:
    if calls is None:
        return None
    return [
        f"{first}|{last}||call"
        for first, last in iter_rows(calls, begin, end)
        if first is not None and last is not None
    ]


def _parameters(name: str, parameters: Sequence[str]) -> str:
    return f"||{name}|({', '.join(parameters)})"


def _is_written(parameters: Sequence[str] | None) -> bool:
    """Return whether a function is written in the source: comprehensions have parameters such as `.0`."""
    return parameters is not None and not any(name.startswith(".") for name in parameters)


def _counts(**numbers: int) -> list[str]:
    return [f"||{subject}|{number}" for subject, number in numbers.items()]


def _outcome(accepted: bool, rejected: bool) -> list[str] | None:
    """Return the verdict of a parser on the file; None if it failed for a reason of its own."""
    if not (accepted or rejected):
        return None
    return ["|||accepts" if accepted else "|||rejects"]


def _by_match(capture: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a sort key in which null comes first."""
    return tuple((cell is not None, cell) for cell in capture)


def _match_claim(captures: Sequence[tuple[Any, ...]], index: int) -> str | None:
    """Return the claim of the match that ends with this capture, if it does."""
    pack, match, capture, kind, _, begin, _ = captures[index]

    def before(steps: int, name: str) -> tuple[Any, ...] | None:
        earlier = captures[index - steps] if index >= steps else None
        return earlier if earlier is not None and (earlier[1], earlier[2]) == (match, name) else None

    if pack == "defs" and kind == "lambda":
        return None if begin is None else f"{begin}|{begin}||lambda"
    if capture != "name":
        return None
    if pack == "defs":
        definition = captures[index - 1] if index else None
        is_class = definition is not None and definition[3] == "class_definition"
        start = None if definition is None else definition[5]
        return _definition("class" if is_class else "function", _text(captures[index]), start)
    module, alias = before(1, "module"), before(1, "alias") or before(2, "alias")
    return _import(_text(module), _text(captures[index]), _text(alias), begin)


def _text(capture: tuple[Any, ...] | None) -> str | None:
    """Return the text of a capture without white space between its parts; `CUT` if it was truncated."""
    if capture is None:
        return None
    *_, text, begin, end = capture
    is_whole = text is not None and len(text.encode()) == end - begin
    return BETWEEN.sub("", text) if is_whole else CUT
