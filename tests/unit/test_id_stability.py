"""What an edit does to ids: exactly what `docs/ids.md` promises.

Random modules of functions, classes, lambdas and comprehensions are built, edited, and built again:

- Whitespace, comments and blank lines, and a formatter, change no id.
- An edit directly in a definition changes numbers of that definition, and adds or removes what is inside of
  it. Outside, nothing changes but names: `global x` and `self.x = 1` bind a name in another scope.
- A definition that is moved within its parent keeps its ids, if no other one has its name.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from codeanatomy.definitions import definitions_of
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.node_ids import definition_key
from support import corpus
from support.graph_stage import graph_of
from support.marks import examples
from support.normalize_stage import OPTIONS, source_of

RUFF = Path(sys.executable).with_name("ruff")
NAMES = ("f", "g", "A", "run", "size")
LINES = (
    "x = f(1, key=2)",
    "y = [f(z) for z in x if z]",
    "g = lambda a, b=1: a.size + b",
    "x.run(lambda: 0)(y)",
    "del_me = {k: (v for v in k) for k in x}",
    "self.size = x",
    "import os.path as p, re",
    "from os import getcwd",
    'print(f"{x!r} {f(y)}")',
    "x: int = 1",
    "try:\n    f()\nexcept E as e:\n    raise\nfinally:\n    g = [1 for _ in x]",
    "for i in x:\n    if i:\n        continue\n    y += i\nelse:\n    pass",
    "with f(x) as y, g() as z:\n    pass",
    "global total\ntotal = 1",
    "assert x, 'no'",
)


class Block(NamedTuple):
    """A function or class, or the module."""

    header: str
    name: str
    # Lines of text and inner blocks.
    body: tuple[str | Block, ...]


def blocks(depth: int = 2) -> st.SearchStrategy[Block]:
    inner = st.sampled_from(LINES) if depth == 0 else st.one_of(st.sampled_from(LINES), blocks(depth - 1))
    headers = (
        "def {0}(self, x, *y, k=lambda: 0):",
        "@g\n@f(lambda: 1)\ndef {0}(x: 'int', y=f(2)) -> [t for t in x]:",
        "async def {0}():",
        "class {0}(f, key=g(3)):",
    )
    return st.builds(
        lambda header, name, body: Block(header.format(name), name, tuple(body)),
        st.sampled_from(headers),
        st.sampled_from(NAMES),
        st.lists(inner, max_size=4),
    )


MODULES = st.lists(st.one_of(st.sampled_from(LINES), blocks()), min_size=1, max_size=6).map(
    lambda body: Block("", "", tuple(body))
)


def rendered(block: Block, indent: str = "    ", noise: random.Random | None = None, depth: int = 0) -> str:
    """Source text of a block; with noise, it has comments, blank lines and spaces."""
    lines: list[str] = []
    pad = indent * depth
    for each in block.body or ("pass",):
        if noise is not None and noise.random() < 0.5:
            lines += [f"{pad}# note {noise.random()}", ""]
        if isinstance(each, str):
            lines += [pad + line.replace("    ", indent) for line in each.split("\n")]
            if noise is not None:
                lines[-1] += "  # why"
        else:
            lines += [pad + line for line in each.header.split("\n")]
            lines.append(rendered(each, indent, noise, depth + 1).rstrip("\n"))
    return "\n".join(lines) + "\n"


def paths_of(block: Block, outer: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    """Qualified paths of the named definitions, and how to get there."""
    seen: dict[str, int] = {}
    for index, each in enumerate(block.body):
        if isinstance(each, Block):
            number = seen.get(each.name, 0)
            seen[each.name] = number + 1
            path = f"{outer}.{each.name}" if outer else each.name
            path += f"#{number}" if number else ""
            yield path, (index,)
            for inner, way in paths_of(each, path):
                yield inner, (index, *way)


def edited(block: Block, way: tuple[int, ...], line: str, at: int, how: str) -> Block:
    """The block with one line added, removed or replaced in the block at the end of the way."""
    body = list(block.body)
    if way:
        inner = body[way[0]]
        assert isinstance(inner, Block)
        body[way[0]] = edited(inner, way[1:], line, at, how)
    else:
        lines = [index for index, each in enumerate(body) if isinstance(each, str)]
        if how == "add" or not lines:
            body.insert(at % (len(body) + 1), line)
        elif how == "remove":
            del body[lines[at % len(lines)]]
        else:
            body[lines[at % len(lines)]] = line
    return block._replace(body=tuple(body))


def ids_of(text: str) -> dict[str, str]:
    """Kinds of the nodes of a file by id."""
    try:
        compile(text, "m.py", "exec")
    except SyntaxError:
        # A `global` after a use of the name.
        reject()
    rows = graph_of({"m.py": text}, "default").nodes
    assert len({row["node_id"] for row in rows}) == len(rows)
    return {row["node_id"]: row["node_kind"] for row in rows}


@pytest.mark.system
@settings(max_examples=examples(400), deadline=None)
@given(MODULES, st.randoms(use_true_random=False))
def test_whitespace_and_comments_change_no_id(module: Block, noise: random.Random) -> None:
    assert ids_of(rendered(module)) == ids_of("#!/x\n\n" + rendered(module, "  ", noise))


@pytest.mark.system
@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_an_edit_in_a_definition_changes_no_id_outside(data: st.DataObject) -> None:
    module = data.draw(MODULES)
    path, way = data.draw(st.sampled_from([("", ()), *paths_of(module)]))
    line = data.draw(st.sampled_from(LINES))
    how = data.draw(st.sampled_from(("add", "remove", "replace")))
    changed = edited(module, way, line, data.draw(st.integers(0, 5)), how)
    before, after = ids_of(rendered(module)), ids_of(rendered(changed))
    own = definition_key("test", "m.py", path)
    inside = keys_inside(module, path) | keys_inside(changed, path)
    for node in before.keys() ^ after.keys():
        kind = before.get(node) or after[node]
        is_named = kind in ("BINDING", "QUALIFIED_NAME", "EXTERNAL_MODULE", "TYPE")
        assert is_named or own in node or any(key in node for key in inside), (path, line, node)


def keys_inside(module: Block, path: str) -> set[str]:
    """Keys of all definitions of a module that are lexically inside of another one."""
    nodes = ast_files_v1(source_of(rendered(module).encode()), OPTIONS).cells["nodes"]
    lead = f"{path}." if path else ""
    own = (each for each in definitions_of(nodes)["path"] if each.startswith(lead))
    # In the module itself, only what no function or class contains.
    named = {each for each, _ in paths_of(module)}
    return {
        definition_key("test", "m.py", each)
        for each in own
        if path or not any(each == name or each.startswith(f"{name}.") for name in named)
    }


@settings(max_examples=examples(200), deadline=None)
@given(MODULES, st.integers(0, 5), st.integers(0, 5))
@pytest.mark.system
def test_a_moved_definition_keeps_its_ids(module: Block, first: int, second: int) -> None:
    """Functions and classes that change places, all with names of their own."""
    body = [
        each._replace(name=f"d{index}", header=each.header.replace(f" {each.name}(", f" d{index}(", 1))
        for index, each in enumerate(module.body)
        if isinstance(each, Block)
    ]
    if not body:
        return
    moved = list(body)
    moved.insert(first % len(moved), moved.pop(second % len(moved)))
    one, other = (ids_of(rendered(module._replace(body=tuple(each)))) for each in (body, moved))
    # The module runs the definitions in another order: what is numbered in it may differ.
    own = definition_key("test", "m.py")
    assert {each for each in one.items() if own not in each[0]} == {
        each for each in other.items() if own not in each[0]
    }


FORMATTED = """
def f ( a,b = ( 1 ) , ):
    x=[ y for y in a if(y) ];  z = { 'k' : (lambda q:q)( x ), **b }
    if (x) : return ( z )
    return a.very_long_attribute_name.another_long_attribute(x, y=z).method(b)[0].third_method("text" "more")
class A (f) :
    def m(self) :  return( self.x , )
"""


def test_a_formatter_changes_no_id() -> None:
    assert ids_of(FORMATTED) == ids_of(formatted(FORMATTED, 40)) == ids_of(formatted(FORMATTED, 110))


@pytest.mark.system
@pytest.mark.parametrize("package", ["requests", pytest.param("flask", marks=pytest.mark.system)])
def test_a_formatter_changes_no_id_of_real_files(package: str) -> None:
    """All files of a package, formatted with short lines."""
    for path in sorted(corpus.package(package).rglob("*.py")):
        text = path.read_text("utf-8")
        assert ids_of(text) == ids_of(formatted(text, 60)), path


def formatted(text: str, width: int) -> str:
    command = [str(RUFF), "format", "--isolated", "--line-length", str(width), "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout
