"""Decoding, lines and positions against CPython itself: what `ast.parse` makes of the raw bytes."""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
import warnings
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codeanatomy.sources.source_file import Source, Unreadable, decode
from support.marks import examples

# Messages of CPython, which changed.
UNDEFINED = "undefined encoding" if sys.version_info >= (3, 12) else "decoding with 'undefined' codec failed"
IDNA = "idna" if sys.version_info >= (3, 13) else "ascii"
BOM = b"\xef\xbb\xbf"
NEWLINES = ("\n", "\r\n", "\r")


def read(raw: bytes) -> Source:
    source = decode("a.py", raw)
    assert isinstance(source, Source), source
    return source


def tree(code: str | bytes) -> str | None:
    """CPython's tree with all positions as text; null where it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.dump(ast.parse(code), include_attributes=True)
        except (SyntaxError, ValueError):
            return None


def decoded(raw: bytes, encoding: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return raw.decode(encoding)


# Encodings.

# As they may be written in a cookie: aliases, prefixes CPython knows, no text encodings, and no encodings.
NAMES = (
    *("utf-8", "utf8", "UTF_8", "u8", "utf-8-unix", "utf-8-sig", "utf_8_sig", "utf8-sig", "cp65001"),
    *("latin-1", "LATIN1", "l1", "iso-8859-1", "iso-8859-1-unix", "iso-latin-1-x", "iso_8859_15"),
    *(
        "ascii",
        "us-ascii",
        "cp1252",
        "koi8-r",
        "mac-roman",
        "cp037",
        "utf-7",
        "utf-16",
        "utf-16-le",
        "utf-32",
    ),
    *("shift_jis", "euc-jp", "iso2022_jp", "gbk", "gb18030", "big5", "hz", "palmos", "ptcp154"),
    *("unicode_escape", "raw_unicode_escape", "charmap", "undefined", "idna", "mbcs", "oem"),
    *("rot13", "hex", "zip", "bz2", "base64", "uu", "quopri"),
    *("nope", "", ".", "..", "a.b", "aliases", "utf-8.", "string_escape"),
)
COOKIES = (
    *("# coding: {}", "# -*- coding: {} -*-", "# vim: set fileencoding={} :", "#coding={}", "# encoding={}"),
    *("  # coding:\t{}", "\f# coding: {}", "\t\f #coding:{}é", "# é coding: {}", "# coding: é coding:{}"),
    *("# coding : {}", "# Coding: {}", "x = 1 # coding: {}", "'# coding: {}'", "é # coding: {}"),
)
OTHERS = ("", "#", "# é", "   ", "\t\f ", "x = 1", "\\", "\x0b", "'''", "é = 'ü'")
BODIES = ("", "x = 'é'", "x = '''é\r\nü\r😀'''\n", "x = 'abc' # é\n", "x = '\\d'", "x = '+AOk-'", "+AAo-")
first_lines = st.one_of(
    st.builds(str.format, st.sampled_from(COOKIES), st.sampled_from(NAMES)), st.sampled_from(OTHERS)
)
heads = st.lists(st.tuples(first_lines, st.sampled_from((*NEWLINES, "\f", "\n\n"))), max_size=3)


def agree(raw: bytes) -> None:
    """We read what CPython reads, as the same text.

    One difference is wanted: given bytes without a cookie (an import; not `python a.py`), CPython does not
    look into comments, so they may have bytes that are no UTF-8. No text can hold these.
    """
    source = decode("a.py", raw)
    if isinstance(source, Source):
        assert tree(source.text) == tree(raw)
        assert source.utf8.decode("utf-8") == source.text
        assert source.text == decoded(raw[len(BOM) * source.has_bom :], source.encoding)
    elif "'utf-8' codec can't decode" not in source.message:
        assert tree(raw) is None


@given(
    heads,
    st.sampled_from(BODIES),
    st.sampled_from(("utf-8", "latin-1", "cp1252", "shift_jis", "utf-16", "utf-16-le", "utf-7")),
    st.sampled_from((b"", b"", BOM)),
)
@settings(max_examples=examples(1_000), deadline=None)
@example([("# é", "\n"), ("# coding: latin-1", "\n")], "x = 'é'", "latin-1", b"")
@example([("# é coding: latin-1", "\n")], "x = 'é'", "latin-1", b"")
@example([("", "\r"), ("\f# coding: cp1252", "\r")], "x = 'é'", "cp1252", b"")
@example([("# coding: utf8", "\n")], "", "utf-8", BOM)
def test_cpython_reads_the_same(head: list[tuple[str, str]], body: str, encoding: str, bom: bytes) -> None:
    text = "".join(line + newline for line, newline in head) + body
    # A codec that sees escapes sees other ones after CPython has unified the line ends.
    if "escape" not in text or "\r" not in text:
        agree(bom + text.encode(encoding, "replace"))


@given(st.binary(max_size=30), st.sampled_from(("", "latin-1", "shift_jis", "gb18030", "ascii", "cp1252")))
@settings(max_examples=examples(300), deadline=None)
def test_cpython_reads_the_same_bytes(payload: bytes, cookie: str) -> None:
    payload = re.sub(rb"['\\\r\n\0]", b"", payload)
    head = f"# coding: {cookie}\n".encode() if cookie else b""
    agree(head + b"x = '" + payload + b"'\n")
    agree(payload)


def test_a_cookie_may_come_after_any_bytes() -> None:
    for first in ("# é\n# coding: latin-1\n", "# é coding: latin-1\n", "\n# é coding=latin-1\n"):
        source = read(f"{first}x = 'ü'\n".encode("latin-1"))
        assert (source.encoding, source.text) == ("iso-8859-1", f"{first}x = 'ü'\n")


@pytest.mark.parametrize("size", [50_000, 99_998, 99_999, 100_000, 200_001])
def test_long_first_lines(size: int) -> None:
    """A limit on what is searched for a cookie must not cut a character, or a cookie."""
    for text in (
        "'" + "é" * size + "'",
        "#" + "é" * size + " coding: utf-8\n",
        "#" * size + "\n# coding: utf8\n",
    ):
        assert read(text.encode()).text == text
    text = "#" + "x" * size + "\n# coding: latin-1\n'é'"
    assert read(text.encode("latin-1")).text == text


@pytest.mark.parametrize(
    ("cookie", "name"),
    [
        ("utf8", "utf-8"),
        ("UTF-8", "utf-8"),
        ("utf-8-unix", "utf-8"),
        ("u8", "utf-8"),
        ("latin-1", "iso-8859-1"),
        ("LATIN1", "iso-8859-1"),
        ("l1", "iso-8859-1"),
        ("CP1252", "cp1252"),
        ("windows-1252", "cp1252"),
        ("sjis", "shift_jis"),
    ],
)
def test_an_encoding_has_one_name(cookie: str, name: str) -> None:
    assert read(f"# coding: {cookie}\n".encode()).encoding == name


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    source = read(BOM + b"x = '\xc3\xa9'")
    assert (source.text, source.encoding, source.has_bom) == ("x = 'é'", "utf-8", True)
    assert source.raw == BOM + source.utf8
    assert (read(BOM).text, read(BOM).has_bom, read(b"").has_bom) == ("", True, False)
    # Only one is a mark.
    assert read(BOM + BOM).text == "\ufeff"
    assert read(BOM + b"# coding: utf-8\n").text == "# coding: utf-8\n"
    for cookie in ("latin-1", "utf8", "utf-16"):
        assert isinstance(decode("a.py", BOM + f"# coding: {cookie}\n".encode()), Unreadable)


@pytest.mark.parametrize(
    ("raw", "reason", "said"),
    [
        (
            b"x = '\xe9'",
            "undecodable",
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 5",
        ),
        (b"# \xe9", "undecodable", "UnicodeDecodeError: 'utf-8' codec"),
        (b"\xed\xa0\x80", "undecodable", "UnicodeDecodeError: 'utf-8' codec"),
        (b"# coding: ascii\n'\xe9'", "undecodable", "UnicodeDecodeError: 'ascii' codec"),
        (b"# coding: nope\n", "undecodable", "SyntaxError: unknown encoding: nope"),
        (b"# coding: rot13\n", "undecodable", "LookupError: 'rot-13' is not a text encoding"),
        (b"# coding: hex\n", "undecodable", "LookupError: 'hex' is not a text encoding"),
        (b"# coding: zip\n", "undecodable", "LookupError: 'zlib' is not a text encoding"),
        (b"# coding: undefined\n", "undecodable", f"UnicodeError: {UNDEFINED}"),
        (b"# coding: idna\n\xe9", "undecodable", f"UnicodeDecodeError: '{IDNA}' codec"),
        (b"# coding: shift_jis\n'\x81'", "undecodable", "UnicodeDecodeError: 'shift_jis' codec"),
        # Text, but no Unicode: half of a surrogate pair.
        (b"# coding: utf-7\n'+2AA-'", "undecodable", "UnicodeEncodeError: 'utf-8' codec"),
        (b"# coding: raw_unicode_escape\n'\\ud800'", "undecodable", "UnicodeEncodeError: 'utf-8' codec"),
        ("x = 1\n".encode("utf-16"), "binary", "has NUL bytes"),
        (b"\x7fELF\0\0\xff", "binary", "has NUL bytes"),
    ],
)
def test_what_cannot_be_read(raw: bytes, reason: str, said: str) -> None:
    failure = decode("a.py", raw)
    assert isinstance(failure, Unreadable)
    assert (failure.reason, failure.message[: len(said)]) == (reason, said)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("'é' # €", "cp1252"),
        ("'日本' # 表", "shift_jis"),
        ("'日本'", "iso2022_jp"),
        ("'日本'", "utf-7"),
        ("'Привет'", "koi8-r"),
        ("'😀'", "gb18030"),
        ("'\u2028\u0085\x1c'", "utf-8"),
        ("'\\d'", "unicode_escape"),
    ],
)
def test_what_can_be_read(text: str, encoding: str) -> None:
    text = f"# coding: {encoding}\n{text}\n"
    source = read(text.encode(encoding) if encoding != "unicode_escape" else text.encode())
    assert (source.text, source.encoding.replace("_", "-")) == (text, encoding.replace("_", "-"))


def test_nul_bytes_may_be_text() -> None:
    """CPython rejects them later; tree-sitter reads on."""
    assert read(b"a = 1\0\n").text == "a = 1\0\n"
    assert read("# coding: utf-16-le\n".encode("utf-16-le")).encoding == "utf-8"


# Lines and positions.

# What str.splitlines takes for a line end and CPython does not is here, too.
pieces = st.sampled_from(
    ("x", "é", "x;é", "", "# é\x0b\x1c\x85\u2028", "'''", "\f", "(", ")", "  ", "\\", *NEWLINES)
)
texts = st.lists(st.sampled_from((*NEWLINES, "\n\r")) | pieces, max_size=25).map("".join)


@given(texts)
@settings(max_examples=examples(500), deadline=None)
def test_lines_and_columns_are_those_of_cpython(text: str) -> None:
    source = read(text.encode())
    try:
        module = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            start = source.offset_at(node.lineno, node.col_offset)
            end = source.offset_at(node.end_lineno or 0, node.end_col_offset or 0)
            assert start is not None
            assert source.utf8[start:end].decode() == node.id
            assert source.line_of(start) == node.lineno
            assert (
                (source.line_text(node.lineno) or "").encode()[node.col_offset :].startswith(node.id.encode())
            )


@given(texts)
def test_lines_cover_the_text(text: str) -> None:
    source = read(text.encode())
    lines = list(source.lines())
    ends = {"lf": "\n", "crlf": "\r\n", "cr": "\r", "none": ""}
    assert "".join(source.utf8[start:end].decode() for start, end, _ in lines) == text
    assert [start for start, _, _ in lines] == source.line_starts[: len(lines)]
    for number, (start, end, kind) in enumerate(lines, start=1):
        line = source.utf8[start:end].decode()
        assert source.line_text(number) == line
        assert line.endswith(ends[kind])
        content = line.removesuffix(ends[kind])
        assert "\n" not in content
        assert "\r" not in content
        # Only the last line may have no end.
        assert kind != "none" or (number == len(lines) and content)
    kinds = {kind for _, _, kind in lines} - {"none"}
    assert source.newline == ("mixed" if len(kinds) > 1 else kinds.pop() if kinds else "none")
    # A line after the last line end has a start, and no text.
    assert len(source.line_starts) - len(lines) == (not text or text.endswith(NEWLINES))


@given(texts)
def test_every_offset_has_one_line_and_column(text: str) -> None:
    source = read(text.encode())
    for offset in range(len(source.utf8) + 1):
        line = source.line_of(offset)
        assert source.offset_at(line, offset - source.line_starts[line - 1]) == offset
    lengths = [end - start for start, end, _ in source.lines()] or [0]
    for line, length in enumerate(lengths, start=1):
        assert source.offset_at(line, length) == source.line_starts[line - 1] + length
        assert source.offset_at(line, length + 1) is None
        assert source.offset_at(line, -1) is None
    beyond = len(source.line_starts) + 1
    assert source.offset_at(0, 0) is source.offset_at(-1, 0) is source.offset_at(beyond, 0) is None
    assert source.line_text(0) is source.line_text(-1) is source.line_text(beyond) is None


@pytest.mark.parametrize("step", [27, pytest.param(9, marks=pytest.mark.system)])
def test_the_standard_library(step: int) -> None:
    """Many of its files, with a few that are made not to be read."""
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)[::step]
    failure = set()
    for path in paths:
        raw = path.read_bytes()
        source = decode(path.name, raw)
        if isinstance(source, Unreadable):
            failure.add(path.name)
            assert tree(raw) is None
        else:
            assert tree(source.text) == tree(raw)
    assert len(paths) > 900 / step
    assert all(name.startswith("bad") for name in failure)
