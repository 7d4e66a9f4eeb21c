"""A file's syntax tree into its program: statements in the order in which they run.

    program = program_of(repo_id, file_id, path, tree, scopes, imports, identifiers)

Branches are walked one after the other from the same state and their versions joined; what a loop binds gets
a version of its own at its head, into which the end of its body leads; a handler sees what was bound anywhere
in its `try`. Function bodies wait until the code around them is done.

Tests: `tests/test_relate_walk.py`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from codeanatomy.relate.expressions import Expressions
from codeanatomy.relate.frames import Env, Frame, Loop, Version, merged
from codeanatomy.relate.program import (
    CLASS,
    FUNCTION,
    IMPORT,
    NOTHING,
    PARAMETER,
    POSITIONAL,
    VARIABLE,
    Class,
    Function,
    Import,
    Node,
    Parameter,
    Program,
)
from codeanatomy.relate.scopes import Scope
from codeanatomy.relate.tree import Tree

DEFINITIONS = frozenset({"FunctionDef", "AsyncFunctionDef", "ClassDef", "Lambda"})
FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef"})
# Expressions may be nested this deep: a sum of some thousand terms is.
RECURSION_LIMIT = 30_000
# Versions of a name that are kept apart.
MAX_VERSIONS = 32
# Decorators that say what a method's first parameter is.
BINDS = {"staticmethod": "nothing", "classmethod": "class"}
# Decorators that run nothing of the repository: what they are given is replaced before anybody sees it.
QUIET = frozenset(
    {"overload", "property", "setter", "getter", "deleter", "staticmethod", "classmethod", "abstractmethod"}
)
IMPLICIT_CLASS_METHODS = frozenset({"__init_subclass__", "__class_getitem__"})


def program_of(
    program: Program,
    tree: Tree,
    scopes: Mapping[int, Scope],
    imports: Mapping[str, Sequence[object]],
    identifiers: Mapping[tuple[int, int], tuple[int, int]],
) -> Program:
    """Fill the program of a file; one that is too deep says so."""
    with _deep():
        try:
            Walk(program, tree, scopes, imports, identifiers).run()
        except RecursionError:
            return Program(program.repo_id, program.file_id, program.path, failure="too_deep")
    return program


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Walk(Expressions):
    """The walk through one file."""

    def __init__(
        self,
        program: Program,
        tree: Tree,
        scopes: Mapping[int, Scope],
        imports: Mapping[str, Sequence[object]],
        identifiers: Mapping[tuple[int, int], tuple[int, int]],
    ) -> None:
        super().__init__(program, tree, scopes)
        self.identifiers = dict(identifiers)
        self.imported = {
            ast_id: (module, name, asname, level)
            for ast_id, module, name, asname, level in zip(
                *(imports[field] for field in ("ast_id", "module", "name", "asname", "level")), strict=True
            )
        }
        self.lambdas = lambda_names(tree)
        # Functions by scope.
        self.numbers: dict[Scope, int] = {}
        self.waiting: deque[Callable[[], None]] = deque()
        self._statements: dict[str, Callable[[int], None]] = {}

    def run(self) -> None:
        """Walk the module, then the bodies of its functions, outer ones first."""
        for node, kind in enumerate(self.tree.kind):
            if kind in ("Global", "Nonlocal"):
                self.declared.update((self.tree.name[node] or "").split(", "))
        module = self.frame
        self.block(self.tree.many(0, "body"))
        self._leave(module)
        while self.waiting:
            self.waiting.popleft()()
        self._finish(module)

    def _leave(self, frame: Frame) -> None:
        """What stands at the end of a frame is seen by all that runs later."""
        for name, versions in frame.env.items():
            for version in versions:
                self.cell(frame.scope, name).show(version.node, version.definitions)

    def _finish(self, module: Frame) -> None:
        for (scope, _), cell in self.cells.items():
            if scope is module.scope and cell.node == NOTHING:
                cell.node = self.new()
            if scope in self.numbers:
                self.program.cells.append((self.numbers[scope], cell.node, list(cell.nodes)))
            for node in cell.nodes:
                self.copy(node, cell.node)
        for (scope, name), cell in self.cells.items():
            if scope is not module.scope:
                continue
            last = module.env.get(name, ())
            nodes = [version.node for version in last]
            numbers = [number for version in last for number in version.definitions]
            if not last or name in self.declared:
                nodes, numbers = [*nodes, cell.node], [*numbers, *cell.definitions]
            self.program.variables[name] = (cell.node, self.phi(nodes), list(dict.fromkeys(numbers)))
        self.program.cells = [cell for cell in self.program.cells if cell[1] != NOTHING]
        outside = [cell.node for (scope, _), cell in self.cells.items() if scope not in self.numbers]
        self.program.shared = [
            *self.consts.values(),
            *self.words.values(),
            *self.open_nodes.values(),
            *outside,
        ]
        self.program.uses = self.finished_uses()

    # -- statements

    def block(self, statements: Sequence[int]) -> None:
        """Statements one after the other."""
        for node in statements:
            kind = self.tree.kind[node]
            look = self._statements.get(kind)
            if look is None:
                look = self._statements[kind] = getattr(self, f"do_{kind}", self._do_other)
            look(node)

    def _do_other(self, node: int) -> None:
        for child in self.tree.children(node):
            self.value(child)

    def do_Expr(self, node: int) -> None:
        self.value(self.tree.one(node, "value"))

    def do_Assign(self, node: int) -> None:
        targets = self.tree.many(node, "targets")
        source = self.tree.one(node, "value")
        if self._pairwise(targets, source):
            return
        value = self.value(source)
        for target in targets:
            self.assign(target, value)
        self._note_all(targets, source)

    def _pairwise(self, targets: Sequence[int], source: int | None) -> bool:
        """`a, b = x, y` needs no tuple."""
        tree = self.tree
        if (
            source is None
            or len(targets) != 1
            or tree.kind[targets[0]] != "Tuple"
            or tree.kind[source] != "Tuple"
        ):
            return False
        left, right = tree.many(targets[0], "elts"), tree.many(source, "elts")
        if len(left) != len(right) or any(tree.kind[item] == "Starred" for item in (*left, *right)):
            return False
        values = [self.value(item) for item in right]
        for target, value in zip(left, values, strict=True):
            self.assign(target, value)
        return True

    def _note_all(self, targets: Sequence[int], source: int | None) -> None:
        """`__all__` of a module, as far as it is a list of constants."""
        tree = self.tree
        named = [tree.name[target] for target in targets if tree.kind[target] == "Name"]
        if "__all__" in named and self.frame.scope.kind == "module" and source is not None:
            self.program.exported = self._words(source)

    def _words(self, source: int) -> list[str] | None:
        tree = self.tree
        if tree.kind[source] == "BinOp":
            sides = [tree.one(source, side) for side in ("left", "right")]
            found = [self._words(side) for side in sides if side is not None]
            return [word for words in found if words is not None for word in words]
        words = [tree.constant(item) for item in tree.many(source, "elts")]
        return [word for word in words if isinstance(word, str)]

    def assign(self, target: int | None, value: Node) -> None:
        if target is None:
            return
        tree, kind = self.tree, self.tree.kind[target]
        if kind == "Name":
            self.write_at(target, value)
        elif kind == "Attribute":
            received = self.value(tree.one(target, "value"))
            if received != NOTHING:
                attr = self.mangled(tree.name[target] or "")
                self.ops.append((":", received, attr, value, self.attribute_site(target)))
                self.events += 1
        elif kind == "Subscript":
            received = self.value(tree.one(target, "value"))
            index = tree.one(target, "slice")
            key_value = self.value(index)
            if received != NOTHING:
                self.ops.append(("]", received, self.key(index), value, self.site(target, "subscript")))
                if key_value != NOTHING:
                    self.ops.append(("k", received, key_value))
                self.events += 1
        elif kind in ("Tuple", "List"):
            self._unpack(tree.many(target, "elts"), value, target)
        elif kind == "Starred":
            self.assign(tree.one(target, "value"), value)
        else:
            self.value(target)

    def write_at(self, target: int, value: Node) -> None:
        """A name at a place gets a value."""
        name = self.tree.name[target] or ""
        self.write(name, value, self.define(VARIABLE, -1, self.place(target), name))

    def _unpack(self, targets: Sequence[int], value: Node, node: int) -> None:
        if value != NOTHING:
            self.special(node, value, ["__iter__"], [], "iteration")
        starred = [at for at, target in enumerate(targets) if self.tree.kind[target] == "Starred"]
        for at, target in enumerate(targets):
            inner = NOTHING
            if value != NOTHING:
                inner = self.new()
                after = len(targets) - at
                place = (
                    f"{at}:{after - 1}"
                    if at in starred
                    else f"-{after}"
                    if starred and at > starred[0]
                    else str(at)
                )
                self.ops.append((",", value, place, inner))
                if at in starred:
                    each, inner = inner, self.container("list")
                    self.ops.append(("]", inner, None, each, NOTHING))
            self.assign(target, inner)

    def do_AugAssign(self, node: int) -> None:
        tree, target = self.tree, self.tree.one(node, "target")
        right = self.value(tree.one(node, "value"))
        if target is None:
            return
        left = self.value(target)
        value = self.operator(node, left, right, "i")
        self.assign(target, value)
        source = tree.one(node, "value")
        if tree.name[target] == "__all__" and source is not None and self.program.exported is not None:
            self.program.exported += self._words(source) or []

    def do_AnnAssign(self, node: int) -> None:
        tree, target, source = self.tree, self.tree.one(node, "target"), self.tree.one(node, "value")
        value = self.value(source)
        hint = self.hint(tree.one(node, "annotation"))
        if hint is not None:
            hinted = self.new()
            self.ops.append(("t", hint, hinted))
            value = self.phi([value, hinted])
        if source is not None or (
            hint is not None and self.frame.owner >= 0 and self.frame.scope.kind == "class"
        ):
            self.assign(target, value)
        elif target is not None and tree.kind[target] == "Name" and hint is not None:
            self.assign(target, value)
        elif target is not None and tree.kind[target] != "Name":
            self.assign(target, value)
        if target is not None:
            self._note_all([target], source)
        if self.frame.scope.kind == "class" and target is not None and tree.kind[target] == "Name":
            self.program.classes[self.frame.owner].fields.append(tree.name[target] or "")

    def do_Return(self, node: int) -> None:
        value = self.value(self.tree.one(node, "value"))
        if self.frame.function >= 0 and self.frame.live:
            function = self.program.functions[self.frame.function]
            numbers = [at for at, each in enumerate(function.parameters) if each.node == value]
            if numbers and value != NOTHING and not function.is_generator and not function.is_async:
                function.returned = sorted({*function.returned, *numbers})
            else:
                self.copy(value, function.result)
        self.frame.live = False

    def do_Raise(self, node: int) -> None:
        value = self.value(self.tree.one(node, "exc"))
        self.value(self.tree.one(node, "cause"))
        if value != NOTHING:
            self.events += 1
            self.ops.append(("r", value, self.site(node, "raise")))
        self.frame.live = False

    def do_Delete(self, node: int) -> None:
        tree = self.tree
        for target in tree.many(node, "targets"):
            self._delete(target)

    def _delete(self, target: int) -> None:
        tree, kind = self.tree, self.tree.kind[target]
        if kind == "Name":
            found = self.frame.scope.find(tree.name[target] or "")
            holder = self.frame.holder(found.home) if found.home else None
            if holder is not None:
                self.bind(holder, found.name, ())
                holder.env.pop(found.name, None)
        elif kind == "Subscript":
            received = self.value(tree.one(target, "value"))
            self.value(tree.one(target, "slice"))
            self.special(target, received, ["__delitem__"], [], "subscript")
        elif kind == "Attribute":
            received = self.value(tree.one(target, "value"))
            if received != NOTHING:
                self.ops.append(
                    ("x", received, self.mangled(tree.name[target] or ""), self.attribute_site(target))
                )
        else:
            for item in tree.many(target, "elts"):
                self._delete(item)

    def do_Assert(self, node: int) -> None:
        test = self.tree.one(node, "test")
        self.truth(test)
        self.narrow(test)
        self.value(self.tree.one(node, "msg"))

    # -- control flow

    def do_If(self, node: int) -> None:
        tree, frame, test = self.tree, self.frame, self.tree.one(node, "test")
        self.truth(test)
        before, live = dict(frame.env), frame.live
        self.narrow(test)
        self.block(tree.many(node, "body"))
        after, body_live = frame.env, frame.live
        frame.env, frame.live = before, live
        self.block(tree.many(node, "orelse"))
        self._join([(after, body_live), (frame.env, frame.live)])
        if not body_live and frame.live:
            self._narrow_otherwise(test)

    def _narrow_otherwise(self, test: int | None) -> None:
        """After `if not isinstance(x, A): return`."""
        op = None if test is None else self.tree.one(test, "op")
        if test is not None and op is not None and self.tree.kind[op] == "Not":
            self.narrow(self.tree.one(test, "operand"))

    def _join(self, ends: Sequence[tuple[Env, bool]]) -> None:
        frame = self.frame
        alive = [env for env, live in ends if live]
        frame.live = bool(alive)
        frame.env = merged(alive or [env for env, _ in ends])
        for name, versions in frame.env.items():
            if len(versions) > MAX_VERSIONS:
                node = self.phi([version.node for version in versions])
                numbers = dict.fromkeys(number for version in versions for number in version.definitions)
                frame.env[name] = (Version(node, list(numbers), min(version.born for version in versions)),)

    def do_For(self, node: int) -> None:
        source = self.value(self.tree.one(node, "iter"))
        element = self.element(node, source)
        self._loop(node, lambda: self.assign(self.tree.one(node, "target"), element))

    do_AsyncFor = do_For

    def do_While(self, node: int) -> None:
        test = self.tree.one(node, "test")

        def head() -> None:
            self.truth(test)
            self.narrow(test)

        self._loop(node, head)

    def _loop(self, node: int, head: Callable[[], object]) -> None:
        tree, frame = self.tree, self.frame
        heads: dict[str, Version] = {}
        for name in self._bound_in(node):
            versions = frame.env.get(name, ())
            made = Version(self.new(), [], self.events)
            for version in versions:
                self.copy(version.node, made.node)
                made.definitions += version.definitions
            heads[name] = made
            frame.env[name] = (made,)
        start = dict(frame.env)
        live = frame.live
        frame.loops.append(Loop())
        head()
        self.block(tree.many(node, "body"))
        loop = frame.loops.pop()
        ends = [*([frame.env] if frame.live else []), *loop.continues]
        for name, made in heads.items():
            for env in ends:
                for version in env.get(name, ()):
                    if version is not made:
                        self.copy(version.node, made.node)
                        made.definitions += [
                            each for each in version.definitions if each not in made.definitions
                        ]
        frame.env, frame.live = merged([start, *ends]), live
        self.block(tree.many(node, "orelse"))
        self._join([(frame.env, frame.live), *((env, True) for env in loop.breaks)])

    def _bound_in(self, node: int) -> list[str]:
        """Names of this frame that the statement may bind."""
        tree, found = self.tree, dict[str, None]()
        for below in range(node + 1, tree.end[node]):
            kind = tree.kind[below]
            name = tree.name[below]
            stored = (
                tree.context.get(below) == "Store"
                if kind == "Name"
                else kind
                in ("FunctionDef", "AsyncFunctionDef", "ClassDef", "ExceptHandler", "MatchAs", "MatchStar")
            )
            if kind == "alias":
                name = self._bound_alias(below)
                stored = name is not None
            if stored and name is not None:
                home = self.frame.scope.find(name)
                if home.home is self.frame.scope:
                    found[home.name] = None
        return list(found)

    def _bound_alias(self, node: int) -> str | None:
        _, name, asname, _ = self.imported[node]
        return str(asname or str(name).partition(".")[0]) if name != "*" else None

    def do_Break(self, node: int) -> None:
        if self.frame.loops and self.frame.live:
            self.frame.loops[-1].breaks.append(dict(self.frame.env))
        self.frame.live = False

    def do_Continue(self, node: int) -> None:
        if self.frame.loops and self.frame.live:
            self.frame.loops[-1].continues.append(dict(self.frame.env))
        self.frame.live = False

    def do_Try(self, node: int) -> None:
        tree, frame = self.tree, self.frame
        before = dict(frame.env)
        live = frame.live
        frame.caught.append({})
        self.block(tree.many(node, "body"))
        caught = frame.caught.pop()
        for outer in frame.caught:
            for name, versions in caught.items():
                outer.setdefault(name, []).extend(versions)
        body_env, body_live = frame.env, frame.live
        entry = {name: (*before.get(name, ()), *versions) for name, versions in caught.items()}
        ends: list[tuple[Env, bool]] = []
        for handler in tree.many(node, "handlers"):
            frame.env, frame.live = (
                {**before, **{name: _distinct(each) for name, each in entry.items()}},
                live,
            )
            self._handler(handler)
            ends.append((frame.env, frame.live))
        frame.env, frame.live = body_env, body_live
        self.block(tree.many(node, "orelse"))
        ends.insert(0, (frame.env, frame.live))
        self._join(ends)
        last = tree.many(node, "finalbody")
        if last:
            alive = frame.live
            frame.live = True
            self.block(last)
            frame.live = frame.live and alive

    do_TryStar = do_Try

    def _handler(self, node: int) -> None:
        tree = self.tree
        classes = self.value(tree.one(node, "type"))
        name = tree.name[node]
        if name is not None:
            value = self.new()
            if classes != NOTHING:
                self.ops.append(("e", classes, value))
            self.write(name, value, self.define(VARIABLE, -1, self.place(node), name))
        self.block(tree.many(node, "body"))
        if name is not None:
            found = self.frame.scope.find(name)
            holder = self.frame.holder(found.home) if found.home else None
            if holder is not None:
                self.bind(holder, found.name, ())
                holder.env.pop(found.name, None)

    def do_With(self, node: int) -> None:
        tree = self.tree
        for item in tree.many(node, "items"):
            expression = tree.one(item, "context_expr")
            source = self.value(expression)
            value = NOTHING
            if source != NOTHING and expression is not None:
                value = self.new()
                self.events += 1
                role = "async_with" if tree.kind[node] == "AsyncWith" else "with"
                self.ops.append(("w", source, value, self.site(expression, role)))
            self.assign(tree.one(item, "optional_vars"), value)
        self.block(tree.many(node, "body"))

    do_AsyncWith = do_With

    def do_Match(self, node: int) -> None:
        tree, frame = self.tree, self.frame
        subject = self.value(tree.one(node, "subject"))
        before, live = frame.env, frame.live
        ends: list[tuple[Env, bool]] = []
        for case in tree.many(node, "cases"):
            frame.env, frame.live = dict(before), live
            pattern = tree.one(case, "pattern")
            if pattern is not None:
                self._pattern(pattern, subject)
            guard = tree.one(case, "guard")
            if guard is not None:
                self.truth(guard)
            self.block(tree.many(case, "body"))
            ends.append((frame.env, frame.live))
        self._join([*ends, (before, live)])

    def _pattern(self, node: int, subject: Node) -> None:
        tree, kind = self.tree, self.tree.kind[node]
        if kind == "MatchAs":
            inner = tree.one(node, "pattern")
            if inner is not None:
                subject = self._narrowed(inner, subject)
                self._pattern(inner, subject)
            name = tree.name[node]
            if name is not None:
                self.write(name, subject, self.define(VARIABLE, -1, self.place(node), name))
        elif kind == "MatchStar":
            name = tree.name[node]
            if name is not None:
                made = self.container("list")
                if subject != NOTHING:
                    each = self.new()
                    self.ops.append((",", subject, None, each))
                    self.ops.append(("]", made, None, each, NOTHING))
                self.write(name, made, self.define(VARIABLE, -1, self.place(node), name))
        elif kind == "MatchSequence":
            for place, inner in enumerate(tree.many(node, "patterns")):
                self._pattern(inner, self._item(subject, place, tree.kind[inner]))
        elif kind == "MatchMapping":
            for key, inner in zip(tree.many(node, "keys"), tree.many(node, "patterns"), strict=False):
                value = NOTHING
                if subject != NOTHING:
                    value = self.new()
                    self.ops.append(
                        ("[", subject, self.key(key), value, self.site(key, "subscript"), NOTHING)
                    )
                self._pattern(inner, value)
            name = tree.name[node]
            if name is not None:
                self.write(name, subject, self.define(VARIABLE, -1, self.place(node), name))
        elif kind == "MatchClass":
            narrowed = self._narrowed(node, subject)
            for inner in tree.many(node, "patterns"):
                self._pattern(inner, NOTHING)
            attrs = (tree.name[node] or "").split(", ")
            for attr, inner in zip(attrs, tree.many(node, "kwd_patterns"), strict=False):
                value = NOTHING
                if narrowed != NOTHING:
                    value = self.new()
                    self.ops.append((".", narrowed, attr, value, self.site(inner, "attribute")))
                self._pattern(inner, value)
        elif kind == "MatchOr":
            for inner in tree.many(node, "patterns"):
                self._pattern(inner, subject)
        else:
            self.value(tree.one(node, "value"))

    def _item(self, subject: Node, place: int, kind: str) -> Node:
        if subject == NOTHING or kind == "MatchStar":
            return subject
        made = self.new()
        self.ops.append((",", subject, str(place), made))
        return made

    def _narrowed(self, pattern: int, subject: Node) -> Node:
        """What is left of the subject if a pattern names its class."""
        cls = self.tree.one(pattern, "cls")
        if cls is None or self.tree.kind[pattern] != "MatchClass":
            return subject
        classes = self.value(cls)
        if classes == NOTHING:
            return subject
        made = self.new()
        self.ops.append(("i", self.new() if subject == NOTHING else subject, classes, made))
        return made

    # -- imports

    def do_Import(self, node: int) -> None:
        for alias in self.tree.many(node, "names"):
            module, name, asname, level = self.imported[alias]
            place = self.place(alias)
            is_from = self.tree.kind[node] == "ImportFrom"
            text = str(module or "") if is_from else str(name)
            star = name == "*"
            bound = None if star else str(asname or (name if is_from else str(name).partition(".")[0]))
            self.events += 1
            self.program.imports.append(
                Import(
                    text,
                    int(level or 0),  # type: ignore[call-overload]
                    str(name) if is_from else None,
                    bound,
                    not is_from and asname is None,
                    place,
                    self.frame.scope.key,
                    bool(self.frame.caught),
                )
            )
            number = len(self.program.imports) - 1
            if bound is None:
                continue
            made = self.new()
            self.ops.append(("m", made, number))
            self.write(bound, made, self.define(IMPORT, number, place, bound))

    do_ImportFrom = do_Import

    # -- definitions

    def do_FunctionDef(self, node: int) -> None:
        tree = self.tree
        decorators = tree.many(node, "decorator_list")
        values = [self.value(decorator) for decorator in decorators]
        name = tree.name[node] or ""
        index = self._function(node, name)
        function = self.program.functions[index]
        for decorator in decorators:
            function.binds = BINDS.get(tree.name[decorator] or "", function.binds)
        made = self.new()
        self.ops.append(("o", made, "F", index))
        made = self._decorated(node, FUNCTION, index, decorators, values, made)
        self.write(name, made, self.define(FUNCTION, index, function.place, name))

    do_AsyncFunctionDef = do_FunctionDef

    def _decorated(
        self, node: int, kind: str, index: int, decorators: Sequence[int], values: Sequence[Node], made: Node
    ) -> Node:
        for decorator, value in reversed(list(zip(decorators, values, strict=True))):
            self.program.decorators.append((self.place(decorator), kind, index, value))
            if value == NOTHING:
                continue
            result = self.new()
            if self.tree.name[decorator] not in QUIET:
                self.events += 1
            site = self.site(decorator, "decorator", self.place(decorator))
            self.ops.append(("(", value, result, site, [(POSITIONAL, None, made)]))
            made = result
        return made

    def _Lambda(self, node: int) -> Node:
        index = self._function(node, self.lambdas[node])
        made = self.new()
        self.ops.append(("o", made, "F", index))
        return made

    def _function(self, node: int, name: str) -> int:
        """A function with its parameters; its body waits."""
        tree, outer = self.tree, self.frame
        kind, scope = tree.kind[node], self.scopes[node]
        is_generator = self._has_yield(node)
        args = tree.one(node, "args")
        defaults = self._defaults(args)
        ops, nodes = len(self.ops), self.program.nodes
        function = Function(
            name=name,
            qualname=outer.named(name),
            place=self.place(node),
            owner=outer.owner if outer.scope.kind == "class" else -1,
            outer=outer.function,
            parameters=[],
            result=self.new(),
            yields=self.new() if is_generator else NOTHING,
            is_async=kind == "AsyncFunctionDef",
            is_generator=is_generator,
            scope_key=scope.key,
            returned=[],
        )
        if function.owner >= 0 and name == "__new__":
            function.binds = "class_argument"
        elif function.owner >= 0 and name in IMPLICIT_CLASS_METHODS:
            function.binds = "class"
        self.program.functions.append(function)
        index = len(self.program.functions) - 1
        frame = Frame(scope, index, qualname=function.qualname)
        self.numbers[scope] = index
        self._parameters(args, defaults, function, index, frame)
        hint = self.hint(tree.one(node, "returns")) if kind in FUNCTIONS else None
        if hint is not None:
            function.hinted_result = self.new()
            self.ops.append(("t", hint, function.hinted_result))
        function.header = (ops, len(self.ops), nodes, self.program.nodes)
        self.waiting.append(lambda: self._body(node, function, frame))
        return index

    def _defaults(self, args: int | None) -> tuple[list[Node], list[Node]]:
        """The values of defaults, which are made where the function is."""
        if args is None:
            return [], []
        tree = self.tree
        named = tree.gapped(args, "kw_defaults", len(tree.many(args, "kwonlyargs")))
        positional = [self.value(default) for default in tree.many(args, "defaults")]
        return positional, [self.value(each) for each in named]

    def _has_yield(self, node: int) -> bool:
        tree, below = self.tree, node + 1
        while below < tree.end[node]:
            if tree.kind[below] in DEFINITIONS:
                below = tree.end[below]
                continue
            if tree.kind[below] in ("Yield", "YieldFrom"):
                return True
            below += 1
        return False

    def _parameters(
        self,
        args: int | None,
        values: tuple[list[Node], list[Node]],
        function: Function,
        index: int,
        frame: Frame,
    ) -> None:
        if args is None:
            return
        tree = self.tree
        only, plain, named = (tree.many(args, slot) for slot in ("posonlyargs", "args", "kwonlyargs"))
        defaults, named_defaults = values
        positional = [*only, *plain]
        padded = [NOTHING] * (len(positional) - len(defaults)) + defaults
        hows = ["positional_only"] * len(only) + ["positional"] * len(plain)
        rows = list(zip(positional, hows, padded, strict=True))
        vararg, kwarg = tree.one(args, "vararg"), tree.one(args, "kwarg")
        rows += [(vararg, "vararg", NOTHING)] if vararg is not None else []
        rows += [(each, "keyword_only", value) for each, value in zip(named, named_defaults, strict=True)]
        rows += [(kwarg, "kwarg", NOTHING)] if kwarg is not None else []
        for number, (node, how, default) in enumerate(rows):
            name = tree.name[node] or ""
            hint = self.hint(tree.one(node, "annotation"))
            if how in ("vararg", "kwarg"):
                made = self.container("tuple" if how == "vararg" else "dict")
                if hint is not None:
                    hinted = self.new()
                    self.ops.append(("t", hint, hinted))
                    self.ops.append(("]", made, None, hinted, NOTHING))
            else:
                made = self.new()
                if hint is not None:
                    self.ops.append(("t", hint, made))
            place = self.place(node)
            if place[0] is not None:
                # Without its annotation.
                place = (place[0], place[0] + len(name.encode("utf-8", "surrogatepass")), place[2])
            parameter = Parameter(name, how, made, default, place, hint is not None)
            function.parameters.append(parameter)
            definition = self.define(PARAMETER, index, place, str(number))
            frame.env[frame.scope.find(name).name] = (Version(made, [definition], -1),)

    def _body(self, node: int, function: Function, frame: Frame) -> None:
        self.frame = frame
        tree = self.tree
        self.forget_phis()
        ops, nodes = len(self.ops), self.program.nodes
        if tree.kind[node] == "Lambda":
            value = self.value(tree.one(node, "body"))
            numbers = [at for at, each in enumerate(function.parameters) if each.node == value]
            if numbers and value != NOTHING and not function.is_generator:
                function.returned = numbers
            else:
                self.copy(value, function.result)
        else:
            self.block(tree.many(node, "body"))
        self._leave(frame)
        function.body = (ops, len(self.ops), nodes, self.program.nodes)

    def do_ClassDef(self, node: int) -> None:
        tree, outer = self.tree, self.frame
        decorators = tree.many(node, "decorator_list")
        values = [self.value(decorator) for decorator in decorators]
        bases = []
        for place, base in enumerate(tree.many(node, "bases")):
            bases.append((self.value(base), self.place(base), place))
        keywords = [
            (tree.name[each] or "", self.value(tree.one(each, "value")))
            for each in tree.many(node, "keywords")
        ]
        name, scope = tree.name[node] or "", self.scopes[node]
        owner = outer.owner if outer.scope.kind == "class" else -1
        cls = Class(
            name,
            outer.named(name),
            self.place(node),
            outer.function,
            owner,
            bases,
            keywords,
            {},
            scope.key,
            [],
        )
        self.program.classes.append(cls)
        index = len(self.program.classes) - 1
        self.frame = Frame(scope, outer.function, qualname=cls.qualname, owner=index, inline=outer)
        self.block(tree.many(node, "body"))
        self._leave(self.frame)
        for attr, versions in self.frame.env.items():
            numbers = [number for version in versions for number in version.definitions]
            cls.attrs[attr] = (self.phi([version.node for version in versions]), list(dict.fromkeys(numbers)))
        self.frame = outer
        made = self.new()
        self.events += 1
        self.ops.append(("o", made, "C", index))
        self.ops.append(("c", index, self.site(node, "class")))
        made = self._decorated(node, CLASS, index, decorators, values, made)
        self.write(name, made, self.define(CLASS, index, cls.place, name))

    def do_TypeAlias(self, node: int) -> None:
        name = self.tree.one(node, "name")
        if name is not None:
            self.assign(name, NOTHING)


def _distinct(versions: Sequence[Version]) -> tuple[Version, ...]:
    return tuple(dict.fromkeys(versions))


def lambda_names(tree: Tree) -> dict[int, str]:
    """Lambdas by number in their scope, in the order of the source: `<lambda1>`, `<lambda2>`."""
    by_scope: dict[int, list[tuple[int, int]]] = {}
    for node, kind in enumerate(tree.kind):
        if kind != "Lambda":
            continue
        child, parent = node, tree.parent[node]
        while parent is not None and not (tree.kind[parent] in DEFINITIONS and tree.slot[child] == "body"):
            child, parent = parent, tree.parent[parent]
        start = tree.bstart[node]
        by_scope.setdefault(-1 if parent is None else parent, []).append(
            (node if start is None else start, node)
        )
    return {
        node: f"<lambda{number}>"
        for found in by_scope.values()
        for number, (_, node) in enumerate(sorted(found), start=1)
    }
