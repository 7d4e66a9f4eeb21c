"""A file's syntax tree into its program: statements in the order in which they run.

    program = compile_module(Program(repo_id, file_id, path), tree, scopes, imports, identifiers)

    x = A()              a call into node 1, the first version of x
    while x.more():      node 2, the version at the head of the loop: what is in 1, and in 7 after a round
        x = x.next()     an attribute of 2, a call of it into 7

Branches are walked one after the other from the same state and their versions joined; what a loop binds gets
a version of its own at its head, into which the end of its body leads; a handler sees what was bound anywhere
in its `try`. Function bodies wait until the code around them is done.

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from codeanatomy.relate.compile.definitions import Definers
from codeanatomy.relate.compile.scope_tree import Scope
from codeanatomy.relate.compile.syntax_tree import Tree
from codeanatomy.relate.compile.variables import Env, Frame, Loop, Version, merged
from codeanatomy.relate.program import NOTHING, VARIABLE, Program

# Expressions may be nested this deep: a sum of some thousand terms is.
RECURSION_LIMIT = 30_000
# Versions of a name that are kept apart.
MAX_VERSIONS = 32


def compile_module(
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


class Walk(Definers):
    """The walk through one file."""

    def run(self) -> None:
        """Walk the module, then the bodies of its functions, outer ones first."""
        for node, kind in enumerate(self.tree.kind):
            if kind in ("Global", "Nonlocal"):
                self.declared.update((self.tree.name[node] or "").split(", "))
        module = self.frame
        self.block(self.tree.many(0, "body"))
        self.leave(module)
        while self.waiting:
            self.waiting.popleft()()
        self._finish(module)

    def leave(self, frame: Frame) -> None:
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

    def block(self, statements: Sequence[int]) -> None:
        """Statements one after the other."""
        for node in statements:
            kind = self.tree.kind[node]
            look = self._statements.get(kind)
            if look is None:
                look = self._statements[kind] = getattr(self, f"do_{kind.lower()}", self._do_other)
            look(node)

    def _do_other(self, node: int) -> None:
        for child in self.tree.children(node):
            self.value(child)

    def do_expr(self, node: int) -> None:
        self.value(self.tree.one(node, "value"))

    def do_assign(self, node: int) -> None:
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
            return None if None in found else [word for words in found for word in words or ()]
        if tree.kind[source] not in ("List", "Tuple", "Set"):
            return None
        words = [tree.constant(item) for item in tree.many(source, "elts")]
        return [word for word in words if isinstance(word, str)]

    def do_augassign(self, node: int) -> None:
        tree, target = self.tree, self.tree.one(node, "target")
        right = self.value(tree.one(node, "value"))
        if target is None:
            return
        left = self.value(target)
        value = self.operator(node, left, right, "i")
        self.assign(target, value)
        source = tree.one(node, "value")
        if tree.name[target] == "__all__" and source is not None and self.program.exported is not None:
            words = self._words(source)
            self.program.exported = None if words is None else [*self.program.exported, *words]

    def do_annassign(self, node: int) -> None:
        tree, target, source = self.tree, self.tree.one(node, "target"), self.tree.one(node, "value")
        value = self.value(source)
        hint = self.hint(tree.one(node, "annotation"))
        if hint is not None:
            hinted = self.new()
            self.ops.append(("t", hint, hinted))
            value = self.phi([value, hinted])
        if target is None:
            return
        is_name = tree.kind[target] == "Name"
        if source is not None or hint is not None or not is_name:
            self.assign(target, value)
        self._note_all([target], source)
        if self.frame.scope.kind == "class" and is_name:
            self.program.classes[self.frame.owner].fields.append(self.mangled(tree.name[target] or ""))

    def do_return(self, node: int) -> None:
        value = self.value(self.tree.one(node, "value"))
        if self.frame.function >= 0 and self.frame.live:
            function = self.program.functions[self.frame.function]
            numbers = [at for at, each in enumerate(function.parameters) if each.node == value]
            if numbers and value != NOTHING and not function.is_generator and not function.is_async:
                function.returned = sorted({*function.returned, *numbers})
            else:
                self.copy(value, function.result)
        self.frame.live = False

    def do_raise(self, node: int) -> None:
        value = self.value(self.tree.one(node, "exc"))
        self.value(self.tree.one(node, "cause"))
        if value != NOTHING:
            self.events += 1
            self.ops.append(("r", value, self.site(node, "raise")))
        self.frame.live = False

    def do_delete(self, node: int) -> None:
        tree = self.tree
        for target in tree.many(node, "targets"):
            self._delete(target)

    def do_assert(self, node: int) -> None:
        test = self.tree.one(node, "test")
        self.truth(test)
        self.narrow(test)
        self.value(self.tree.one(node, "msg"))

    def do_if(self, node: int) -> None:
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

    def do_for(self, node: int) -> None:
        source = self.value(self.tree.one(node, "iter"))
        element = self.element(node, source)
        self._loop(node, lambda: self.assign(self.tree.one(node, "target"), element))

    do_asyncfor = do_for

    def do_while(self, node: int) -> None:
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

    def do_break(self, node: int) -> None:
        if self.frame.loops and self.frame.live:
            self.frame.loops[-1].breaks.append(dict(self.frame.env))
        self.frame.live = False

    def do_continue(self, node: int) -> None:
        if self.frame.loops and self.frame.live:
            self.frame.loops[-1].continues.append(dict(self.frame.env))
        self.frame.live = False

    def do_try(self, node: int) -> None:
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
            self._finally(last, entry)

    def _finally(self, statements: Sequence[int], caught: Mapping[str, Sequence[Version]]) -> None:
        """It also sees what stood when something was raised; what comes after it does not."""
        frame = self.frame
        normal, alive = frame.env, frame.live
        seen = merged([normal, {name: _distinct(versions) for name, versions in caught.items()}])
        frame.env, frame.live = dict(seen), True
        self.block(statements)
        kept = {
            name: normal.get(name, ()) for name, versions in frame.env.items() if versions is seen.get(name)
        }
        frame.env = {name: versions for name, versions in {**frame.env, **kept}.items() if versions}
        frame.live = frame.live and alive

    do_trystar = do_try

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
            self.unbind(name)

    def do_with(self, node: int) -> None:
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

    do_asyncwith = do_with

    def do_match(self, node: int) -> None:
        tree, frame = self.tree, self.frame
        subject = self.value(tree.one(node, "subject"))
        before, live = frame.env, frame.live
        ends: list[tuple[Env, bool]] = []
        for case in tree.many(node, "cases"):
            frame.env, frame.live = dict(before), live
            pattern = tree.one(case, "pattern")
            if pattern is not None:
                self.pattern(pattern, subject)
            guard = tree.one(case, "guard")
            if guard is not None:
                self.truth(guard)
            self.block(tree.many(case, "body"))
            ends.append((frame.env, frame.live))
        self._join([*ends, (before, live)])


def _distinct(versions: Sequence[Version]) -> tuple[Version, ...]:
    return tuple(dict.fromkeys(versions))
