r"""Generate small repositories that are hard to analyse file by file, and scripts of edits, by a seed.

    tree = repository(seed=7)                      # {"core/__init__.py": b"...", ...}
    write_tree(folder, tree)
    for edit in script(seed=7, steps=100):         # over repository(7)
        tree = edit.apply(tree)                    # a new tree; edit.name is for example "remove_base"
        write_tree(folder, tree, edit.writes)      # a touched file is written although its bytes are equal

An edit is one of `KINDS` and what it does to a tree: the bytes of the files it writes, None for those that
go. The kinds look at the text as Python does, so that a script can be made for any tree, that of a real
package too: `script(0, 100, read_tree(folder))`. The first steps go once through all kinds in an order of
their own, where a kind that finds nothing to do waits for its turn; then kinds are drawn by weight.

Every Python file compiles, after every edit, but for those that `meant_to_parse` denies: broken on purpose,
garbage, Python 2. What a repository is made of are the snippets of `SNIPPETS`, each in one of its modules:

    $F  a function of another module, imported somehow    $f  a function of this module
    $C  a class of another module, likewise               $c  a class of this module
    $M  the name of another module                        $w  the name of a method
    $S  a name of another module, by a star import        $n  a number that no other snippet has
    $i  a digit

Tests: `tests/unit/pipeline/test_edits.py`.
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import time
import tokenize
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePosixPath
from random import Random
from textwrap import dedent, indent
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Tree: TypeAlias = dict[str, bytes]
Writes: TypeAlias = Mapping[str, bytes | None]
Change: TypeAlias = Callable[[Tree, Random], Writes | None]
Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

BROKEN = b"def broken(:  # on purpose"
GARBAGE = b"\xff\xfe\x00garbage\x80\x81\n"
PYTHON_2 = b'print "old", '
BOM = b"\xef\xbb\xbf"
COOKIE = "# -*- coding: latin-1 -*-"
FEWEST = 8  # With fewer modules nothing is deleted.

PACKAGES = ("core", "app", "store", "net", "model", "tools")
STEMS = ("api", "shapes", "jobs", "views", "events", "cache", "rules", "text", "graphs", "users", "money")
FUNCTIONS = ("load", "save", "make", "check", "send", "start", "stop", "find", "merge", "wrap")
CLASSES = ("Base", "Node", "Task", "Item", "Store", "Client", "View", "Event")
METHODS = ("run", "close", "load", "visit", "update")
SNIPPETS = {
    "override and super": """
        class Over$n($C1):
            def $w1(self, value=$i1):
                return super().$w1(value)
        Over$n().$w1($f1)
    """,
    "mixin": """
        class Mixin$n:
            def $w1(self, *values):
                return self.$w2(*values)
        class Mixed$n(Mixin$n, $C1):
            pass
        Mixed$n().$w1()
    """,
    "property": """
        class Owner$n($c1):
            @property
            def part(self):
                return $C1()
            @part.setter
            def part(self, value):
                self._part = value
        Owner$n().part.$w1()
        Owner$n().part = $C2()
    """,
    "decorator of another module": """
        @$F1
        def decorated_$n(value):
            return value.$w1()
        decorated_$n($C1())
    """,
    "decorator": """
        def counted_$n(function):
            calls = 0
            @functools.wraps(function)
            def inner(*args, **options):
                nonlocal calls
                calls += 1
                return function(*args, **options)
            return inner
        @counted_$n
        def counting_$n():
            return $F1($i1)
        counting_$n().$w1()
    """,
    "function that returns a function": """
        def choose_$n(flag):
            if flag:
                return $F1
            return $F2
        choose_$n($i1)($f1)
    """,
    "function that returns a class": """
        def factory_$n():
            return $C1
        factory_$n()().$w1()
    """,
    "callback": """
        def apply_$n(callback, *args):
            return callback(*args)
        apply_$n($F1, $i1)
        $F2($f1, callback=apply_$n)
        $F3(callback=lambda value: value.$w1())
    """,
    "attribute of another module": """
        import $M1
        $M1.hook = $f1
        $M1.hook($i1)
        $M1.LIMIT = $C1()
        $M1.LIMIT.$w1()
    """,
    "attribute of another's instance": """
        thing_$n = $C1()
        thing_$n.extra = $f1
        thing_$n.extra($i1)
        $C1.$w1 = $F1
        $C2().extra()
    """,
    "unresolved": """
        import missing_$i1
        from missing_package.part_$i2 import gone_$i2 as absent_$n
        from $M1 import not_there_$i1
        missing_$i1.start()
        absent_$n(not_there_$i1())
        undefined_$i1($f1).$w1()
    """,
    "conditional import": """
        if sys.platform == "win32":
            from $M1 import $w1 as chosen_$n
        elif typing.TYPE_CHECKING:
            import $M2 as chosen_$n
        else:
            chosen_$n = $F1
        chosen_$n($i1)
    """,
    "import that may fail": """
        try:
            from $M1 import fast_$i1 as quick_$n
        except ImportError:
            try:
                import missing_fast_$i1 as quick_$n
            except ImportError:
                quick_$n = $F1
        quick_$n()
    """,
    "async": """
        async def fetch_$n(session: $C1):
            async with session as opened:
                async for row in opened.$w1():
                    yield await $F1(row)
        async def gather_$n():
            return [row async for row in fetch_$n($C1()) if await $f1(row)]
    """,
    "match": """
        def dispatch_$n(value):
            match value:
                case $C1(part=found) | [$C1() as found, *_]:
                    return found.$w1()
                case {"key": $i1, **rest}:
                    return $F1(rest)
                case str() as text if $f1(text):
                    return text
    """,
    "dataclass": """
        @dataclasses.dataclass
        class Record$n:
            owner: $C1
            size: int = $i1
            items: list[$C2] = dataclasses.field(default_factory=list)
            def $w1(self):
                return self.owner.$w1()
        Record$n($C1(), items=[$C2()]).items[0].$w2()
    """,
    "comprehension": """
        names_$n = [name for name in (other for other in $F1($i1)) if (last_$n := name)]
        table_$n = {key: $C1() for key in names_$n}
        table_$n["$w1"].$w1()
        [call() for call in ($f1, $F2)]
    """,
    "global": """
        state_$n = None
        def set_$n(value=$i1):
            global state_$n, late_$n
            state_$n = $C1()
            late_$n = $F1
        def get_$n():
            return late_$n(state_$n.$w1())
    """,
    "annotations": """
        def typed_$n(first: $C1, second: "$C1 | None" = None, *rest: list[$C2]) -> $C2:
            held: $C2 = first.$w1(second)
            return held
        typed_$n($C1()).$w2()
    """,
    "not ASCII": """
        def größe_$n(wert=$i1, ñ="ü"):
            return $F1(wert, ñ)
        class Ünï$n($C1):
            überlauf = größe_$n
        Ünï$n().überlauf("😀").$w1()
    """,
    "star import": """
        $S1($i1)
        $S2.$w1($S3)
        def starred_$n():
            return $S2
    """,
    "circular import": """
        import $M1
        def later_$n():
            from $M1 import $f1 as borrowed
            from $M2 import Base
            return borrowed(Base())
    """,
    "table of functions": """
        HANDLERS_$n = {"a": $F1, "b": $f1, **{"c": $C1}}
        def handle_$n(key):
            return HANDLERS_$n[key]($i1)
        functools.partial(handle_$n, "a")()
    """,
    "by name": """
        import $M1
        getattr($M1, "load")($i1)
        importlib.import_module("$M2").$w1()
        def __getattr__(name):
            return $F1
    """,
    "class machinery": """
        class Meta$n(type):
            def __call__(cls, *args):
                return super().__call__(*args)
        class Made$n($C1, metaclass=Meta$n):
            kind = $i1
            @classmethod
            def build(cls):
                return cls()
            @staticmethod
            def plain(value):
                return $F1(value)
            def __enter__(self):
                return self.build()
            def __call__(self, value):
                return self.$w1(value)
        Made$n.build()(Made$n.plain($i1))
        with Made$n() as opened_$n:
            opened_$n.$w1()
    """,
    "exceptions": """
        class Problem$n(Exception):
            cause = $C1
        def attempt_$n():
            try:
                return $F1()
            except (Problem$n, ValueError) as problem:
                raise problem.cause() from problem
            finally:
                $f1($i1)
    """,
    "defined twice": """
        if $f1($i1):
            def either_$n(value):
                return $F1(value)
        else:
            either_$n = $C1
        either_$n($i1).$w1()
        def either_$n(): ...
        either_$n()
    """,
    "generator": """
        def walk_$n(node):
            sent = yield node
            yield from $F1(sent)
            for one in walk_$n(node.$w1()):
                yield one
        for found_$n in walk_$n($C1()):
            found_$n.$w2()
    """,
    "generic": """
        T_$n = typing.TypeVar("T_$n", bound="$C1")
        class Box$n(typing.Generic[T_$n]):
            def __init__(self, content: T_$n) -> None:
                self.content = content
            def open(self) -> T_$n:
                return self.content
        Box$n($C1()).open().$w1()
    """,
    "all of its own": """
        __all__ = ["$f1", "$c1", "no_such_name"]
    """,
    "all that is computed": """
        import $M1
        __all__ = [name for name in dir() if not name.startswith("_")]
        __all__ += $M1.__all__
        __all__.extend(["$f1"])
    """,
}
HEAD = "import dataclasses\nimport functools\nimport importlib\nimport sys\nimport typing"
STRANGE = {
    "empty.py": b"",
    "old.py": b"import os\n" + PYTHON_2 + b"os.name\nexec 'x = 1'\n",
    "broken.py": b"from empty import *\n" + BROKEN + b"\n    return load(\n",
    "stray.pyi": b"def load(value: int) -> str: ...\nclass Base: ...\n",
    "tool": b"#!/usr/bin/env python3\nimport empty\n\nempty.load()\n",
    "README.md": b"# A repository\n",
    "data/table.json": b'{"a": [1, 2]}\n',
    "setup.cfg": b"[metadata]\nname = thing\n",
    ".gitignore": b"*.log\n__pycache__/\n",
}


class Made(NamedTuple):
    """A module of a repository that is being written, and the names that others may import."""

    path: str
    functions: tuple[str, ...]
    classes: tuple[str, ...]


class Writer:
    """Writes the modules of a repository; what is chosen is drawn."""

    def __init__(self, rng: Random, modules: Sequence[Made]) -> None:
        self.rng, self.modules, self.number = rng, modules, 0

    def module(self, own: Made, snippets: Sequence[str]) -> str:
        """A module: definitions that the others look for, and the snippets."""
        imports: list[str] = []
        bodies = [self.function(name) for name in own.functions] + [self.class_(name) for name in own.classes]
        bodies += [SNIPPETS[name] for name in snippets]
        made = "".join(self.filled(own, dedent(body), imports) for body in bodies)
        return "\n".join((HEAD, *dict.fromkeys(imports), "", f"LIMIT = {self.rng.randrange(10)}", made))

    def function(self, name: str) -> str:
        result = self.rng.choice(
            ("value", "$F1(value)", "$C1", "$C1()", "callback(value)", "$f1", "[value, $F1]")
        )
        return f"\ndef {name}(value=$i1, callback=None):\n    return {result}\n"

    def class_(self, name: str) -> str:
        base = self.rng.choice(("", "($C1)", "($C1)", "($C1, $C2)"))
        made = f"\nclass {name}{base}:\n    def __init__(self, value=None):\n        self.value = value\n"
        for method in self.rng.sample(METHODS, 2):
            result = self.rng.choice(
                ("self.value", "self.$w1(value)", "$F1(self)", "$C3(value).$w1()", "self.extra()")
            )
            made += f"    def {method}(self, value=$i1):\n        return {result}\n"
        return made

    def filled(self, own: Made, text: str, imports: list[str]) -> str:
        """A snippet with names for its signs; a sign with a number means the same each time."""
        self.number += 1
        known = {"n": str(self.number)}

        def name(found: re.Match[str]) -> str:
            sign = found[1]
            if sign not in known:
                known[sign] = self.meant(sign[0], own, imports)
            return known[sign]

        return re.sub(r"\$(n|[FCMSfcwi]\d?)", name, text)

    def meant(self, sign: str, own: Made, imports: list[str]) -> str:
        others = [module for module in self.modules if module != own]
        other = self.rng.choice(others)
        match sign:
            case "F":
                return self.imported(own, other, self.rng.choice(other.functions), imports)
            case "C":
                return self.imported(own, other, self.rng.choice(other.classes), imports)
            case "M":
                return dotted(other.path)
            case "S":
                imports.append(f"from {dotted(other.path)} import *")
                own_names = {*own.functions, *own.classes}
                names = [name for name in (*other.functions, *other.classes) if name not in own_names]
                return self.rng.choice(names or other.functions)
            case "w":
                return self.rng.choice(METHODS)
            case "i":
                return str(self.rng.randrange(10))
        return self.rng.choice(own.functions if sign == "f" else own.classes)

    def imported(self, own: Made, other: Made, name: str, imports: list[str]) -> str:
        """An expression for a name of another module; what it needs is added to the imports."""
        statement, expression = import_of(own.path, other.path, name, self.rng)
        imports.append(statement)
        return expression


def repository(seed: int, files: int = 12) -> Tree:
    """A repository with so many modules in packages; `__init__`s, stubs and strange files come on top."""
    rng = Random(f"repository {seed}")
    first, second, third = rng.sample(PACKAGES, 3)
    packages = (f"{first}/", f"{first}/deep/", f"{second}/")
    folders = ("", *packages, f"{third}/")  # The last has no `__init__`: a namespace.
    modules = []
    for number in range(files):
        stem = rng.choice(STEMS) + (str(number) if number >= len(STEMS) // 2 else "")
        path = f"{folders[number % len(folders)]}{stem}.py"
        # Names are scarce on purpose: the same ones are found in many modules.
        modules.append(Made(path, tuple(rng.sample(FUNCTIONS, 3)), tuple(rng.sample(CLASSES, 2))))
    modules = list({module.path: module for module in modules}.values())
    writer, names = Writer(rng, modules), rng.sample(sorted(SNIPPETS), len(SNIPPETS))
    texts = {one.path: writer.module(one, names[i :: len(modules)]) for i, one in enumerate(modules)}
    for folder in packages:
        texts[f"{folder}__init__.py"] = _init(folder, modules, rng)
    # A chain of star imports, from the top down to the modules of a package.
    texts["everything.py"] = f"from {first} import *\nfrom {second} import *\nload(check)\nBase().run()\n"
    texts["user.py"] = "from everything import *\nload(save)\nBase().run()\nNode().visit(Task)\n"
    stubbed = rng.choice(modules)
    texts[stubbed.path + "i"] = _stub(stubbed.functions, stubbed.classes, rng)
    return dict(sorted({**STRANGE, **{path: text.encode() for path, text in texts.items()}}.items()))


def _init(folder: str, modules: Sequence[Made], rng: Random) -> str:
    """The `__init__` of a package: it gives names of its modules on."""
    lines, given = [], list[str]()
    for one in modules:
        stem, below = dotted(one.path.removeprefix(folder)), f"{folder}deep/"
        if one.path.rpartition("/")[0] + "/" not in (folder, below):
            continue
        names = rng.sample([*one.functions, *one.classes], 2)
        given += names
        lines += [f"from .{stem} import {rng.choice(('*', ', '.join(names)))}"]
        lines += [f"from . import {stem}"] if "." not in stem else []
    known = [f"__all__ = {given[:1]}", f"__all__ += {given[1:]}"]
    lines += rng.choice(([], [f"__all__ = {[*given, 'wrong']}"], known))
    return "\n".join(lines) + "\n"


def _stub(functions: Sequence[str], classes: Sequence[str], rng: Random) -> str:
    kinds = ("int", "str")
    lines = [f"def {name}(value: int = ..., *rest: str) -> {rng.choice(kinds)}: ..." for name in functions]
    lines += [f"class {name}:\n    def run(self) -> {name}: ..." for name in classes]
    return "\n".join(lines) + "\n"


def import_of(path: str, other: str, name: str, rng: Random) -> tuple[str, str]:
    """A way to import a name of another module, and the expression that then means it."""
    module, alias = dotted(other), f"{name.lower()}_{rng.randrange(100)}"
    parts, target = PurePosixPath(path).parent.parts, module.split(".")
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(parts, target, strict=False))))
    near = "." * (len(parts) - shared + 1) + ".".join(target[shared:]) if shared else module
    above, _, stem = module.rpartition(".")
    ways = [
        (f"from {module} import {name}", name),
        (f"from {near} import {name}", name),
        (f"from {near} import {name} as {alias}", alias),
        (f"import {module}", f"{module}.{name}"),
        (f"import {module} as {alias}", f"{alias}.{name}"),
    ]
    if above:
        folder = near.removesuffix(stem) if near.endswith(f"..{stem}") or near == f".{stem}" else above
        ways += [
            (f"from {folder} import {stem}", f"{stem}.{name}"),
            (f"from {above} import {name}", name),
            (f"from {above} import {stem} as {alias}", f"{alias}.{name}"),
        ]
    return rng.choice(ways)


class Edit(NamedTuple):
    """One step of a script."""

    name: str
    # The bytes of a file after the edit; None where it is deleted, equal ones where it is only touched.
    writes: Writes
    # The kinds that `several` is made of.
    parts: tuple[str, ...] = ()

    def apply(self, tree: Tree) -> Tree:
        after = {path: content for path, content in tree.items() if path not in self.writes}
        after |= {path: content for path, content in self.writes.items() if content is not None}
        return dict(sorted(after.items()))


def script(seed: int, steps: int, start: Tree | None = None) -> Iterator[Edit]:
    """Edits of `repository(seed)`, or of another tree, each made for what the ones before it leave."""
    rng = Random(f"script {seed}")
    tree = repository(seed) if start is None else start
    earlier = [tree]
    waiting = rng.sample(sorted(KINDS), len(KINDS))
    for _ in range(steps):
        edit = _next(tree, earlier, waiting, rng)
        tree = edit.apply(tree)
        earlier.append(tree)
        yield edit


def write_tree(folder: Path, tree: Tree, touch: Collection[str] = ()) -> None:
    """Make a folder hold a tree and nothing else: writes what differs, and gives `touch` a new time."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):  # What is in a folder comes before it.
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in tree:
            path.unlink()
    for name, content in tree.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        elif name in touch:
            later = max(time.time_ns(), path.stat().st_mtime_ns + 1)
            os.utime(path, ns=(later, later))


