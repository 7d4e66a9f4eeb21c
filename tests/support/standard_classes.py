"""Write `relate/values/standard_library.txt`: what classes of the standard library have, by CPython itself.

    python -m support.standard_classes python3.11 python3.12 python3.13     # writes the file anew

Each interpreter reports its classes: their own attributes, those that their methods set on `self`, those of
their metaclass, and whether they make attributes on access. The file has what any of them reports, so that
rows do not depend on the interpreter of a build.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import inspect
import io
import json
import pkgutil
import re
import subprocess
import sys
import textwrap
import tokenize
import typing
import warnings
from collections.abc import Iterator
from pathlib import Path

FILE = "src/codeanatomy/relate/values/standard_library.txt"
HEADER = """\
# CLASS(BASES) ATTRIBUTES: classes of the standard library, and the attributes that they add to their bases.
# CLASS(BASES)*: one that may have any. Reported by CPython 3.11 to 3.13: tests/support/standard_classes.py.
"""
PACKAGES = """
abc argparse ast asyncio bdb bz2 calendar cmd code codecs collections concurrent configparser contextlib csv
dataclasses datetime decimal email enum fractions gettext graphlib gzip html http inspect io ipaddress json
logging lzma numbers optparse pathlib pickle pprint queue random re sched selectors shelve smtplib socket
socketserver string subprocess tarfile tempfile textwrap threading tokenize traceback typing unittest urllib
uuid warnings weakref wsgiref xml xmlrpc zipfile
"""
# What every class has, or only its definition; and what CPython adds while a program runs.
NOT_LISTED = """
    __module__ __doc__ __dict__ __weakref__ __slots__ __annotations__ __static_attributes__ __firstlineno__
    __abstractmethods__ _abc_impl __parameters__ __orig_bases__ __match_args__ __hash__ __dataclass_fields__
    __dataclass_params__ _is_protocol __annotations_cache__
"""
LEFT_OUT = frozenset(NOT_LISTED.split())
# Methods of `abc.ABCMeta` for its own use.
ABC = re.compile(r"_abc_|_dump_|__(instance|subclass)check__")
# Attributes of a class, without those of its bases; its bases; whether it may have any attribute.
Report = dict[str, tuple[list[str], list[str], bool]]


def modules() -> Iterator[str]:
    """Yield the public modules of the packages."""
    for package in PACKAGES.split():
        yield package
        path = getattr(importlib.import_module(package), "__path__", ())
        for info in pkgutil.walk_packages(path, f"{package}."):
            if not any(part.startswith("_") or part in ("test", "tests") for part in info.name.split(".")):
                yield info.name


def own_attributes(cls: type) -> tuple[set[str], bool]:
    """Return what a class adds to its bases, and whether it makes attributes on access."""
    own = set(vars(cls))
    for name in ("__annotations__", "__static_attributes__"):
        own.update(each for each in vars(cls).get(name, ()) if isinstance(vars(cls)[name], dict | tuple))
    # Classes in C have `__getattribute__`, which does nothing else than that of object.
    is_open = "__getattr__" in own or inspect.isfunction(vars(cls).get("__getattribute__"))
    for each in type(cls).__mro__:
        own.update(name for name in (vars(each) if each not in (type, object) else ()) if not ABC.match(name))
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        return own, is_open
    for method in ast.walk(tree):
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) or not method.args.args:
            continue
        first = method.args.args[0].arg
        for node in ast.walk(method):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr, ctx=ast.Store()) if name == first:
                    own.add(attr)
                case ast.Attribute(value=ast.Name(id=name), attr="__dict__") if name == first:
                    is_open = True
                case ast.Call(func=ast.Name(id="setattr" | "vars"), args=[ast.Name(id=name), *_]) if (
                    name == first
                ):
                    is_open = True
    return own, is_open


def report() -> Report:
    """Return the classes of the standard library by each of their public names."""
    found: list[tuple[str, type]] = []
    for module in modules():
        with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
            namespace = vars(importlib.import_module(module))
            found += [
                (f"{module}.{name}", value)
                for name, value in namespace.items()
                if isinstance(value, type) and not name.startswith("_") and value.__module__ != "builtins"
            ]
    # The name by which a class is known best: where it is defined, then the shortest.
    known = {value: f"builtins.{name}" for name, value in vars(builtins).items() if isinstance(value, type)}
    for name, cls in sorted(found, key=lambda each: (each[0] != path_of(each[1]), len(each[0]), each[0])):
        known.setdefault(cls, name)
    result: Report = {}

    def add(cls: type) -> str:
        name = known.setdefault(cls, path_of(cls))
        if name not in result and not name.startswith("builtins."):
            result[name] = ([], [], False)
            own, is_open = own_attributes(cls)
            result[name] = ([add(base) for base in cls.__bases__], sorted(own - LEFT_OUT), is_open)
        return name

    aliases = [(f"typing.{name}", getattr(value, "__origin__", None)) for name, value in vars(typing).items()]
    for name, cls in (*found, *((name, cls) for name, cls in aliases if cls in known and "._" not in name)):
        if (best := add(cls)) != name:
            result.setdefault(name, ([best], [], False))
    return result


def path_of(cls: type) -> str:
    """Return the name under which a class was defined."""
    return f"{cls.__module__}.{cls.__qualname__}"


def merged_lines(reports: list[Report]) -> Iterator[str]:
    """Yield a line per class of any report."""
    for name in sorted(set().union(*reports)):
        rows = [each[name] for each in reports if name in each]
        bases = dict.fromkeys(base for row in rows for base in row[0])
        mark = "*" if any(row[2] for row in rows) else ""
        own = sorted({attribute for row in rows for attribute in row[1] if not mark})
        yield " ".join((f"{name}({' '.join(bases)}){mark}", *own))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if interpreters := sys.argv[1:]:
        texts = [subprocess.check_output([each, __file__], text=True) for each in interpreters]
        Path(FILE).write_text(HEADER + "\n".join(merged_lines([*map(json.loads, texts)])) + "\n", "utf-8")
    else:
        json.dump(report(), sys.stdout)
