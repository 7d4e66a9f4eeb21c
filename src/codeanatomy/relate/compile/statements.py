"""Compile the syntax tree of a file to its program, statement by statement in execution order.

    program = compile_module(Program(repo_id, file_id, path), tree, scopes, imports, identifiers)

    x = A()              a call into node 1, the first version of x
    while x.more():      node 2, the version at the head of the loop: from 1, and from 7 after a round
        x = x.next()     an attribute of 2, a call of it into 7

Branches are compiled one after the other from the same state, and their versions are joined. Names that a
loop binds get a version of their own at its head, which the end of its body flows into. A handler sees every
version assigned in its `try`. Function bodies are compiled after the code that encloses them.

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from codeanatomy.relate.compile.definitions import DefinitionCompiler
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.variables import Env, Frame, Loop, Version, merge_envs
from codeanatomy.relate.program import (
    NOTHING,
    OP_ANNOTATE,
    OP_EXCEPT,
    OP_RAISE,
    OP_WITH,
    VARIABLE,
    Program,
)
from codeanatomy.syntax_tree import Tree

# Deep enough for expressions such as a sum of some thousand terms.
RECURSION_LIMIT = 30_000
# Versions of a name before they are joined to one.
MAX_VERSIONS = 32


def compile_module(
    program: Program,
    tree: Tree,
    scopes: Mapping[int, Scope],
    imports: Mapping[str, Sequence[object]],
    identifiers: Mapping[tuple[int, int], tuple[int, int]],
) -> Program:
    """Fill the program of a file; return one with failure `too_deep` if its expressions nest too deeply."""
    with _deep_recursion():
        try:
            StatementCompiler(program, tree, scopes, imports, identifiers).run()
        except RecursionError:
            return Program(program.repo_id, program.file_id, program.path, program.ids, failure="too_deep")
    return program


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class StatementCompiler(DefinitionCompiler):
    """Compiles the statements of one file; method `do_for` compiles a For, and so on."""

    def run(self) -> None:
        """Compile the module, then the bodies of its functions, outer ones first."""
        for node, kind in enumerate(self.tree.kind):
            if kind in ("Global", "Nonlocal"):
                self.declared.update((self.tree.name[node] or "").split(", "))
        module = self.frame
        self.block(self.tree.many(0, "body"))
        self.leave(module)
        while self.pending_bodies:
            self.pending_bodies.popleft()()
        self._complete(module)

    def leave(self, frame: Frame) -> None:
        """Add the versions at the end of a frame to the cells, for code that runs later."""
        for name, versions in frame.env.items():
            for version in versions:
                self.cell(frame.scope, name).add(version.node, version.definitions)

    def _complete(self, module: Frame) -> None:
        """Fill cells, module variables and uses, once all bodies are compiled."""
        for (scope, _), cell in self.cells.items():
            if scope is module.scope and cell.node == NOTHING:
                cell.node = self.new_node()
            if scope in self.function_numbers:
                self.program.cells.append((self.function_numbers[scope], cell.node, list(cell.nodes)))
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
        outside = [cell.node for (scope, _), cell in self.cells.items() if scope not in self.function_numbers]
        self.program.shared = [
            *self.consts.values(),
            *self.strings.values(),
            *self.unbound_nodes.values(),
            *outside,
        ]
        self.program.uses = self.complete_uses()

    def block(self, statements: Sequence[int]) -> None:
        """Compile statements one after the other."""
        for node in statements:
            kind = self.tree.kind[node]
            method = self._by_statement.get(kind)
            if method is None:
                method = self._by_statement[kind] = getattr(self, f"do_{kind.lower()}", self._do_other)
            method(node)

    def _do_other(self, node: int) -> None:
        for child in self.tree.children(node):
            self.value(child)

    def do_expr(self, node: int) -> None:
        self.value(self.tree.one(node, "value"))

    def do_assign(self, node: int) -> None:
        targets = self.tree.many(node, "targets")
        source = self.tree.one(node, "value")
        if self._assign_pairwise(targets, source):
            return
        value = self.value(source)
        for target in targets:
            self.assign(target, value)
        self._note_exports(targets, source)

    def _assign_pairwise(self, targets: Sequence[int], source: int | None) -> bool:
        """Compile `a, b = x, y` without a tuple; return False if it has another form."""
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

    def _note_exports(self, targets: Sequence[int], source: int | None) -> None:
        """Set the exported names from an assignment to `__all__`, if it is a list of constants."""
        tree = self.tree
        named = [tree.name[target] for target in targets if tree.kind[target] == "Name"]
        if "__all__" in named and self.frame.scope.kind == "module" and source is not None:
            self.program.exported = self._constant_strings(source)

    def _constant_strings(self, source: int) -> list[str] | None:
        """Return the strings of a list of constants, or of a sum of such; None for another expression."""
        tree = self.tree
        if tree.kind[source] == "BinOp":
            sides = [tree.one(source, side) for side in ("left", "right")]
            lists = [self._constant_strings(side) for side in sides if side is not None]
            return None if None in lists else [name for names in lists for name in names or ()]
        if tree.kind[source] not in ("List", "Tuple", "Set"):
            return None
        constants = [tree.constant(item) for item in tree.many(source, "elts")]
        return [constant for constant in constants if isinstance(constant, str)]

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
            names = self._constant_strings(source)
            self.program.exported = None if names is None else [*self.program.exported, *names]

    def do_annassign(self, node: int) -> None:
        tree, target, source = self.tree, self.tree.one(node, "target"), self.tree.one(node, "value")
        value = self.value(source)
        hint = self.hint(tree.one(node, "annotation"))
        if hint is not None:
            hinted = self.new_node()
            self.ops.append((OP_ANNOTATE, hint, hinted))
            value = self.phi([value, hinted])
        if target is None:
            return
        is_name = tree.kind[target] == "Name"
        if source is not None or hint is not None or not is_name:
            self.assign(target, value)
        self._note_exports([target], source)
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
            self.call_count += 1
            self.ops.append((OP_RAISE, value, self.site(node, "raise")))
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
        """Narrow names after `if not isinstance(x, A): return`."""
        op = None if test is None else self.tree.one(test, "op")
        if test is not None and op is not None and self.tree.kind[op] == "Not":
            self.narrow(self.tree.one(test, "operand"))

    def _join(self, ends: Sequence[tuple[Env, bool]]) -> None:
        """Continue with the versions at all ends of branches that are live."""
        frame = self.frame
        alive = [env for env, live in ends if live]
        frame.live = bool(alive)
        frame.env = merge_envs(alive or [env for env, _ in ends])
        for name, versions in frame.env.items():
            if len(versions) > MAX_VERSIONS:
                node = self.phi([version.node for version in versions])
                numbers = dict.fromkeys(number for version in versions for number in version.definitions)
                frame.env[name] = (
                    Version(node, list(numbers), min(version.calls_before for version in versions)),
                )

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
        """Compile a loop; `head` compiles its test, or the assignment to its target."""
        tree, frame = self.tree, self.frame
        heads: dict[str, Version] = {}
        for name in self._bound_in(node):
            versions = frame.env.get(name, ())
            head_version = Version(self.new_node(), [], self.call_count)
            for version in versions:
                self.copy(version.node, head_version.node)
                head_version.definitions += version.definitions
            heads[name] = head_version
            frame.env[name] = (head_version,)
        start = dict(frame.env)
        live = frame.live
        frame.loops.append(Loop())
        head()
        self.block(tree.many(node, "body"))
        loop = frame.loops.pop()
        ends = [*([frame.env] if frame.live else []), *loop.continues]
        for name, head_version in heads.items():
            for env in ends:
                for version in env.get(name, ()):
                    if version is not head_version:
                        self.copy(version.node, head_version.node)
                        head_version.definitions += [
                            each for each in version.definitions if each not in head_version.definitions
                        ]
        frame.env, frame.live = merge_envs([start, *ends]), live
        self.block(tree.many(node, "orelse"))
        self._join([(frame.env, frame.live), *((env, True) for env in loop.breaks)])

    def _bound_in(self, node: int) -> list[str]:
        """Return the names of this frame that a statement may bind."""
        tree, names = self.tree, dict[str, None]()
        for descendant in range(node + 1, tree.end[node]):
            kind = tree.kind[descendant]
            name = tree.name[descendant]
            is_bound = (
                tree.context.get(descendant) == "Store"
                if kind == "Name"
                else kind
                in ("FunctionDef", "AsyncFunctionDef", "ClassDef", "ExceptHandler", "MatchAs", "MatchStar")
            )
            if kind == "alias":
                name = self._bound_alias(descendant)
                is_bound = name is not None
            if is_bound and name is not None:
                resolved = self.frame.scope.resolve(name)
                if resolved.binding_scope is self.frame.scope:
                    names[resolved.name] = None
        return list(names)

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
        """Compile `finally`: unlike the code after it, it also sees the versions at any raise."""
        frame = self.frame
        normal, was_live = frame.env, frame.live
        seen = merge_envs([normal, {name: _distinct(versions) for name, versions in caught.items()}])
        frame.env, frame.live = dict(seen), True
        self.block(statements)
        kept = {
            name: normal.get(name, ()) for name, versions in frame.env.items() if versions is seen.get(name)
        }
        frame.env = {name: versions for name, versions in {**frame.env, **kept}.items() if versions}
        frame.live = frame.live and was_live

    do_trystar = do_try

    def _handler(self, node: int) -> None:
        tree = self.tree
        classes = self.value(tree.one(node, "type"))
        name = tree.name[node]
        if name is not None:
            value = self.new_node()
            if classes != NOTHING:
                self.ops.append((OP_EXCEPT, classes, value))
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
                value = self.new_node()
                self.call_count += 1
                role = "async_with" if tree.kind[node] == "AsyncWith" else "with"
                self.ops.append((OP_WITH, source, value, self.site(expression, role)))
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