def read_tree(folder: Path) -> Tree:
    """The files below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def meant_to_parse(path: str, content: bytes) -> bool:
    """Whether a file is Python that compiles."""
    refused = content.startswith(GARBAGE) or BROKEN in content or PYTHON_2 in content
    return path.endswith((".py", ".pyi")) and not refused


def _next(tree: Tree, earlier: Sequence[Tree], waiting: list[str], rng: Random) -> Edit:
    """The first waiting kind that has something to do, or what makes room for it; later one by weight."""
    for name in (*waiting, *(ROOM_FOR[name] for name in waiting if name in ROOM_FOR)):
        if edit := _edit(name, tree, earlier, rng):
            if name in waiting:
                waiting.remove(name)
            return edit
    while True:
        (name,) = rng.choices(list(KINDS), list(KINDS.values()))
        if edit := _edit(name, tree, earlier, rng):
            return edit


def _edit(name: str, tree: Tree, earlier: Sequence[Tree], rng: Random) -> Edit | None:
    if name == "several":
        return _several(tree, rng)
    if name == "undo":
        others = [one for one in earlier[-10:] if one != tree]
        return Edit(name, _difference(tree, rng.choice(others))) if others else None
    _, change = CHANGES[name]
    writes = _attempt(change, tree, rng)
    if not writes or (name != "touch" and all(tree.get(path) == new for path, new in writes.items())):
        return None
    return Edit(name, writes)


class Nowhere(Exception):
    """A kind finds no place in a tree."""


def one_of(rng: Random, options: Sequence[T]) -> T:
    if not options:
        raise Nowhere
    return rng.choice(options)


def _attempt(change: Callable[..., Writes | None], *arguments: object) -> Writes | None:
    try:
        return change(*arguments)
    except Nowhere:
        return None


def _several(tree: Tree, rng: Random) -> Edit | None:
    """Two to six edits in one step, each made for what the one before it leaves."""
    wanted, after, parts = rng.randint(2, 6), tree, list[str]()
    names = sorted(CHANGES.keys() - {"touch"})
    while len(parts) < wanted:
        if edit := _edit(rng.choice(names), after, (), rng):
            after = edit.apply(after)
            parts.append(edit.name)
    writes = _difference(tree, after)
    return Edit("several", writes, tuple(parts)) if len(writes) > 1 else None


def _difference(before: Tree, after: Tree) -> Writes:
    paths = sorted(before.keys() | after.keys())
    return {path: after.get(path) for path in paths if before.get(path) != after.get(path)}


class Module(NamedTuple):
    """A file that compiles, as lines without their ends, and how to write it again."""

    path: str
    lines: tuple[str, ...]
    parsed: ast.Module
    encoding: str
    newline: str

    @property
    def head(self) -> int:
        """How many lines stand before the place of a new import."""
        place = sum(line.startswith("#") for line in self.lines[:2])
        for node in self.parsed.body:
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if not future and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                return max(place, _first_line(node))
            place = node.end_lineno or place
        return place

    def replaced(self, start: int, end: int, *texts: str, imports: Sequence[str] = ()) -> Writes | None:
        """The file with other lines from `start` to `end`, and new imports; None if that is no Python."""
        head = min(self.head, start)
        lines = [*self.lines[:head], *imports, *self.lines[head:start], *texts, *self.lines[end:]]
        try:
            content = self.newline.join(lines).encode(self.encoding)
        except UnicodeEncodeError:
            return None
        return {self.path: content} if module_of(self.path, content) else None

    def appended(self, *texts: str, imports: Sequence[str] = ()) -> Writes | None:
        """The file with further lines at its end."""
        end = len(self.lines) - (self.lines[-1] == "")
        return self.replaced(end, end, *texts, imports=imports)

    def spliced(self, first: Any, last: Any, text: str, imports: Sequence[str] = ()) -> Writes | None:
        """The file with another text from where one node begins to where another ends."""
        start, end = first.lineno - 1, last.end_lineno - 1
        before = self.lines[start].encode()[: first.col_offset].decode()
        after = self.lines[end].encode()[last.end_col_offset :].decode()
        return self.replaced(start, end + 1, *f"{before}{text}{after}".split("\n"), imports=imports)

    def all_of(self, *kinds: type[Any]) -> list[Any]:
        return [node for node in ast.walk(self.parsed) if isinstance(node, kinds)]

    def indent(self, node: ast.stmt) -> str:
        line = self.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip(" \t"))]


@lru_cache(maxsize=4096)
def module_of(path: str, content: bytes) -> Module | None:
    """A file as an edit sees it; None where it is no Python."""
    if not meant_to_parse(path, content):
        return None
    newline = "\r\n" if b"\r\n" in content else "\r" if b"\r" in content and b"\n" not in content else "\n"
    try:
        plain = content.replace(newline.encode(), b"\n")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(plain).readline)
        text = plain.decode(encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Where it is an error, scripts would differ.
            compile(content, path, "exec", dont_inherit=True)
            parsed = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return Module(path, tuple(text.split("\n")), parsed, encoding, newline)


def dotted(path: str) -> str:
    """The name of a module."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _modules(tree: Tree) -> list[Module]:
    found = [module_of(path, tree[path]) for path in sorted(tree) if path.endswith(".py")]
    return [module for module in found if module is not None]


