"""Classify names outside of the repository: classes, constructors, possible attributes.

    pathlib.Path           looks like a class, so a call returns an instance
    builtins.str           has `join`, and no `walk`
    builtins.len           is a function, so it has no `close`
    datetime.date.fromisoformat    looks like a constructor of its class

What builtins and classes of the standard library have is data (`builtins.txt`, `standard_library.txt`), the
same under every interpreter; so are containers and records (`known_names.txt`). Everything else is judged by
its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from msgspec import Struct

FOLDER = files("codeanatomy.relate.values")
# Classes with lower-case names of which no table lists what they have.
LOWER_CASE_CLASSES = frozenset({"array.array", "itertools.count", "itertools.cycle", "itertools.repeat"})
# Bases that add no members.
WITHOUT_MEMBERS = frozenset({"typing.Generic", "typing.Protocol", "typing_extensions.Protocol"})
# Of their kinds of objects, functions and modules, any may have more.
OPEN_PREFIXES = ("types.", "functools.")


class KnownClass(Struct, frozen=True):
    """A class of a table: its bases, what it adds to them, and whether it makes attributes on access."""

    bases: tuple[str, ...]
    own: tuple[str, ...]
    is_open: bool


def read_table(text: str) -> Iterator[tuple[str, list[str]]]:
    r"""Yield the heads of a table of names, each with the names in the indented lines below it.

    >>> list(read_table("fixture pathlib.Path\n    tmp_path\n# why\ncontainer list\n    a.{b,c} d"))
    [('fixture pathlib.Path', ['tmp_path']), ('container list', ['a.b', 'a.c', 'd'])]
    """
    for block in re.split(r"\n(?=\S)", text):
        head, *rows = block.splitlines()
        if not head.startswith("#"):
            yield head, [name for row in rows for pattern in row.split() for name in _expand(pattern)]


def _expand(pattern: str) -> list[str]:
    """Return the names that a pattern with alternatives in braces stands for."""
    head, brace, rest = pattern.partition("{")
    alternatives, _, tail = rest.partition("}")
    if not brace:
        return [pattern]
    return [name for each in alternatives.split(",") for name in _expand(head + each + tail)]


def _read_known() -> dict[str, dict[str, str]]:
    """Return what `known_names.txt` states: by fact and name."""
    known: dict[str, dict[str, str]] = {}
    for head, names in read_table(FOLDER.joinpath("known_names.txt").read_text(encoding="utf-8")):
        fact, value = head.split()
        known.setdefault(fact, {}).update(dict.fromkeys(names, value))
    return known


def _read_classes() -> tuple[dict[str, KnownClass], dict[str, str]]:
    """Return the classes of the tables, and the class of each builtin that is none."""
    classes: dict[str, KnownClass] = {}
    instances: dict[str, str] = {}
    for name in ("builtins.txt", "standard_library.txt"):
        for line in FOLDER.joinpath(name).read_text(encoding="utf-8").splitlines():
            head, _, tail = line.partition(")")
            cls, opening, bases = head.partition("(")
            if line.startswith("#"):
                continue
            if opening:
                added = tail.removeprefix("*").split()
                classes[cls] = KnownClass(tuple(bases.split()), tuple(added), tail.startswith("*"))
            else:
                names, _, cls = line.partition(": ")
                instances |= dict.fromkeys(names.split(), cls)
    return classes, instances


# By kind of fact and name: containers, records, fixtures.
KNOWN = _read_known()
# Classes by name, and the class of each builtin function or constant.
CLASSES, CLASS_OF_BUILTIN = _read_classes()
BUILTINS = frozenset(
    name.removeprefix("builtins.") for name in (*CLASSES, *CLASS_OF_BUILTIN) if name.startswith("builtins.")
)


@cache
def ancestors(name: str) -> tuple[str, ...]:
    """Return a known class and its ancestors, nearest first; nothing for other names.

    >>> ancestors("builtins.KeyError")[:2], ancestors("requests.Session")
    (('builtins.KeyError', 'builtins.LookupError'), ())
    """
    order = [name] if name in CLASSES else []
    for each in order:
        order += [base for base in CLASSES[each].bases if base not in order and base in CLASSES]
    return tuple(order)


@cache
def attributes(name: str) -> dict[str, str] | None:
    """Return the class that defines each attribute of a known class; None if it may have others."""
    order = ancestors(name)
    known = [CLASSES[each] for each in order]
    if not order or any(each.is_open or not set(each.bases) <= CLASSES.keys() for each in known):
        return None
    return {each: cls for cls in reversed(order) for each in CLASSES[cls].own}


def is_class_like(name: str) -> bool:
    """Whether an external name looks like a class.

    >>> [is_class_like(name) for name in ("pathlib.Path", "os.getcwd", "builtins.int", "a.MAX")]
    [True, False, True, False]
    """
    owner, _, last = name.rpartition(".")
    if owner == "builtins" or name in CLASSES:
        return name in CLASSES
    if name in LOWER_CASE_CLASSES:
        return True
    bare = last.lstrip("_")
    return bare[:1].isupper() and (not bare.isupper() or len(bare) == 1)


def is_subclass(name: str, other: object) -> bool:
    """Whether a known class is a subclass of another.

    >>> is_subclass("builtins.KeyError", "builtins.Exception"), is_subclass("os.error", "builtins.Exception")
    (True, False)
    """
    return other in ancestors(name)


def makes_instance(name: str) -> bool:
    """Whether an external name looks like an alternative constructor (`from...`) of its class.

    >>> makes_instance("datetime.date.fromordinal"), makes_instance("pathlib.Path.exists")
    (True, False)
    """
    owner, _, last = name.rpartition(".")
    return last.startswith("from") and is_class_like(owner)


def may_have(owner: str, name: str) -> bool:
    """Whether an external object may have an attribute; False only where the tables show that it has not.

    A class has its own attributes and those of `type`.

    >>> may_have("builtins.str", "join"), may_have("builtins.str", "walk"), may_have("os", "walk")
    (True, False, True)
    >>> may_have("builtins.len", "__name__"), may_have("builtins.len", "close")
    (True, False)
    >>> may_have("threading.Thread", "_target"), may_have("typing.Mapping", "crawler")
    (True, False)
    """
    if owner in CLASS_OF_BUILTIN:
        return name in (attributes(CLASS_OF_BUILTIN[owner]) or ())
    if owner.startswith(OPEN_PREFIXES):
        return True
    known = attributes("builtins.object" if owner in WITHOUT_MEMBERS else owner)
    if known is None or name in known:
        return True
    return owner not in (*WITHOUT_MEMBERS, "builtins.object") and name in (attributes("builtins.type") or ())


def is_made_on_access(owner: str, name: str) -> bool:
    """Whether a known class has an attribute only because it makes any attribute that is read.

    >>> is_made_on_access("unittest.mock.Mock", "walk"), is_made_on_access("pathlib.Path", "walk")
    (True, False)
    """
    known = [CLASSES[each] for each in ancestors(owner)]
    return any(each.is_open for each in known) and all(name not in each.own for each in known)


def builtin_owner(cls: str, name: str) -> str | None:
    """Return the class that defines an attribute of the instances of a builtin class; None if they have none.

    >>> builtin_owner("types.FunctionType", "__name__"), builtin_owner("builtins.int", "__class__")
    ('types.FunctionType', 'builtins.object')
    """
    return (attributes(cls) or {}).get(name)
