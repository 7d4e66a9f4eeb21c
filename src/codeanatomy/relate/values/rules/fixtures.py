"""Pass the values of pytest's fixtures to the parameters that request them by name.

    @pytest.fixture
    def client(app): return Client(app)       `app` is the value of the fixture that the test finds

    def test_get(client): client.get("/")     `client` is a Client, and the test calls the fixture

Fixtures are looked up as pytest does, from the test: in its class, its module, `conftest.py` of its folder
and of those above, and in modules that are neither tests nor conftest (plugins). The nearest wins; a fixture
that requests its own name gets the next one. Arguments of `parametrize` replace fixtures, or are
`request.param` of those that are `indirect`. A fixture is called at the parameter, and at the function if it
is `autouse` or in `usefixtures`. Parameters that nothing provides stay unknown.

Tests: `tests/unit/relate/test_callgraph_cases.py` (construct `fixtures`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import PurePosixPath

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import record
from codeanatomy.relate.values.external_names import KNOWN
from codeanatomy.relate.values.function_copies import original
from codeanatomy.relate.values.hierarchy import external_bases, mro
from codeanatomy.relate.values.models.library import PARAMETER_SET
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.rules.assumptions import inheriting_classes
from codeanatomy.relate.values.rules.containers import ALL_ELEMENTS, container_class
from codeanatomy.relate.values.rules.imports import exports, star_imports
from codeanatomy.relate.values.rules.protocols import unpack
from codeanatomy.relate.values.solver import Object, strong
from codeanatomy.relate.values.state import Call, State

TEST_FILE, CONFTEST = re.compile(r"test_.*|.*_test"), "conftest.py"
FIXTURE_DECORATORS = ("pytest.fixture", "pytest.yield_fixture", "pytest_asyncio.fixture")
# Fixtures of pytest and its usual plugins, by the class of their value.
BUILTIN_FIXTURES = KNOWN["fixture"]
# Fixtures by name; of several with one name any may run. A scope has those of each name from near to far.
Table = dict[str, list[Object]]
Scope = Mapping[str, list[list[Object]]]


def link_fixtures(state: State) -> None:
    """Pass fixtures to the tests and fixtures of a repository."""
    linker = FixtureLinker(state)
    for file, program in enumerate(state.programs):
        for number, function in enumerate(program.functions):
            if function.requests >= 0 and function.name.startswith("test"):
                linker.link_test(state.object(ir.OBJ_FUNCTION, file, number))
    for fixture in linker.fixtures:
        if fixture not in linker.linked:
            # Requested by no test of the repository.
            linker.link([fixture], linker.scope(linker.home(fixture)), {})


class FixtureLinker:
    """Finds fixtures, and links each function to those that it requests."""

    def __init__(self, state: State) -> None:
        self.state = state
        # The call of the decorator that makes a function a fixture.
        self.fixtures: dict[Object, ModelCall] = {
            obj: mark
            for obj, marks in state.marks.items()
            for mark in marks
            if mark.name in FIXTURE_DECORATORS
        }
        # Functions whose requests are linked, with the scopes and arguments they are linked for.
        self.linked: dict[Object, set[tuple[object, ...]]] = {}
        self._tables: dict[Object, Table] = {}
        # Computed once for each class or module, and for each mark.
        self.scope, self._split = cache(self._find_scope), cache(self._split_values)
        self._plugins: Table = {}
        for file in dict.fromkeys(state.objects[each].first for each in self.fixtures):
            if not self._is_test_file(file) and not state.programs[file].path.endswith(CONFTEST):
                for name, fixtures in self._table(state.object(ir.OBJ_MODULE, file)).items():
                    self._plugins.setdefault(name, []).extend(fixtures)

    def home(self, function: Object) -> Object:
        """Return the class of a method, or the module of a function."""
        file, definition = self.state.function(function)
        if definition.owner >= 0:
            return self.state.object(ir.OBJ_CLASS, file, definition.owner)
        return self.state.object(ir.OBJ_MODULE, file)

    def _is_test_file(self, file: int) -> bool:
        return TEST_FILE.fullmatch(PurePosixPath(self.state.programs[file].path).stem) is not None

    # -- lookup

    def _table(self, holder: Object) -> Table:
        """Return the fixtures of a module or class, with those that it imports or inherits."""
        if holder in self._tables:
            return self._tables[holder]
        state, table = self.state, self._tables.setdefault(holder, {})
        kind, file, _, _ = state.objects[holder]
        if kind == ir.OBJ_MODULE:
            nodes = {name: final for name, (_, final, _) in state.programs[file].variables.items()}
            for path in [
                path for star in star_imports(state, file) for path in state.modules.paths.get(star, ())
            ]:
                imported = state.files[path]
                inner = self._table(state.object(ir.OBJ_MODULE, imported))
                table.update({name: each for name, each in inner.items() if exports(state, imported, name)})
        else:
            nodes = {name: node for name, (node, _) in state.cls(holder)[1].attrs.items()}
            for base in reversed(mro(state, holder)[1:]):
                table.update(self._table(base) if state.kind[base] == ir.OBJ_CLASS else {})
        for name, node in nodes.items():
            fixtures = [
                strong(obj) for obj in state.objects_at(state.node(file, node)) if obj in self.fixtures
            ]
            if fixtures:
                table[self.fixtures[fixtures[0]].text(-1, "name") or name] = fixtures
        return table

    def _find_scope(self, home: Object) -> Scope:
        """Return the fixtures that tests of a class or module see, without those of plugins."""
        state, file = self.state, self.state.objects[home].first
        paths = [str(each / CONFTEST) for each in PurePosixPath(state.programs[file].path).parents]
        files = [file, *(state.files[path] for path in paths if path in state.files)]
        scope: dict[str, list[list[Object]]] = {}
        for holder in dict.fromkeys([home, *(state.object(ir.OBJ_MODULE, each) for each in files)]):
            for name, fixtures in self._table(holder).items():
                scope.setdefault(name, []).append(fixtures)
        return scope

    def _resolve(self, name: str, scope: Scope, requester: Object | None = None) -> Sequence[Object]:
        """Return the nearest fixtures of a name; for one of that name the nearest outside of it."""
        levels = [*scope.get(name, ()), self._plugins.get(name, [])]
        own = [number for number, level in enumerate(levels) if requester in level]
        return next(iter(levels[own[0] + 1 :] if own else levels), [])

    def _marks(self, test: Object, home: Object) -> Iterable[ModelCall]:
        """Return the marks of a test, its class and its module."""
        state, file = self.state, self.state.objects[home].first
        holders = [test, *(mro(state, home) if state.kind[home] == ir.OBJ_CLASS else ())]
        assigned = state.node(file, state.programs[file].variables.get("pytestmark", (-1, ir.NOTHING))[1])
        elements = [state.field(each, ALL_ELEMENTS) for each in state.objects_at(assigned)]
        objects = [obj for node in (assigned, *elements) for obj in state.objects_at(node)]
        marks = [state.objects[obj].second for obj in objects if state.kind[obj] == ir.OBJ_EXTERNAL]
        own = [mark for each in holders for mark in state.marks.get(each, ())]
        return dict.fromkeys([*own, *filter(None, marks)])

    # -- links

    def link_test(self, test: Object) -> None:
        """Link a function for each class or module in which pytest collects it as a test."""
        state, home = self.state, self.home(test)
        if state.kind[home] == ir.OBJ_MODULE:
            self._link_collected(test, home, is_unittest=False)
            return
        for cls in inheriting_classes(state, home, state.function(test)[1].name):
            is_unittest = any(name.endswith("TestCase") for name in external_bases(state, cls))
            if is_unittest or state.cls(cls)[1].name.startswith("Test"):
                self._link_collected(test, cls, is_unittest)

    def _link_collected(self, test: Object, home: Object, is_unittest: bool) -> None:
        """Link a test of a class or module; unittest passes no arguments."""
        if test in self.fixtures or not self._is_test_file(self.state.objects[home].first):
            return
        scope, arguments, started = self.scope(home), dict[str, int](), list[Object]()
        names = [name for name, levels in scope.items() if any(map(self._is_autouse, chain(*levels)))]
        for mark in self._marks(test, home):
            if mark.name == "pytest.mark.usefixtures":
                names += [mark.text(position) or "" for position in range(len(mark.positional))]
            elif mark.name == "pytest.mark.parametrize":
                self._add_arguments(mark, scope, arguments)
        for fixture in [each for name in dict.fromkeys(names) for each in self._resolve(name, scope)]:
            self._run(test, 0, fixture, ir.NOTHING)
            started.append(fixture)
        self.link(started if is_unittest else [test, *started], scope, arguments)

    def _is_autouse(self, fixture: Object) -> bool:
        return self.fixtures[fixture].constant(-1, "autouse") == "True"

    def link(self, functions: Iterable[Object], scope: Scope, arguments: Mapping[str, int]) -> None:
        """Link functions to the fixtures that they request, and these to those that they request."""
        todo, key = list(functions), (id(scope), *arguments.items())
        while todo:
            requester = todo.pop()
            if key in self.linked.setdefault(requester, set()):
                continue
            self.linked[requester].add(key)
            _, function = self.state.function(requester)
            required = [each for each in function.parameters if each.is_required]
            bound = int(function.owner >= 0 and function.binds != "nothing")
            for position, parameter in enumerate(required[bound:], bound + 1):
                name, node = parameter.name, self.state.function_node(requester, parameter.node)
                if name in arguments:
                    self.state.flow(arguments[name], node)
                    continue
                fixtures = self._resolve(name, scope, requester)
                for fixture in fixtures:
                    self._run(requester, position, fixture, node)
                todo += fixtures
                if not fixtures and name in BUILTIN_FIXTURES:
                    self.state.add(node, self._builtin(name, requester))

    def _run(self, requester: Object, position: int, fixture: Object, dst: int) -> None:
        """Call a fixture at a site of the function that requests it; its value goes into dst."""
        state = self.state
        first = state.function(requester)[1].requests
        if first >= 0:
            where = (state.objects[requester].first, first + position)
            record(state, Call(where, [], dst, role="fixture"), original(state, fixture))
        _, function = state.function(fixture)
        returned = [function.parameters[each].node for each in function.returned]
        for node in (function.yields if function.is_generator else function.result, *returned):
            state.flow(state.function_node(fixture, node), dst)

    # -- parameters of tests and fixtures

    def _builtin(self, name: str, requester: Object) -> Object:
        """Return the value of a fixture of pytest; the `request` of a fixture has its `params`."""
        mark = self.fixtures.get(requester) if name == "request" else None
        own = None if mark is None else requester
        value = self.state.object(ir.OBJ_EXTERNAL_INSTANCE, BUILTIN_FIXTURES[name], own)
        if mark is not None and mark.argument(-1, "params") >= 0:
            nodes = self._split(mark, ("param",), mark.argument(-1, "params"))
            self.state.flow(nodes["param"], self.state.field(value, "param"))
        return value

    def _add_arguments(self, mark: ModelCall, scope: Scope, arguments: dict[str, int]) -> None:
        """Add the arguments of `parametrize`; those that are indirect go to fixtures."""
        names = tuple(re.findall(r"\w+", mark.text(0, "argnames") or ""))
        indirect = mark.constant(2, "indirect") or ""
        for name, node in self._split(mark, names, mark.argument(1, "argvalues")).items():
            if indirect != "True" and name not in re.findall(r"\w+", indirect):
                arguments[name] = node
                continue
            for fixture in self._resolve(name, scope):
                self.state.flow(node, self.state.field(self._builtin("request", fixture), "param"))

    def _split_values(self, mark: ModelCall, names: tuple[str, ...], values: int) -> Mapping[str, int]:
        """Return nodes with the elements of a sequence by name; of several names with what these contain."""
        element = mark.iterate(values)
        nodes = {name: mark.node() for name in names}
        for position, node in enumerate(nodes.values()):
            rule = _unpack_set if len(names) == 1 else unpack
            self.state.subscribe(element, rule, str(position), node)
        return nodes


def _unpack_set(state: State, obj: Object, position: str, dst: int) -> None:
    """Put objects into dst; of `pytest.param(value)` its value."""
    if state.kind[obj] == ir.OBJ_CONTAINER and container_class(state, obj) == PARAMETER_SET:
        unpack(state, obj, position, dst)
    else:
        state.add(dst, obj)