def _first_line(node: Any) -> int:
    """The index of a statement's first line, that of its decorators."""
    lines: list[int] = [one.lineno for one in (node, *getattr(node, "decorator_list", ()))]
    return min(lines) - 1


def _top(module: Module, *kinds: type[Any]) -> list[Any]:
    return [node for node in module.parsed.body if isinstance(node, kinds or (ast.stmt,))]


def _names(module: Module, *kinds: type[Any]) -> list[str]:
    return [node.name for node in _top(module, *kinds)]


def _reference(tree: Tree, module: Module, rng: Random, *kinds: type[Any]) -> tuple[str, str]:
    """An import and an expression for a function or a class of another module."""
    others = [other for other in _modules(tree) if other != module]
    found = [(other.path, node.name) for other in others for node in _top(other, *kinds)]
    return import_of(module.path, *one_of(rng, found), rng)


def _other(tree: Tree, module: Module, rng: Random) -> str:
    """The name of another module."""
    return one_of(rng, [name for other in _modules(tree) if other != module and (name := dotted(other.path))])


# ---- kinds that change one place of one module ----

Place: TypeAlias = Any
Places: TypeAlias = Callable[[Module], Sequence[Place]]
PlaceChange: TypeAlias = Callable[[Tree, Random, Module, Place], Writes | None]
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
EITHER = (*FUNCTION, ast.ClassDef)
IMPORT = (ast.Import, ast.ImportFrom)


