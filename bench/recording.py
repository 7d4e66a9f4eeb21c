"""Who calls whom while the tests of a package run, by `sys.setprofile`.

    python bench/recording.py FOLDER OUTPUT PYTEST_ARGUMENT ...

Runs the analysed code: for benchmarks, in a process of its own, never in the product. Written as JSON:

    codes   [path, name, first line, line and column of its first expression, whether it is a function,
             whether it is a generator]
    edges   [number of the caller's code, of the callee's, whether code from elsewhere stood in between,
             lines and columns of the calling expression]

Only code of the folder is recorded; comprehensions, modules and bodies of classes are no callees. Where other
code stood in between (a library that calls back), the caller is the nearest of the folder. CPython tells of
a generator not when it is called, but when it is resumed: the caller is then who asks for its first element.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Recorder:
    """A function for `sys.setprofile`."""

    def __init__(self, folder: Path) -> None:
        self.root = f"{folder}{os.sep}"
        self.inside: dict[str, bool] = {}
        # By ids, since codes of two files may be equal; the value keeps them alive, with the instruction.
        self.edges: dict[tuple[int, int, bool], tuple[CodeType, CodeType, int]] = {}
        self.entries: dict[int, tuple[CodeType, int]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not self.is_ours(code) or not self.is_entry(frame):
            return
        caller = frame.f_back
        foreign = False
        while caller is not None and not self.is_ours(caller.f_code):
            caller, foreign = caller.f_back, True
        if caller is not None and is_function(code):
            key = (id(caller.f_code), id(code), foreign)
            self.edges.setdefault(key, (caller.f_code, code, caller.f_lasti))

    def is_ours(self, code: CodeType) -> bool:
        name = code.co_filename
        found = self.inside.get(name)
        if found is None:
            found = self.inside[name] = name.startswith(self.root)
        return found

    def is_entry(self, frame: FrameType) -> bool:
        """Whether a generator begins, and does not go on."""
        code = frame.f_code
        if not code.co_flags & GENERATORS:
            return True
        # The first time that it is seen, it has just begun.
        return self.entries.setdefault(id(code), (code, frame.f_lasti))[1] == frame.f_lasti


def is_function(code: CodeType) -> bool:
    """Not a comprehension, a module or the body of a class."""
    return code.co_name not in COMPREHENSIONS and bool(code.co_flags & inspect.CO_OPTIMIZED)


def written(recorder: Recorder) -> dict[str, Any]:
    """The record, with codes by number."""
    numbers: dict[int, int] = {}
    codes: list[Any] = []
    edges = []
    for (*_, foreign), (caller, callee, instruction) in recorder.edges.items():
        for code in (caller, callee):
            if id(code) not in numbers:
                numbers[id(code)] = len(codes)
                codes.append(described(code, recorder.root))
        site = list(caller.co_positions())[instruction // 2]
        edges.append([numbers[id(caller)], numbers[id(callee)], foreign, site])
    return {"codes": codes, "edges": edges}


def described(code: CodeType, root: str) -> list[Any]:
    """A code by its place."""
    path = code.co_filename.removeprefix(root).replace(os.sep, "/")
    first = min(expressions(code), default=(code.co_firstlineno, 0))
    is_generator = bool(code.co_flags & GENERATORS)
    return [path, code.co_name, code.co_firstlineno, *first, is_function(code), is_generator]


def expressions(code: CodeType) -> Iterator[tuple[int, int]]:
    """Where the expressions of a code begin; what stands at no columns is no expression."""
    for line, _, column, end in code.co_positions():
        if line is not None and column is not None and end:
            yield line, column


def main() -> None:
    folder, output, *arguments = sys.argv[1:]
    recorder = Recorder(Path(folder))
    sys.path.insert(0, folder)
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        code = pytest.main(["-q", "-p", "no:cacheprovider", *arguments])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    Path(output).write_text(json.dumps(written(recorder)), encoding="utf-8")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
