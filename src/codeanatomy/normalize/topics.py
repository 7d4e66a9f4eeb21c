"""What each witness claims of a file, by topic, in texts that can be compared; see `disagreements`.

>>> ast_claims({"calls": {"bstart": [4], "bend": [9]}})["calls"]
['4|9||call']

A claim is `first byte|end|subject|words`. A topic that the witness says nothing about is None: its list is
null, or it gave up. Claims without a place are left out.

Tests: `tests/unit/normalize/test_diagnostics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from codeanatomy.normalize.file_view import Said, each

UNKNOWN = "?"
# Errors by which CPython refuses a text; others, such as RecursionError, say nothing about it.
REJECTIONS = frozenset({"SyntaxError", "IndentationError", "TabError", "ValueError"})
# Bits of co_flags.
CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 2, 4, 8
# What may stand between the parts of a dotted name.
BETWEEN = re.compile(r"[ \t\n\x0b\f\r\\]")
# A text that was cut: nothing we know.
CUT = "\ufffd"
CAPTURE = ("pack", "match_index", "capture", "kind", "text", "bstart", "bend")

Claims: TypeAlias = Mapping[str, Sequence[str] | None]


def ast_claims(said: Said) -> Claims:
    """What CPython's parser claims."""
    defs, imports, calls = said.get("defs"), said.get("imports"), said.get("calls")
    kinds = None if defs is None else defs["kind"]
    errors = said.get("errors") or {}
    return {
        "parse_outcome": _outcome(kinds is not None, not REJECTIONS.isdisjoint(errors.get("error_type", ()))),
        "defs": None
        if defs is None
        else _placed(
            _definition(_def_kind(kind), name, begin)
            for kind, name, begin in each(defs, "kind", "name", "bstart")
        ),
        "imports": None
        if imports is None
        else _placed(
            _import(_dotted(level, module) if kind == "ImportFrom" else None, name, asname, begin)
            for kind, level, module, name, asname, begin in each(
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


def libcst_claims(said: Said) -> Claims:
    """What LibCST claims."""
    defs, imports = said.get("defs"), said.get("imports")
    errors = said.get("parse_errors") or {}
    return {
        "parse_outcome": _outcome(defs is not None, "ParserSyntaxError" in errors.get("error_type", ())),
        "defs": None
        if defs is None
        else _placed(
            _definition(kind, name, begin) for kind, name, begin in each(defs, "kind", "name", "def_bstart")
        ),
        "imports": None
        if imports is None
        else _placed(
            _import(_dotted(level, module) if kind == "from" else None, name, asname, begin)
            for kind, level, module, name, asname, begin in each(
                imports, "kind", "level", "module", "name", "asname", "alias_bstart"
            )
        ),
        "calls": _spans(said.get("callsites"), "call_bstart", "call_bend"),
    }


def tree_sitter_claims(said: Said) -> Claims:
    """What tree-sitter claims; of a file with errors only that it has some."""
    stats = said.get("stats")
    if stats is None:
        return {}
    is_broken = stats["error_count"] + stats["missing_count"] > 0
    outcome = _outcome(not is_broken, is_broken)
    captures = said.get("captures")
    if is_broken or stats["match_limit_exceeded"] or captures is None:
        return {"parse_outcome": outcome}
    # Captures of a match side by side, its name last.
    found = sorted(
        (
            capture
            for capture in each(captures, *CAPTURE)
            if capture[0] in ("defs", "imports") and capture[2] != "import"
        ),
        key=_by_match,
    )
    claims: dict[str, list[str]] = {"defs": [], "imports": []}
    for place in range(len(found)):
        claim = _matched(found, place)
        if claim is not None:
            claims[found[place][0]].append(claim)
    return {"parse_outcome": outcome, **claims}


def symtable_claims(said: Said) -> Claims:
    """What the symbol table claims."""
    blocks = said.get("blocks")
    if blocks is None:
        return {}
    functions = [
        (name, parameters)
        for kind, name, parameters in each(blocks, "type", "name", "parameters")
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


def bytecode_claims(said: Said) -> Claims:
    """What the compiler claims."""
    units = said.get("code_objects")
    if units is None:
        return {}
    claims = []
    for name, flags, arguments, keywords, variables in each(
        units, "name", "flags", "argcount", "kwonlyargcount", "varnames"
    ):
        count = arguments + keywords + bool(flags & CO_VARARGS) + bool(flags & CO_VARKEYWORDS)
        parameters = variables[:count]
        spelled = "lambda" if name == "<lambda>" else name
        if flags & CO_NEWLOCALS and not spelled.startswith("<") and _is_written(parameters):
            claims.append(_parameters(spelled, parameters))
    return {"parameters": claims}


# What claims are made of.


def _placed(claims: Iterable[str | None]) -> list[str]:
    return [claim for claim in claims if claim is not None]


def _definition(kind: str, name: str | None, begin: int | None) -> str | None:
    if begin is None:
        return None
    named = kind if kind == "lambda" else f"{kind} {_known(name)}"
    return f"{begin}|{begin}||{named}"


def _def_kind(kind: str) -> str:
    """CPython's kind in the words of the others."""
    if kind.endswith("FunctionDef"):
        return "function"
    return "class" if kind == "ClassDef" else "lambda"


def _import(module: str | None, name: str | None, asname: str | None, begin: int | None) -> str | None:
    """`module` has the dots of a relative import; it is null for `import x`."""
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
        for first, last in each(calls, begin, end)
        if first is not None and last is not None
    ]


def _parameters(name: str, parameters: Sequence[str]) -> str:
    return f"||{name}|({', '.join(parameters)})"


def _is_written(parameters: Sequence[str] | None) -> bool:
    """A function or lambda of the source: comprehensions and annotations have parameters such as `.0`."""
    return parameters is not None and not any(name.startswith(".") for name in parameters)


def _counts(**numbers: int) -> list[str]:
    return [f"||{subject}|{number}" for subject, number in numbers.items()]


def _outcome(accepted: bool, rejected: bool) -> list[str] | None:
    """What a parser says of the file; None if it gave up for a reason of its own."""
    if not (accepted or rejected):
        return None
    return ["|||accepts" if accepted else "|||rejects"]


def _by_match(capture: tuple[Any, ...]) -> tuple[Any, ...]:
    """Null comes first."""
    return tuple((cell is not None, cell) for cell in capture)


def _matched(captures: Sequence[tuple[Any, ...]], place: int) -> str | None:
    """The claim of the match whose last capture this is."""
    pack, match, capture, kind, _, begin, _ = captures[place]

    def before(steps: int, name: str) -> tuple[Any, ...] | None:
        found = captures[place - steps] if place >= steps else None
        return found if found is not None and (found[1], found[2]) == (match, name) else None

    if pack == "defs" and kind == "lambda":
        return None if begin is None else f"{begin}|{begin}||lambda"
    if capture != "name":
        return None
    if pack == "defs":
        definition = captures[place - 1] if place else None
        is_class = definition is not None and definition[3] == "class_definition"
        start = None if definition is None else definition[5]
        return _definition("class" if is_class else "function", _text(captures[place]), start)
    module, alias = before(1, "module"), before(1, "alias") or before(2, "alias")
    return _import(_text(module), _text(captures[place]), _text(alias), begin)


def _text(capture: tuple[Any, ...] | None) -> str | None:
    """The text of a capture without what may stand between its parts; if it was cut, nothing we know."""
    if capture is None:
        return None
    *_, text, begin, end = capture
    is_whole = text is not None and len(text.encode()) == end - begin
    return BETWEEN.sub("", text) if is_whole else CUT