def at(
    places: Places, change: PlaceChange, prefer: Callable[[Tree], Collection[str]] | None = None
) -> Change:
    """A change at one of its places in one of the modules: the first that leads to other bytes.

    Mostly it is made in one of the modules that are preferred, if there are any with a place for it.
    """

    def changed(tree: Tree, rng: Random) -> Writes | None:
        modules = _modules(tree)
        modules = rng.sample(modules, len(modules))
        if prefer and rng.random() < 0.8:
            first = prefer(tree)
            modules.sort(key=lambda module: module.path not in first)
        for module in modules:
            found = places(module)
            for one in rng.sample(found, min(len(found), 20)):
                writes = _attempt(change, tree, rng, module, one)
                if writes and writes != {module.path: tree[module.path]}:
                    return writes
        return None

    return changed


def star_imported(tree: Tree) -> Collection[str]:
    """The modules that others import by a star."""
    return {
        path for module in _modules(tree) for node in stars(module) if (path := _imported(module, node, tree))
    }


def _imported(module: Module, node: ast.ImportFrom, tree: Tree) -> str | None:
    """The file that an import is about."""
    parts = PurePosixPath(module.path).parts
    above = parts[: len(parts) - node.level] if node.level else ()
    return place(".".join((*above, *([node.module] if node.module else ()))), tree)


