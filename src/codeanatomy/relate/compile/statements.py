"""Compile the syntax tree of a file to its program, statement by statement in execution order.

    failure = compile_module(program, tree, scopes, imports, identifiers)      # None, or why it is not filled

    x = A()              a call into node 1, the first version of x
    while x.more():      node 2, the version at the head of the loop: from 1, and from 7 after a round
        x = x.next()     an attribute of 2, a call of it into 7

Branches are compiled one after the other from the same state, and their versions are joined. Names that a
loop binds get a version of their own at its head, which the end of its body flows into. A handler sees every
version assigned in its `try`. Function bodies are compiled after the code that encloses them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from codeanatomy.file_view import Columns
from codeanatomy.relate import program as ir
from codeanatomy.relate.compile.annotations import read_hint
from codeanatomy.relate.compile.builder import Builder, Identifiers
from codeanatomy.relate.compile.definitions import (
    bound_name,
    compile_class,
    compile_function,
    compile_import,
    name_lambdas,
    return_value,
)
from codeanatomy.relate.compile.expressions import EXPRESSIONS, apply_operator, check_truth, narrow
from codeanatomy.relate.compile.names import complete_names, join, leave, unbind, write_variable
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.targets import assign, delete, match_pattern
from codeanatomy.relate.compile.variables import Env, Loop, Version, merge_envs
from codeanatomy.relate.program import NOTHING, Program
from codeanatomy.syntax_tree import FUNCTIONS, Tree

# Deep enough for expressions such as a sum of some thousand terms.
RECURSION_LIMIT = 30_000
# Versions of a name before they are joined to one.
MAX_VERSIONS = 32
# Nodes that bind the name in their field; a Name only if it is stored.
BINDING_NODES = FUNCTIONS | {"ClassDef", "ExceptHandler", "MatchAs", "MatchStar", "MatchMapping"}


def compile_module(
    program: Program, tree: Tree, scopes: Mapping[int, Scope], imports: Columns, identifiers: Identifiers
) -> str | None:
    """Fill the program of a file; return `too_deep` if its expressions nest too deeply."""
    b = Builder(program, tree, scopes, imports, identifiers, name_lambdas(tree), EXPRESSIONS, STATEMENTS)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        _compile_bodies(b)
    except RecursionError:
        return "too_deep"
    finally:
        sys.setrecursionlimit(limit)
    return None


def _compile_bodies(b: Builder) -> None:
    """Compile the module, then the bodies of its functions, outer ones first."""
    for name, kind in zip(b.tree.name, b.tree.kind, strict=True):
        if kind in ("Global", "Nonlocal"):
            b.declared.update((name or "").split(", "))
    module = b.frame
    b.block(b.tree.many(0, "body"))
    leave(b, module)
    # A body may add others. None of them is kept, as each holds the builder and all that it has.
    while b.pending_bodies:
        b.pending_bodies.popleft()()
    complete_names(b, module)


def _value(b: Builder, node: int) -> None:
    b.value(b.tree.child(node, "value"))


def _assign(b: Builder, node: int) -> None:
    targets, source = b.tree.many(node, "targets"), b.tree.child(node, "value")
    if _assign_pairwise(b, targets, source):
        return
    value = b.value(source)
    for target in targets:
        assign(b, target, value)
    _note_exports(b, targets, source)
    if len(targets) == 1:
        _note_field(b, targets[0], None, source)


# Functions of attrs that make a field of a name without annotation.
FIELD_FUNCTIONS = frozenset({"field", "ib", "attrib"})


def _note_field(b: Builder, target: int, annotation: int | None, source: int | None) -> None:
    """Note a name of a class body that may be a field."""
    tree = b.tree
    if b.frame.scope.kind != "class" or tree.kind[target] != "Name":
        return
    while annotation is not None and tree.kind[annotation] == "Subscript":
        annotation = tree.child(annotation, "value")
    form = None if annotation is None else tree.name[annotation] or str(tree.constant(annotation) or "")
    called, options = None, {}
    if source is not None and tree.kind[source] == "Call":
        called, options = tree.name[tree.child(source, "func")], b.options(source)
    if form is None and called not in FIELD_FUNCTIONS:
        return
    name = b.attribute_name(target)
    b.program.classes[b.frame.owner].fields.append(ir.Field(name, form, source is not None, called, options))


def _assign_pairwise(b: Builder, targets: Sequence[int], source: int) -> bool:
    """Compile `a, b = x, y` without a tuple; return False if it has another form."""
    tree = b.tree
    if len(targets) != 1 or {tree.kind[targets[0]], tree.kind[source]} != {"Tuple"}:
        return False
    left, right = tree.many(targets[0], "elts"), tree.many(source, "elts")
    if len(left) != len(right) or any(tree.kind[item] == "Starred" for item in (*left, *right)):
        return False
    values = [b.value(item) for item in right]
    for target, value in zip(left, values, strict=True):
        assign(b, target, value)
    return True


def _note_exports(b: Builder, targets: Sequence[int], source: int | None) -> None:
    """Set the exported names from an assignment to `__all__`, if it is a list of constants."""
    named = [b.tree.name[target] for target in targets if b.tree.kind[target] == "Name"]
    if "__all__" in named and b.frame.scope.kind == "module" and source is not None:
        b.program.exported = _constant_strings(b.tree, source)


def _constant_strings(tree: Tree, source: int) -> list[str] | None:
    """Return the strings of a list of constants, or of a sum of such; None for another expression."""
    if tree.kind[source] == "BinOp":
        lists = [_constant_strings(tree, tree.child(source, side)) for side in ("left", "right")]
        return None if None in lists else [name for names in lists for name in names or ()]
    if tree.kind[source] not in ("List", "Tuple", "Set"):
        return None
    constants = [tree.constant(item) for item in tree.many(source, "elts")]
    return [constant for constant in constants if isinstance(constant, str)]


def _augmented_assign(b: Builder, node: int) -> None:
    target, source = b.tree.child(node, "target"), b.tree.child(node, "value")
    right = b.value(source)
    assign(b, target, apply_operator(b, node, b.value(target), right, "i"))
    if b.tree.name[target] == "__all__" and b.program.exported is not None:
        names = _constant_strings(b.tree, source)
        b.program.exported = None if names is None else [*b.program.exported, *names]


def _annotated_assign(b: Builder, node: int) -> None:
    target, source = b.tree.child(node, "target"), b.tree.one(node, "value")
    value, annotation = b.value(source), b.tree.child(node, "annotation")
    hinted = b.annotate(read_hint(b, annotation))
    if source is not None or hinted != NOTHING or b.tree.kind[target] != "Name":
        assign(b, target, b.phi([value, hinted]))
    _note_exports(b, [target], source)
    _note_field(b, target, annotation, source)


def _return(b: Builder, node: int) -> None:
    value = b.value(b.tree.one(node, "value"))
    if b.frame.function >= 0 and b.frame.live:
        return_value(b, b.program.functions[b.frame.function], value)
    b.frame.live = False


def _raise(b: Builder, node: int) -> None:
    value = b.value(b.tree.one(node, "exc"))
    b.value(b.tree.one(node, "cause"))
    if value != NOTHING:
        b.call_count += 1
        b.ops.append((ir.OP_RAISE, value, b.site(node, "raise")))
    b.frame.live = False


def _delete(b: Builder, node: int) -> None:
    for target in b.tree.many(node, "targets"):
        delete(b, target)


def _assert(b: Builder, node: int) -> None:
    _check_test(b, b.tree.child(node, "test"))
    b.value(b.tree.one(node, "msg"))


def _check_test(b: Builder, test: int) -> None:
    """Compile a test, and narrow names for code that runs if it is true."""
    check_truth(b, test)
    narrow(b, test)


def _if(b: Builder, node: int) -> None:
    tree, frame, test = b.tree, b.frame, b.tree.child(node, "test")
    check_truth(b, test)
    before, live = dict(frame.env), frame.live
    narrow(b, test)
    b.block(tree.many(node, "body"))
    after, body_live = frame.env, frame.live
    frame.env, frame.live = before, live
    b.block(tree.many(node, "orelse"))
    _join(b, [(after, body_live), (frame.env, frame.live)])
    is_not = tree.kind[test] == "UnaryOp" and tree.kind[tree.child(test, "op")] == "Not"
    if is_not and frame.live and not body_live:
        # After `if not isinstance(x, A): return`.
        narrow(b, tree.child(test, "operand"))


def _join(b: Builder, ends: Sequence[tuple[Env, bool]]) -> None:
    """Continue with the versions at all ends of branches that are live."""
    frame = b.frame
    alive = [env for env, live in ends if live]
    frame.live = bool(alive)
    frame.env = merge_envs(alive or [env for env, _ in ends])
    for name, versions in frame.env.items():
        if len(versions) > MAX_VERSIONS:
            frame.env[name] = (Version(*join(b, versions), min(each.calls_before for each in versions)),)


def _for(b: Builder, node: int) -> None:
    element = b.iterate(node, b.value(b.tree.child(node, "iter")))
    _loop(b, node, lambda: assign(b, b.tree.child(node, "target"), element))


def _while(b: Builder, node: int) -> None:
    _loop(b, node, lambda: _check_test(b, b.tree.child(node, "test")))


def _loop(b: Builder, node: int, head: Callable[[], object]) -> None:
    """Compile a loop; `head` compiles its test, or the assignment to its target."""
    tree, frame = b.tree, b.frame
    heads: dict[str, Version] = {}
    for name in _bound_in(b, node):
        head_version = heads[name] = Version(b.new_node(), [], b.call_count)
        for version in frame.env.get(name, ()):
            b.copy(version.node, head_version.node)
            head_version.definitions += version.definitions
        frame.env[name] = (head_version,)
    start, live = dict(frame.env), frame.live
    frame.loops.append(Loop([], []))
    head()
    b.block(tree.many(node, "body"))
    loop = frame.loops.pop()
    ends = [*([frame.env] if frame.live else []), *loop.continues]
    for name, head_version in heads.items():
        for version in (version for env in ends for version in env.get(name, ())):
            if version is not head_version:
                b.copy(version.node, head_version.node)
                head_version.definitions += [
                    each for each in version.definitions if each not in head_version.definitions
                ]
    frame.env, frame.live = merge_envs([start, *ends]), live
    b.block(tree.many(node, "orelse"))
    _join(b, [(frame.env, frame.live), *((env, True) for env in loop.breaks)])


def _bound_in(b: Builder, node: int) -> list[str]:
    """Return the names of this frame that a statement may bind."""
    tree, scope, names = b.tree, b.frame.scope, dict[str, None]()
    for descendant in range(node + 1, tree.end[node]):
        kind, name = tree.kind[descendant], tree.name[descendant]
        if kind == "alias":
            name = bound_name(b, descendant)
        elif kind not in BINDING_NODES and (kind != "Name" or tree.context.get(descendant) != "Store"):
            continue
        if name is not None:
            resolved = scope.resolve(name)
            if resolved.binding_scope is scope:
                names[resolved.name] = None
    return list(names)


def _jump(b: Builder, node: int) -> None:
    """Compile `break` or `continue`."""
    if b.frame.loops and b.frame.live:
        loop = b.frame.loops[-1]
        (loop.breaks if b.tree.kind[node] == "Break" else loop.continues).append(dict(b.frame.env))
    b.frame.live = False


def _try(b: Builder, node: int) -> None:
    tree, frame = b.tree, b.frame
    before, live = dict(frame.env), frame.live
    frame.caught.append({})
    b.block(tree.many(node, "body"))
    caught = frame.caught.pop()
    for outer in frame.caught:
        for name, versions in caught.items():
            outer.setdefault(name, []).extend(versions)
    body_env, body_live = frame.env, frame.live
    entry = {
        name: tuple(dict.fromkeys((*before.get(name, ()), *versions))) for name, versions in caught.items()
    }
    ends: list[tuple[Env, bool]] = []
    for handler in tree.many(node, "handlers"):
        frame.env, frame.live = {**before, **entry}, live
        _handle(b, handler)
        ends.append((frame.env, frame.live))
    frame.env, frame.live = body_env, body_live
    b.block(tree.many(node, "orelse"))
    _join(b, [(frame.env, frame.live), *ends])
    last = tree.many(node, "finalbody")
    if last:
        _finish(b, last, entry)


def _finish(b: Builder, statements: Sequence[int], caught: Env) -> None:
    """Compile `finally`: unlike the code after it, it also sees the versions at any raise."""
    frame = b.frame
    normal, was_live = frame.env, frame.live
    seen = merge_envs([normal, caught])
    frame.env, frame.live = dict(seen), True
    b.block(statements)
    kept = {name: normal.get(name, ()) for name, versions in frame.env.items() if versions is seen.get(name)}
    frame.env = {name: versions for name, versions in {**frame.env, **kept}.items() if versions}
    frame.live = frame.live and was_live


def _handle(b: Builder, handler: int) -> None:
    classes = b.value(b.tree.one(handler, "type"))
    name = b.tree.name[handler]
    if name is not None:
        value = b.new_node()
        if classes != NOTHING:
            b.ops.append((ir.OP_EXCEPT, classes, value))
        write_variable(b, handler, value)
    b.block(b.tree.many(handler, "body"))
    if name is not None:
        unbind(b, name)


def _with(b: Builder, node: int) -> None:
    tree = b.tree
    role = "async_with" if tree.kind[node] == "AsyncWith" else "with"
    for item in tree.many(node, "items"):
        expression, target = tree.child(item, "context_expr"), tree.one(item, "optional_vars")
        value = b.run(ir.OP_WITH, b.value(expression), expression, role)
        if target is not None:
            assign(b, target, value)
    b.block(tree.many(node, "body"))


def _match(b: Builder, node: int) -> None:
    tree, frame = b.tree, b.frame
    subject = b.value(tree.child(node, "subject"))
    before, live = frame.env, frame.live
    ends: list[tuple[Env, bool]] = []
    for case in tree.many(node, "cases"):
        frame.env, frame.live = dict(before), live
        match_pattern(b, tree.child(case, "pattern"), subject)
        check_truth(b, tree.one(case, "guard"))
        b.block(tree.many(case, "body"))
        ends.append((frame.env, frame.live))
    _join(b, [*ends, (before, live)])


def _type_alias(b: Builder, node: int) -> None:
    # Its value is not followed.
    assign(b, b.tree.child(node, "name"), NOTHING)


# By kind of a node; of another kind only the expressions in it are compiled.
STATEMENTS = {
    "AnnAssign": _annotated_assign,
    "Assert": _assert,
    "Assign": _assign,
    "AsyncFor": _for,
    "AsyncFunctionDef": compile_function,
    "AsyncWith": _with,
    "AugAssign": _augmented_assign,
    "Break": _jump,
    "ClassDef": compile_class,
    "Continue": _jump,
    "Delete": _delete,
    "Expr": _value,
    "For": _for,
    "FunctionDef": compile_function,
    "If": _if,
    "Import": compile_import,
    "ImportFrom": compile_import,
    "Match": _match,
    "Raise": _raise,
    "Return": _return,
    "Try": _try,
    "TryStar": _try,
    "TypeAlias": _type_alias,
    "While": _while,
    "With": _with,
}
