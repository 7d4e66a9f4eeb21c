"""Classify names outside of the repository: classes, constructors, possible attributes.

    pathlib.Path           looks like a class, so a call returns an instance
    builtins.str           has `join`, and no `walk`
    datetime.date.fromisoformat    looks like a constructor of its class

Only builtins are inspected, everything else is judged by its spelling. Tests: the examples here.
"""

from __future__ import annotations

import builtins

BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_")) | {
    "__import__",
    "__build_class__",
}
# Classes of the standard library with lower-case names.
LOWER_CASE_CLASSES = frozenset(
    {
        *("datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "datetime.timezone"),
        *("collections.deque", "array.array", "itertools.count", "itertools.cycle", "itertools.repeat"),
        *("threading.local", "weakref.ref", "weakref.finalize", "socket.socket", "operator.itemgetter"),
    }
)

# Bases that add no members.
WITHOUT_MEMBERS = frozenset(
    {"abc.ABC", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol", "builtins.object"}
)


def is_class_like(name: str) -> bool:
    """Whether an external name looks like a class.

    >>> [is_class_like(name) for name in ("pathlib.Path", "os.getcwd", "builtins.int", "a.MAX")]
    [True, False, True, False]
    """
    owner, _, last = name.rpartition(".")
    if owner == "builtins":
        return isinstance(getattr(builtins, last, None), type)
    if name in LOWER_CASE_CLASSES:
        return True
    bare = last.lstrip("_")
    return bare[:1].isupper() and (not bare.isupper() or len(bare) == 1)


def is_subclass(name: str, other: object) -> bool:
    """Whether a builtin class is a subclass of another.

    >>> is_subclass("builtins.KeyError", "builtins.Exception"), is_subclass("os.error", "builtins.Exception")
    (True, False)
    """
    classes = [getattr(builtins, str(each).removeprefix("builtins."), None) for each in (name, other)]
    cls, base = classes
    return isinstance(cls, type) and isinstance(base, type) and issubclass(cls, base)


def makes_instance(name: str) -> bool:
    """Whether an external name looks like an alternative constructor (`from...`) of its class.

    >>> makes_instance("datetime.date.fromordinal"), makes_instance("pathlib.Path.exists")
    (True, False)
    """
    owner, _, last = name.rpartition(".")
    return last.startswith("from") and is_class_like(owner)


def may_have(owner: str, name: str) -> bool:
    """Whether an external object may have an attribute; False only where builtins show that it has not.

    >>> may_have("builtins.str", "join"), may_have("builtins.str", "walk"), may_have("os", "walk")
    (True, False, True)
    """
    if owner in WITHOUT_MEMBERS:
        return hasattr(object, name)
    module, _, rest = owner.partition(".")
    if module != "builtins" or "." in rest or not isinstance(cls := getattr(builtins, rest, None), type):
        return True
    return hasattr(cls, name)