def whole(module: Module) -> Sequence[Place]:
    return [module]


def functions(module: Module) -> Sequence[Place]:
    return module.all_of(*FUNCTION)


def classes(module: Module) -> Sequence[Place]:
    return module.all_of(ast.ClassDef)


def imports(module: Module) -> Sequence[Place]:
    return [node for node in module.all_of(*IMPORT) if getattr(node, "module", "") != "__future__"]


def plain_imports(module: Module) -> Sequence[Place]:
    return [node for node in imports(module) if node.names[0].name != "*"]


def stars(module: Module) -> Sequence[Place]:
    return [node for node in imports(module) if node.names[0].name == "*"]


def decorators(module: Module) -> Sequence[Place]:
    return [one for node in module.all_of(*EITHER) for one in node.decorator_list]


def defaults(module: Module) -> Sequence[Place]:
    return [one for node in functions(module) for one in node.args.defaults]


def returns(module: Module) -> Sequence[Place]:
    return [node.value for node in module.all_of(ast.Return) if node.value]


def based(module: Module) -> Sequence[Place]:
    return [node for node in classes(module) if node.bases]


def alls(module: Module) -> Sequence[Place]:
    """Assignments to `__all__`."""
    found = _top(module, ast.Assign, ast.AugAssign, ast.AnnAssign)
    return [node for node in found if "__all__" in ast.unparse(node).split("=")[0]]


def constants(module: Module) -> Sequence[Place]:
    """Single digits, names and attributes in functions."""
    inside = [node for function in functions(module) for one in function.body for node in ast.walk(one)]
    read = [node for node in inside if isinstance(getattr(node, "ctx", None), ast.Load)]
    names = [node for node in read if isinstance(node, ast.Name | ast.Attribute)]
    return names + [node for node in inside if isinstance(node, ast.Constant) and node.value in range(10)]


