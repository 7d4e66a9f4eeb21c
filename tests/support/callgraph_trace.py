"""Run the labelled cases of `tests/cases/callgraph` and record their calls, to check the labels.

    python -P tests/support/callgraph_trace.py tests/cases/callgraph/closures/counter
    {"closures.counter": {"error": null, "calls": [["main", "main.counter"], ...], "c_calls": [], ...}}

`main.py` of every case is imported under `sys.setprofile`, in one process and with fresh modules. A frame has
the name of its code by the rules of the labels: nested functions stand directly under their parent, a lambda
is numbered within its scope, comprehensions and class bodies belong to the function or module around them.
Frames of other people's code are looked through: the caller is the nearest frame of the case above them, so
what `map` or `contextlib` runs counts for the function that called it.

A case without `main.py` is a suite: pytest runs it, and each fixture that pytest finds for a test, or for
another fixture, is a call by the function that requests it.

CPython reports a generator or coroutine when it is resumed, not when it is made. The call that we label is
the one that makes it; so such functions get one more decorator, which records their callers.

Tests: `tests/unit/relate/test_callgraph_labels.py`.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
RECORDER = "__called__"
# C modules that are known by another name.
PUBLIC = {"posix": "os", "_functools": "functools", "_operator": "operator", "_io": "io"}


class Run:
    """The names of one case's code objects, and the calls seen so far."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.functions: set[int] = set()
        self.codes: list[CodeType] = []  # keeps them alive, so that no id comes twice
        self.calls: set[tuple[str, str]] = set()
        self.below: set[tuple[str, str]] = set()  # callees with every function that is running then
        self.c_calls: set[tuple[str, str]] = set()

    def name(self, code: CodeType, caller: str, scope: str) -> None:
        """Name a code object and all below it: `caller` in calls, `scope` as the prefix of other names."""
        self.codes.append(code)
        self.names[id(code)] = caller
        for number, inner in enumerate(_lambdas(code), 1):
            self.define(inner, f"{scope}.<lambda{number}>")
        for inner in _inner(code):
            if inner.co_name == "<lambda>":
                continue
            if inner.co_flags & inspect.CO_OPTIMIZED:
                self.define(inner, f"{scope}.{inner.co_name}")
            else:
                self.name(inner, caller, f"{scope}.{inner.co_name}")

    def define(self, code: CodeType, name: str) -> None:
        self.functions.add(id(code))
        self.name(code, name, name)

    def caller(self, frame: FrameType | None) -> str | None:
        while frame is not None:
            name = self.names.get(id(frame.f_code))
            if name is not None:
                return name
            frame = frame.f_back
        return None

    def caller_in_file(self, frame: FrameType) -> str | None:
        """Return the caller of what a frame calls: that of a comprehension is the function around it."""
        file, above = frame.f_code.co_filename, frame
        while above.f_code.co_name in COMPREHENSIONS and above.f_back is not None:
            above = above.f_back
        return self.names.get(id(above.f_code)) if above.f_code.co_filename == file else None

    def called(self, code: CodeType, by: FrameType | None) -> None:
        caller = self.caller(by)
        if caller is not None:
            self.calls.add((caller, self.names[id(code)]))
        while by is not None:
            if id(by.f_code) in self.names:
                self.below.add((self.names[id(by.f_code)], self.names[id(code)]))
            by = by.f_back

    def record(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            self.called(function.__code__, sys._getframe(1))
            return function(*args, **kwargs)

        return called

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call":
            if id(code) in self.functions and not code.co_flags & RESUMED:
                self.called(code, frame.f_back)
        elif event == "c_call" and (id(code) in self.names or code.co_name in COMPREHENSIONS):
            caller, callee = self.caller_in_file(frame), c_name(arg)
            if caller is not None and callee is not None:
                self.c_calls.add((caller, callee))


def _inner(code: CodeType) -> Iterator[CodeType]:
    """The code objects of the scopes inside one, comprehensions opened."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_name in COMPREHENSIONS:
                yield from _inner(const)
            else:
                yield const


def _lambdas(code: CodeType) -> list[CodeType]:
    def start(inner: CodeType) -> tuple[int, int]:
        # The first instructions stand for the entry and have no column.
        spans = ((line, col) for line, _, col, end in inner.co_positions() if line and col and end)
        return min(spans, default=(inner.co_firstlineno, 0))

    return sorted((inner for inner in _inner(code) if inner.co_name == "<lambda>"), key=start)


def c_name(function: Any) -> str | None:
    """Return the name of a function that is written in C: `builtins.len`, `builtins.list.append`,
    `math.sqrt`.
    """
    owner, name = function.__self__, function.__name__
    if isinstance(owner, ModuleType):
        module, qualname = owner.__name__, name
    else:
        kinds = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
        kind = next((kind for kind in kinds if name in vars(kind)), None)
        if kind is None:
            return None
        module, qualname = kind.__module__, f"{kind.__qualname__}.{name}"
    if name == "__build_class__" or qualname.startswith("property."):
        return None  # declarations, by our labels no calls
    return f"{PUBLIC.get(module, module)}.{qualname}"


class Recorded(ast.NodeTransformer):
    """Add the recording decorator to generators and coroutines; for other functions the profiler suffices."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        is_resumed = isinstance(node, ast.AsyncFunctionDef) or (
            isinstance(node, ast.FunctionDef) and _yields(node)
        )
        # Of a fixture that yields, pytest needs the generator function itself.
        if is_resumed and not any("fixture" in ast.unparse(each) for each in node.decorator_list):
            recorder = ast.Name(RECORDER, ast.Load())
            node.decorator_list.append(ast.copy_location(recorder, node))
            ast.fix_missing_locations(node)
        return node


