"""Packaging files: the entry points that they declare, and the Python that they become."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from codeanatomy.sources.packaging_files import MAX_BYTES, MAX_ENTRY_POINTS, as_python
from codeanatomy.sources.source_file import Source, Unreadable, decode


def declared(path: str, text: str) -> list[tuple[int, str, str]]:
    """Line, group and entry point, as the syntax tree has them."""
    nodes = ast.walk(ast.parse(as_python(path, text)))
    found = [ast.literal_eval(node) for node in nodes if isinstance(node, ast.Dict)]
    lines = [node.lineno for node in ast.walk(ast.parse(as_python(path, text))) if isinstance(node, ast.Dict)]
    return [(line, *item) for line, each in zip(lines, found, strict=True) for item in each.items()]


def test_pyproject() -> None:
    text = dedent(
        """\
        [project.scripts]
        web = "shop.web:run"
        "web-admin" = 'shop.web:run'
        [project.gui-scripts]
        window = "shop.window:Window.open"
        [project.entry-points."shop.plugins"]
        tax = "shop.tax"
        [tool.poetry]
        scripts = {a = "shop:a", b = { reference = "shop:b", type = "console" }, c = { callable = "shop:c" }}
        [tool.poetry.plugins.pytest11]
        shop = "shop.testing:plugin [fast, more]"
        """
    )
    assert declared("pyproject.toml", text) == [
        (2, "console_scripts", "web = shop.web:run"),
        (3, "console_scripts", "web-admin = shop.web:run"),
        (5, "gui_scripts", "window = shop.window:Window.open"),
        (7, "shop.plugins", "tax = shop.tax"),
        (9, "console_scripts", "a = shop:a"),
        (9, "console_scripts", "b = shop:b"),
        (9, "console_scripts", "c = shop:c"),
        (11, "pytest11", "shop = shop.testing:plugin"),
    ]


def test_setup_cfg() -> None:
    text = "[options.entry_points]\nconsole_scripts =\n Web = shop.web:run\n # none\npytest11 = x = shop:x"
    assert declared("a/setup.cfg", text) == [
        (3, "console_scripts", "Web = shop.web:run"),
        (5, "pytest11", "x = shop:x"),
    ]


def test_metadata_of_a_wheel() -> None:
    text = "[console_scripts]\nweb=shop.web:run\n\n[hypothesis]\nshop = shop.given:setup\n"
    assert declared("shop-1.0.dist-info/entry_points.txt", text) == [
        (2, "console_scripts", "web = shop.web:run"),
        (5, "hypothesis", "shop = shop.given:setup"),
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", ""),
        ("pyproject.toml", "[build-system]\nrequires = []\n"),
        ("pyproject.toml", "project = 3\ntool = [1]\n"),
        ("pyproject.toml", "[project]\nscripts = ['a']\nentry-points = { x = 1, y = { z = 2, w = {} } }\n"),
        ("setup.cfg", "[metadata]\nname = x\ndescription\n"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts\n"),
    ],
)
def test_a_file_without_entry_points_has_only_comments(path: str, text: str) -> None:
    assert ast.parse(as_python(path, text)).body == []


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_lines_keep_their_numbers_and_ends(ending: str) -> None:
    text = ending.join(["", "[project.scripts]", " ", '"é" = "x.y:z"  # \u2028', "", ""])
    source = decode("pyproject.toml", text.encode())
    assert isinstance(source, Source)
    assert source.newline == {"\n": "lf", "\r\n": "crlf"}[ending]
    assert [source.line_text(number) for number in (2, 4, 5)] == [
        f"# [project.scripts]{ending}",
        f"{{'console_scripts': 'é = x.y:z'}}  # \"é\" = \"x.y:z\"  # \u2028{ending}",
        ending,
    ]


def test_labels_and_groups_are_no_code() -> None:
    text = '[project.entry-points."g\'\\n"]\n"a\'}; import os #" = "b\\nc:d"\n'
    [(line, group, entry)] = declared("pyproject.toml", text)
    assert (line, group, entry) == (1, "g'\n", "a'}; import os # = b\nc:d")


def many(count: int) -> str:
    return "[project.scripts]\n" + "".join(f"a{number} = 'b:c'\n" for number in range(count))


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("pyproject.toml", "[project", "TOMLDecodeError"),
        ("setup.cfg", "name = x\n", "MissingSectionHeaderError"),
        ("pyproject.toml", "a = " + "[" * 100_000, "RecursionError"),
        ("pyproject.toml", "#" * (MAX_BYTES + 1), "ValueError"),
        ("pyproject.toml", many(MAX_ENTRY_POINTS + 1), "ValueError"),
    ],
)
def test_what_cannot_be_read_is_undecodable(path: str, text: str, message: str) -> None:
    found = decode(path, text.encode())
    assert isinstance(found, Unreadable)
    assert (found.reason, message in found.message) == ("undecodable", True)


def test_other_files_are_not_translated() -> None:
    source = decode("entry_points.txt", b"[a]\n")
    assert isinstance(source, Source)
    assert source.text == "[a]\n"
