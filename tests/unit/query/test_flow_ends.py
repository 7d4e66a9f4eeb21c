"""Why a value is followed no further, for places written in the source of the test."""

from __future__ import annotations

import pytest

from codeanatomy.query.lake import Lake
from codeanatomy.query.walks.flow_ends import FlowEnd, Span, definition_ends, origin_ends, use_ends
from support.light_builds import clean_lake

SOURCE = """\
import json


def keep(value):
    return value


class Box:
    pass


def uses(a, b, c, d, e, f, g, h, i):
    json.dumps(a)
    b.send(c)
    unknown_name.send(d)
    keep(*e)
    stored = [f]
    stored[0] = g
    for _ in h:
        pass
    return i.size, stored, f"{a}"


def origins(box, rows):
    one = 1
    two = box.open()
    three = json.loads("1")
    four = [one, two]
    five = rows[0]
    six = one + 1
    seven = Box()
    eight = keep
    return one, two, three, four, five, six, seven, eight
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("ends")
    (folder / "app").mkdir()
    (folder / "app" / "m.py").write_text(SOURCE, encoding="utf-8")
    assert clean_lake(folder / "lake", {"app": folder / "app"}).status == "succeeded"
    return Lake.open(str(folder / "lake"))


def span(line: str, text: str) -> Span:
    """Return the span of the last occurrence of a text in a line."""
    at = SOURCE.index(line) + line.rindex(text)
    return ("m.py", at, at + len(text))


@pytest.mark.parametrize(
    ("line", "name", "kind", "text"),
    [
        ("json.dumps(a)", "a", "external", "argument of json.dumps, which is outside of the repository"),
        ("    b.send(c)", "c", "unresolved", "argument of a call that is not resolved: unknown_receiver"),
        ("stored = [f]", "f", "container", "it is stored in a container"),
        ("stored[0] = g", "g", "container", "it is stored in an element of a container, or unpacked"),
        ("for _ in h", "h", "container", "its elements are iterated"),
        ("return i", "i", "expression", "an attribute of it is used"),
        ('f"{a}', "a", "expression", "it is formatted into a string"),
    ],
)
def test_what_is_done_with_a_value(app: Lake, line: str, name: str, kind: str, text: str) -> None:
    place = span(line, name)
    assert use_ends(app.reader, [place]) == {place: FlowEnd(kind, text)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "value", "kind", "text"),
    [
        ("one = 1", "1", "constant", "a constant"),
        ("two = box.open()", "box.open()", "unresolved", "returned by a call that is not resolved"),
        ("three = json.loads(", "json.loads(", "external", "returned by json.loads, which is outside"),
        ("four = [one, two]", "[one, two]", "container", "a container made here (List)"),
        ("five = rows[0]", "rows[0]", "container", "an element of a container"),
        ("six = one + 1", "one + 1", "expression", "computed by an expression (BinOp)"),
        ("seven = Box()", "Box()", "expression", "a new instance of m.Box"),
        ("eight = keep", "keep", "unknown", "a name without a value that is followed"),
    ],
)
def test_what_made_a_value(app: Lake, line: str, value: str, kind: str, text: str) -> None:
    path, start, end = span(line, value)
    place = (path, start, end + (4 if value.endswith("loads(") else 0))
    (described,) = origin_ends(app.reader, [place]).values()
    assert (described.kind, described.text[: len(text)]) == (kind, text)


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ("for _ in", "_", "set to an element of what a loop iterates"),
        ("def keep(value", "value", "a parameter; no call that passes a value for it is known"),
        ("import json", "json", "imported"),
    ],
)
def test_what_sets_a_variable(app: Lake, line: str, name: str, text: str) -> None:
    place = span(line, name)
    assert [end.text for end in definition_ends(app.reader, [place]).values()] == [text]


def test_spans_that_are_no_expression_have_no_end(app: Lake) -> None:
    assert use_ends(app.reader, []) == origin_ends(app.reader, []) == definition_ends(app.reader, []) == {}
    assert use_ends(app.reader, [("m.py", 1, 2), ("none.py", 0, 5)]) == {}