def _yields(function: ast.FunctionDef) -> bool:
    below: list[ast.AST] = list(function.body)
    while below:
        node = below.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            below.extend(ast.iter_child_nodes(node))
    return False


class Requests:
    """A plugin of pytest that records which fixtures run for which function."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def pytest_runtest_setup(self, item: Any) -> None:
        """Follow the fixtures of a test, by pytest's own lookup."""
        info = item._fixtureinfo
        requests = [(item.obj, None, name) for name in info.initialnames]
        for requester, own, name in requests:
            fixtures = list(info.name2fixturedefs.get(name, ()))
            # A fixture that requests its own name gets the next one outside of it.
            for chosen in fixtures[: fixtures.index(own) if own in fixtures else None][-1:]:
                self._add(requester, chosen.func)
                following = [(chosen.func, chosen, each) for each in chosen.argnames]
                requests += [each for each in following if each not in requests]

    def _add(self, requester: Any, fixture: Any) -> None:
        names = [self.run.names.get(id(inspect.unwrap(each).__code__)) for each in (requester, fixture)]
        if names[0] is not None and names[1] is not None:
            self.run.calls.add((names[0], names[1]))


def run_suite(case: Path, run: Run) -> None:
    """Run the tests of a case with pytest."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # Without settings and `conftest.py` of folders above, and by the loader that names the code.
    above = ("-c", os.devnull, "--rootdir", str(case), "--confcutdir", str(case))
    with TemporaryDirectory() as folder:
        options = [*above, "--assert=plain", "-p", "no:cacheprovider", "-q", "--basetemp", folder, str(case)]
        status = pytest.main(options, plugins=[Requests(run)])
    if status != pytest.ExitCode.OK:
        raise RuntimeError(f"pytest ends with {status!r}")


def trace(case: Path) -> dict[str, Any]:
    """Import `main` of a case and return the calls that were seen."""
    run = Run()

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            path = self.get_filename(fullname)
            tree = ast.parse(self.get_data(path))
            Recorded().visit(tree)
            code: CodeType = compile(tree, path, "exec")
            run.name(code, fullname, fullname)
            return code

    def hook(path: str) -> FileFinder:
        if not Path(path).is_relative_to(case):
            raise ImportError(path)
        return FileFinder(path, (Loader, [".py"]))

    roots = [str(case), *(str(path) for path in sorted(case.rglob("src")))]
    before = set(sys.modules)
    sys.path_importer_cache.clear()
    sys.path_hooks.insert(0, hook)
    sys.path[:0] = roots
    setattr(builtins, RECORDER, run.record)
    error = None
    try:
        sys.setprofile(run.profile)
        try:
            if (case / "main.py").exists():
                import_module("main")
            else:
                run_suite(case, run)
        finally:
            sys.setprofile(None)
    except Exception as problem:  # noqa: BLE001 - the parent reports a case that fails
        error = f"{type(problem).__name__}: {problem}"
    finally:
        sys.path_hooks.remove(hook)
        del sys.path[: len(roots)]
        for name in [name for name in set(sys.modules) - before if _of_case(sys.modules[name], case)]:
            del sys.modules[name]
    seen = {"calls": run.calls, "c_calls": run.c_calls, "below": run.below}
    return {"error": error, **{name: sorted(edges) for name, edges in seen.items()}}


def _of_case(module: ModuleType, case: Path) -> bool:
    file = getattr(module, "__file__", None)
    places = [file] if file else getattr(module, "__path__", ())  # a namespace package has no file
    return any(Path(place).is_relative_to(case) for place in places)


def main(cases: list[str]) -> None:
    paths = [Path(case).resolve() for case in cases]
    print(json.dumps({f"{path.parent.name}.{path.name}": trace(path) for path in paths}))


if __name__ == "__main__":
    main(sys.argv[1:])