def same_length(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """Another digit for a digit, another name of this length for a name or an attribute."""
    if isinstance(node, ast.Constant):
        return module.spliced(node, node, str(rng.randrange(10))) if type(node.value) is int else None
    if isinstance(node, ast.Attribute):
        return _other_attribute(rng, module, node)
    names = {one.id for one in module.all_of(ast.Name) if len(one.id.encode()) == len(node.id.encode())}
    return module.spliced(node, node, rng.choice(sorted(names)))


def _other_attribute(rng: Random, module: Module, node: Any) -> Writes | None:
    others = [name for name in (*METHODS, *FUNCTIONS) if len(name) == len(node.attr.encode())]
    line, end = node.end_lineno - 1, node.end_col_offset
    raw = module.lines[line].encode()
    new = raw[: end - len(node.attr.encode())] + one_of(rng, others).encode() + raw[end:]
    return module.replaced(line, line + 1, new.decode())


def longer(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """A statement before the last one of a function."""
    last = node.body[-1]
    found = _reference(tree, module, rng, *EITHER)
    if last.lineno == node.lineno:
        return None
    text = rng.choice(("added = {0}(added_before)", "{0}().run()", "if {0}:\n    pass", "print('é', {0})"))
    lines = indent(text.format(found[1]), module.indent(last)).split("\n")
    line = _first_line(last)
    return module.replaced(line, line, *lines, imports=found[:1])


def removed(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """A statement that goes; where a block would be empty, `pass` comes in its place."""
    start, end = _first_line(node), node.end_lineno
    gone = module.replaced(start, end)
    return gone or module.replaced(start, end, f"{module.indent(node)}pass")


def decorator_removed(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    return module.replaced(node.lineno - 1, node.end_lineno)


def renamed_function(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """Another name for a function; its callers keep the old name."""
    line, name = node.lineno - 1, rng.choice((*FUNCTIONS, *METHODS, f"{node.name}_{rng.randrange(100)}"))
    return module.replaced(line, line + 1, re.sub(rf"def\s+{node.name}\b", f"def {name}", module.lines[line]))


def renamed_everywhere(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """Another name for a function or class, wherever a text has the old one."""
    old, new = rf"\b{node.name}\b".encode(), f"{node.name}_{rng.randrange(100)}".encode()
    texts = {one.path: re.sub(old, new, tree[one.path]) for one in _modules(tree) if one.encoding == "utf-8"}
    whole_trees = all(module_of(path, text) for path, text in texts.items())
    return {path: text for path, text in texts.items() if text != tree[path]} if whole_trees else None


def signature(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """One parameter more, or one less."""
    given = ast.parse(ast.unparse(node.args).join(("def f(", "): ...")), mode="exec").body[0]
    assert isinstance(given, ast.FunctionDef)
    args, number = given.args, rng.randrange(100)
    match rng.randrange(4):
        case 0:
            args.args.append(ast.arg(f"extra_{number}"))
            args.defaults.append(ast.Constant(number))
        case 1:
            args.kwonlyargs.append(ast.arg(f"option_{number}"))
            args.kw_defaults.append(ast.Constant(None))
        case 2:
            args.vararg = None if args.vararg else ast.arg(f"more_{number}")
        case 3 if args.args:
            args.args.pop()
            args.defaults = args.defaults[: len(args.args)]
    return _with_arguments(module, node, ast.unparse(args))


def _with_arguments(module: Module, node: Definition, text: str) -> Writes | None:
    """The file with another text between the parentheses of a function's head."""
    source = io.StringIO("\n".join(module.lines[node.lineno - 1 :]))
    depth, start = 0, (0, 0)
    for token in tokenize.generate_tokens(source.readline):
        if token.string in ("(", "[", "{"):
            start = start if depth else token.end
            depth += 1
        elif token.string in (")", "]", "}"):
            depth -= 1
            if not depth:
                line, end = node.lineno - 1 + start[0] - 1, node.lineno - 1 + token.start[0] - 1
                before, after = module.lines[line][: start[1]], module.lines[end][token.start[1] :]
                return module.replaced(line, end + 1, f"{before}{text}{after}")
    return None


def default(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    if rng.random() < 0.5:
        found = _reference(tree, module, rng, *EITHER)
        return module.spliced(node, node, found[1], found[:1])
    return module.spliced(node, node, rng.choice((str(rng.randrange(100)), "None", "'text'", "()")))


def decorated(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    found, line = _reference(tree, module, rng, *FUNCTION), _first_line(node)
    return module.replaced(line, line, f"{module.indent(node)}@{found[1]}", imports=found[:1])


def returned(suffix: str, *kinds: type[Any]) -> PlaceChange:
    """Something of another module as what a function returns."""

    def change(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
        found = _reference(tree, module, rng, *kinds)
        if ast.unparse(node) == found[1] + suffix:
            return None
        return module.spliced(node, node, found[1] + suffix, found[:1])

    return change


def called(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """Calls of what another module has, at the end of the module."""
    found = _reference(tree, module, rng, *EITHER)
    own = _names(module, *EITHER) or ["print"]
    number = rng.randrange(1000)
    texts = (f"called_{number} = {{0}}({rng.choice(own)})", "{0}(callback={0}).run()", "{0}.extra = {0}")
    return module.appended(rng.choice(texts).format(found[1]), imports=found[:1])


def attribute_assigned(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """An attribute of another module, of a class there or of an instance, given from here."""
    given, expression = _reference(tree, module, rng, ast.ClassDef)
    own = one_of(rng, _names(module, *EITHER))
    other = _other(tree, module, rng)
    texts = (
        (f"given = {expression}()", f"given.extra = {own}", "given.extra()"),
        (f"{expression}.{rng.choice(METHODS)} = {own}",),
        (f"import {other}", f"{other}.hook = {own}", f"{other}.{rng.choice(FUNCTIONS)} = {expression}"),
    )
    return module.appended(*rng.choice(texts), imports=[given])


def function_added(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """A new function: often one that another module imports from this one in vain."""
    wanted = {
        alias.name
        for other in _modules(tree)
        for one in other.all_of(ast.ImportFrom)
        if one.module and dotted(module.path).endswith(one.module)
        for alias in one.names
    }
    missed = sorted(wanted - set(_names(module, *EITHER)) - {"*"})
    name = rng.choice(missed) if missed and rng.random() < 0.7 else rng.choice(FUNCTIONS)
    found = _reference(tree, module, rng, *EITHER)
    return module.appended(f"def {name}(value=1):", f"    return {found[1]}(value)", imports=found[:1])


def import_added(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    found = _reference(tree, module, rng, *EITHER)
    return module.replaced(module.head, module.head, found[0])


def import_altered(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """The same names out of another module, or, where modules are imported, another module."""
    other, alias = _other(tree, module, rng), node.names[0]
    if isinstance(node, ast.ImportFrom):
        text = f"from {other} import {', '.join(map(ast.unparse, node.names))}"
    else:
        text = f"import {other} as {(alias.asname or alias.name).split('.')[0]}"
    return module.spliced(node, node, text)


def import_aliased(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """Another name for what is imported, or its own one again."""
    alias = node.names[0]
    alias = ast.alias(alias.name, None if alias.asname else f"alias_{rng.randrange(100)}")
    return module.spliced(
        node, node, ast.unparse(type(node)(**{**vars(node), "names": [alias, *node.names[1:]]}))
    )


def star_added(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    return module.replaced(module.head, module.head, f"from {_other(tree, module, rng)} import *")


def class_added(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    found = _reference(tree, module, rng, ast.ClassDef)
    lines = (f"class {rng.choice(CLASSES)}({found[1]}):", f"    {rng.choice(METHODS)} = print")
    return module.appended(*lines, imports=found[:1])


def _names_for_all(module: Module, rng: Random) -> str:
    names = _names(module, *EITHER)
    chosen = rng.sample(names, rng.randint(0, len(names))) + rng.choice(([], ["wrong"], ["load"]))
    return rng.choice(
        (repr(chosen), repr(tuple(chosen)), f"[name for name in {chosen!r} if name in globals()]")
    )


def all_added(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    return None if alls(module) else module.appended(f"__all__ = {_names_for_all(module, rng)}")


def all_altered(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    return module.spliced(node.value, node.value, _names_for_all(module, rng)) if node.value else None


def base_added(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    found = _reference(tree, module, rng, ast.ClassDef)
    if node.bases:
        first = node.bases[0]
        return module.spliced(first, first, f"{found[1]}, {ast.unparse(first)}", found[:1])
    line = node.lineno - 1
    text = re.sub(
        rf"class\s+{node.name}\s*(\(\s*\))?\s*:", f"class {node.name}({found[1]}):", module.lines[line]
    )
    return module.replaced(line, line + 1, text, imports=found[:1])


def base_removed(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    first, last = node.bases[0], node.bases[-1]
    rest = node.bases[1:] if rng.random() < 0.5 else node.bases[:-1]
    return module.spliced(first, last, ", ".join(map(ast.unparse, rest)) or "object")


def _with_method(module: Module, node: ast.ClassDef, name: str, result: str) -> Writes | None:
    last = node.body[-1]
    if last.lineno == node.lineno or not last.end_lineno:
        return None
    lines = (f"def {name}(self, *values):", f"    return {result}")
    return module.replaced(last.end_lineno, last.end_lineno, *(module.indent(last) + line for line in lines))


def method_in_base(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """A method for a class that others extend."""
    bases = {
        ast.unparse(base).split(".")[-1]
        for one in _modules(tree)
        for other in classes(one)
        for base in other.bases
    }
    taken = {one.name for one in node.body if isinstance(one, FUNCTION)}
    free = [name for name in METHODS if name not in taken]
    if node.name not in bases:
        return None
    result = rng.choice(("self", "self.extra()", "values[0]", "type(self)"))
    return _with_method(module, node, one_of(rng, free), result)


def method_overridden(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """A method of a base class, in a class that had it from there."""
    bases = {ast.unparse(base).split(".")[-1] for base in node.bases}
    there = [other for one in _modules(tree) for other in classes(one) if other.name in bases]
    methods = {one.name for other in there for one in other.body if isinstance(one, FUNCTION)}
    name = one_of(rng, sorted(methods - {one.name for one in node.body if isinstance(one, FUNCTION)}))
    result = rng.choice((f"super().{name}(*values)", "None", f"self.{rng.choice(METHODS)}"))
    return _with_method(module, node, name, result)


def commented(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """Lines that mean nothing and move what comes after them."""
    return module.replaced(module.head, module.head, *["", "# moved", ""][: rng.randint(1, 3)])


def form_feed(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    line = _first_line(node)
    return module.replaced(line, line + 1, "\f" + module.lines[line])


def latin_1(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    if module.encoding != "utf-8" or "coding" in "".join(module.lines[:2]):
        return None
    line = int(module.lines[0].startswith("#!"))
    return module._replace(encoding="iso-8859-1").replaced(line, line, COOKIE, "accent = 'é'")


def with_bom(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    return {module.path: BOM + tree[module.path]} if module.encoding == "utf-8" else None


def ends(newline: str) -> PlaceChange:
    """Another end for all lines."""

    def change(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
        return module._replace(newline=newline).replaced(0, 0) if len(module.lines) > 2 else None

    return change


def plain(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """UTF-8 without a mark, lines as Unix ends them."""
    lines = [line for line in module.lines if line != COOKIE]
    return module._replace(lines=tuple(lines), encoding="utf-8", newline="\n").replaced(0, 0)


def broken(tree: Tree, rng: Random, module: Module, node: Place) -> Writes | None:
    """A line that is no Python, before a statement or at the end."""
    starts = [_first_line(one) for one in module.parsed.body]
    line = rng.choice([*starts, len(module.lines) - 1])
    lines = [*module.lines[:line], BROKEN.decode(), *module.lines[line:]]
    return {module.path: module.newline.join(lines).encode(module.encoding)}


# ---- kinds that change which files there are ----


def _free(tree: Tree, folder: str, rng: Random) -> str:
    """A path for a new module."""
    names = [f"{stem}{number}" for stem in STEMS for number in ("", *range(1, 20))]
    return one_of(rng, [path for name in names if (path := f"{folder}{name}.py") not in tree])


def _folder(tree: Tree, rng: Random) -> str:
    """One of the folders with Python in them: `core/`, or nothing for the root."""
    folders = {path[: path.rfind("/") + 1] for path in tree if path.endswith(".py")}
    return rng.choice(sorted(folders) or [""])


def _new_module(tree: Tree, path: str, rng: Random) -> bytes:
    known = [
        Made(one.path, functions, classes)
        for one in _modules(tree)
        if (functions := tuple(_names(one, *FUNCTION))) and (classes := tuple(_names(one, ast.ClassDef)))
    ]
    own = Made(path, tuple(rng.sample(FUNCTIONS, 2)), tuple(rng.sample(CLASSES, 1)))
    others = [one for one in known if one.path != path] or [Made("missing.py", FUNCTIONS, CLASSES)]
    writer = Writer(rng, others)
    writer.number = rng.randrange(1000)
    return writer.module(own, rng.sample(sorted(SNIPPETS), 3)).encode()


def file_added(tree: Tree, rng: Random) -> Writes | None:
    path = _free(tree, _folder(tree, rng), rng)
    return {path: _new_module(tree, path, rng)}


def file_deleted(tree: Tree, rng: Random) -> Writes | None:
    paths = [path for path in tree if path.endswith(".py")]
    return {rng.choice(paths): None} if len(paths) > FEWEST else None


def package_added(tree: Tree, rng: Random) -> Writes | None:
    folder = f"{_folder(tree, rng)}{rng.choice(PACKAGES)}{rng.randrange(100)}/"
    path = _free(tree, folder, rng)
    init = f"from .{dotted(path).split('.')[-1]} import *\n".encode()
    return {f"{folder}__init__.py": init, path: _new_module(tree, path, rng)}


def package_deleted(tree: Tree, rng: Random) -> Writes | None:
    folder, paths = _folder(tree, rng), [path for path in tree if path.endswith(".py")]
    inside = [path for path in tree if path.startswith(folder)]
    enough = len(inside) > 1 and len(paths) - len(inside) >= FEWEST
    return dict.fromkeys(inside) if folder and enough else None


def _moved(tree: Tree, rng: Random, target: Callable[[str], str]) -> Writes | None:
    """A file under another path, with the same bytes."""
    paths = [path for path in sorted(tree) if path.endswith(".py") and not path.endswith("__init__.py")]
    old = one_of(rng, paths)
    new = target(old)
    return {old: None, new: tree[old]} if new not in tree else None


def file_renamed(tree: Tree, rng: Random) -> Writes | None:
    return _moved(tree, rng, lambda path: _free(tree, path[: path.rfind("/") + 1], rng))


def file_moved(tree: Tree, rng: Random) -> Writes | None:
    return _moved(tree, rng, lambda path: _folder(tree, rng) + path.rpartition("/")[2])


def module_to_package(tree: Tree, rng: Random) -> Writes | None:
    return _moved(tree, rng, lambda path: f"{path.removesuffix('.py')}/__init__.py")


def module_shadowed(tree: Tree, rng: Random) -> Writes | None:
    """A package of the name of a module, which stays where it is, out of reach."""
    module = one_of(rng, [one for one in _modules(tree) if not one.path.endswith("__init__.py")])
    path = f"{module.path.removesuffix('.py')}/__init__.py"
    names = _names(module, *EITHER)
    lines = [f"def {name}(*values):\n    return values\n" for name in names[::2]] or ["LIMIT = 1\n"]
    return {path: "".join(lines).encode()} if path not in tree else None


def missing_added(tree: Tree, rng: Random) -> Writes | None:
    """A module that others import in vain, with the names they want of it."""
    wanted: dict[str, set[str]] = {}
    for module in _modules(tree):
        for node in module.all_of(ast.ImportFrom):
            if node.level == 0 and node.module.split(".")[0] not in sys.stdlib_module_names:
                wanted.setdefault(node.module, set()).update(alias.name for alias in node.names)
                for alias in node.names:
                    if alias.name.isidentifier() and f"{node.module.replace('.', '/')}/__init__.py" in tree:
                        wanted.setdefault(f"{node.module}.{alias.name}", set())
        for node in module.all_of(ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] not in sys.stdlib_module_names:
                    wanted.setdefault(alias.name, set())
    paths = {name.replace(".", "/") + ".py": names for name, names in wanted.items() if not place(name, tree)}
    path = one_of(rng, sorted(paths))
    names = sorted(paths[path] - {"*"}) or ["start", "load"]
    return {path: "".join(f"def {name}(*values):\n    return values\n" for name in names).encode()}


def place(name: str, tree: Tree) -> str | None:
    """The path of a module of this name."""
    path = name.replace(".", "/")
    return next((one for one in (f"{path}/__init__.py", f"{path}.py") if one in tree), None)


def library_shadowed(tree: Tree, rng: Random) -> Writes | None:
    """A module with the name of one of the standard library that others import."""
    imported = {
        alias.name for one in _modules(tree) for node in one.all_of(ast.Import) for alias in node.names
    }
    name = one_of(rng, sorted(name for name in imported & sys.stdlib_module_names if not place(name, tree)))
    return {f"{name}.py": b"def wraps(function):\n    return function\npartial = wraps\n"}


def stub_added(tree: Tree, rng: Random) -> Writes | None:
    bare = [one for one in _modules(tree) if f"{one.path}i" not in tree and _top(one, *EITHER)]
    module = one_of(rng, bare)
    functions, classes = _names(module, *FUNCTION), _names(module, ast.ClassDef)
    return {f"{module.path}i": _stub(functions, classes, rng).encode()}


def stub_removed(tree: Tree, rng: Random) -> Writes | None:
    stubs = [path for path in sorted(tree) if path.endswith(".pyi")]
    return {one_of(rng, stubs): None}


def emptied(tree: Tree, rng: Random) -> Writes | None:
    return {one_of(rng, [path for path in sorted(tree) if path.endswith(".py") and tree[path]]): b""}


def filled(tree: Tree, rng: Random) -> Writes | None:
    """A file that was empty, with something in it."""
    path = one_of(rng, [path for path in sorted(tree) if path.endswith(".py") and not tree[path]])
    return {path: _new_module(tree, path, rng)}


def garbled(tree: Tree, rng: Random) -> Writes | None:
    module = one_of(rng, _modules(tree))
    return {module.path: GARBAGE + tree[module.path][:100]}


def mended(tree: Tree, rng: Random) -> Writes | None:
    """A broken file without the line that breaks it; garbage becomes a module again."""
    for path in rng.sample(sorted(tree), len(tree)):
        content = re.sub(re.escape(BROKEN) + rb"(\r\n|\r|\n)?", b"", tree[path])
        content = _new_module(tree, path, rng) if content.startswith(GARBAGE) else content
        if content != tree[path] and module_of(path, content):
            return {path: content}
    return None


def touched(tree: Tree, rng: Random) -> Writes | None:
    path = one_of(rng, sorted(tree))
    return {path: tree[path]}


def other_changed(tree: Tree, rng: Random) -> Writes | None:
    """Another text in a file that is no Python."""
    others = [path for path in sorted(tree) if path.endswith((".md", ".json", ".cfg"))]
    path = rng.choice(others) if others else "README.md"
    return {path: tree.get(path, b"") + b"# more\n"}


def ignored(tree: Tree, rng: Random) -> Writes | None:
    """A module that is there, but not for the build."""
    module = one_of(rng, _modules(tree))
    return {".gitignore": tree.get(".gitignore", b"") + f"/{module.path}\n".encode()}


def not_ignored(tree: Tree, rng: Random) -> Writes | None:
    lines = tree.get(".gitignore", b"").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(b"/")]
    return {".gitignore": b"".join(kept)} if kept != lines else None


# How often a kind is drawn, and what it does. Files come more often than they go.
CHANGES: dict[str, tuple[int, Change]] = {
    "add_file": (4, file_added),
    "delete_file": (2, file_deleted),
    "add_package": (2, package_added),
    "delete_package": (1, package_deleted),
    "rename_file": (2, file_renamed),
    "move_file": (2, file_moved),
    "module_to_package": (1, module_to_package),
    "shadow_module_by_package": (1, module_shadowed),
    "shadow_library": (1, library_shadowed),
    "add_missing_module": (2, missing_added),
    "add_stub": (1, stub_added),
    "remove_stub": (1, stub_removed),
    "empty_file": (1, emptied),
    "fill_file": (2, filled),
    "garbage": (1, garbled),
    "break_syntax": (2, at(whole, broken, star_imported)),
    "mend_syntax": (3, mended),
    "touch": (1, touched),
    "change_other_file": (1, other_changed),
    "ignore_file": (1, ignored),
    "stop_ignoring": (2, not_ignored),
    "body_same_length": (4, at(constants, same_length)),
    "body_other_length": (4, at(functions, longer)),
    "add_function": (4, at(whole, function_added)),
    "remove_function": (3, at(functions, removed)),
    "rename_function": (3, at(functions, renamed_function)),
    "rename_everywhere": (2, at(lambda module: _top(module, *EITHER), renamed_everywhere)),
    "change_signature": (3, at(functions, signature)),
    "change_default": (2, at(defaults, default)),
    "add_decorator": (2, at(functions, decorated)),
    "remove_decorator": (2, at(decorators, decorator_removed)),
    "return_function": (4, at(returns, returned("", *FUNCTION))),
    "return_instance": (4, at(returns, returned("()", ast.ClassDef))),
    "add_call": (3, at(whole, called)),
    "assign_attribute": (3, at(whole, attribute_assigned)),
    "add_import": (2, at(whole, import_added)),
    "remove_import": (3, at(plain_imports, removed)),
    "alter_import": (3, at(imports, import_altered)),
    "alias_import": (2, at(plain_imports, import_aliased)),
    "add_star_import": (2, at(whole, star_added)),
    "remove_star_import": (2, at(stars, removed)),
    "add_all": (2, at(whole, all_added, star_imported)),
    "remove_all": (2, at(alls, removed, star_imported)),
    "alter_all": (2, at(alls, all_altered, star_imported)),
    "add_class": (1, at(whole, class_added)),
    "remove_class": (1, at(classes, removed)),
    "add_base": (3, at(classes, base_added)),
    "remove_base": (3, at(based, base_removed)),
    "add_method_in_base": (3, at(classes, method_in_base)),
    "override_method": (3, at(based, method_overridden)),
    "comment": (2, at(whole, commented)),
    "form_feed": (1, at(_top, form_feed)),
    "latin_1": (1, at(whole, latin_1)),
    "byte_order_mark": (1, at(whole, with_bom)),
    "crlf": (1, at(whole, ends("\r\n"))),
    "cr": (1, at(whole, ends("\r"))),
    "plain_text": (2, at(whole, plain)),
}
# All kinds by how often they are drawn, with those that `_edit` makes of others.
KINDS = {name: weight for name, (weight, _) in CHANGES.items()} | {"several": 6, "undo": 5}
# What a kind needs, where a tree has none of it.
ROOM_FOR = {
    "fill_file": "empty_file",
    "mend_syntax": "break_syntax",
    "stop_ignoring": "ignore_file",
    "remove_stub": "add_stub",
    "remove_star_import": "add_star_import",
    "remove_all": "add_all",
    "alter_all": "add_all",
    "plain_text": "crlf",
    "add_method_in_base": "add_base",
    "delete_package": "add_package",
}
