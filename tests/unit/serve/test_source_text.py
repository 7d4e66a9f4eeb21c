"""Source as HTML: colours as CPython's tokenizer sees them, cuts at marks and links, hostile texts."""

from __future__ import annotations

import doctest
import html
import io
import keyword
import re
import sysconfig
import tokenize
from pathlib import Path

import pytest

from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer import source_text
from codeanatomy.serve.explorer.source_text import (
    LINE_CHARS,
    NEWLINE,
    PART_BYTES,
    PART_LINES,
    Identifier,
    LexedText,
    Token,
    lexed,
    render_lines,
    source_file,
    tokens,
)
from support.explorer import check_page
from support.processor_time import seconds_of

LIBRARY = Path(sysconfig.get_path("stdlib"))
MORE_FILES = ("argparse.py", "ast.py", "typing.py", "test/test_grammar.py")
FILES = (
    "tokenize.py",
    "test/test_fstring.py",
    *(pytest.param(name, marks=pytest.mark.system) for name in MORE_FILES),
)
FSTRING_START, FSTRING_END = (getattr(tokenize, f"FSTRING_{part}", -1) for part in ("START", "END"))
TAG = re.compile(r"<[^<>]*>")


def texts(rendered: list[source_text.SourceLine]) -> list[str]:
    """Return the texts of lines as a browser shows them."""
    return [html.unescape(TAG.sub("", line.html)) for line in rendered]


def cpython_tokens(text: str) -> list[Token]:
    """Return the tokens with a colour, except decorators, by CPython's tokenizer."""
    raw = text.encode()
    lines = [0, *(match.end() for match in NEWLINE.finditer(raw))]

    def offset(row: int, col: int) -> int:
        line = raw[lines[row - 1] : lines[row] if row < len(lines) else len(raw)].decode()
        return lines[row - 1] + len(line[:col].encode())

    kinds = {tokenize.STRING: "s", tokenize.NUMBER: "n", tokenize.COMMENT: "c"}
    result: list[Token] = []
    last = ""
    # From 3.12 on a formatted string is many tokens, with strings in it.
    formatted: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = kinds.get(token.type, "")
        if token.type == FSTRING_START:
            formatted.append(offset(*token.start))
        elif token.type == FSTRING_END:
            start = formatted.pop()
            if not formatted:
                result.append((start, offset(*token.end), "s"))
        if formatted:
            continue
        if token.type == tokenize.NAME:
            kind = "k" if keyword.iskeyword(token.string) else "f" * (last in ("def", "class"))
        if kind:
            result.append((offset(*token.start), offset(*token.end), kind))
        last = token.string
    return result


def test_examples() -> None:
    assert doctest.testmod(source_text).failed == 0


@pytest.mark.parametrize("name", FILES)
def test_tokens_are_those_of_cpython(name: str) -> None:
    text = (LIBRARY / name).read_text(encoding="utf-8")
    data = text.encode()
    expected = cpython_tokens(text)
    formatted = [
        (start, end)
        for start, end, kind in expected
        if kind == "s" and b"f" in data[start:end].lower().partition(data[end - 1 : end])[0]
    ]
    decorators = [(start, end) for start, end, kind in tokens(data) if kind == "d"]
    covered = bytearray(len(data))
    for start, end in (*formatted, *decorators):
        covered[start:end] = b"\1" * (end - start)
    soft = (b"match", b"case", b"type")
    ours = [each for each in tokens(data) if not covered[each[0]] and data[each[0] : each[1]] not in soft]
    assert ours == [each for each in expected if not covered[each[0]]]
    assert len(expected) > 500


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('f"a{b}c"', ['f"a', 'c"']),
        ('f"{a!r:>{w}}" if x', ['f"', ">", '"', "if"]),
        ('f"{d["k"]}" "s"', ['f"', '"k"', '"', '"s"']),
        ('f"{{a}}" + 1', ['f"{{a}}"', "1"]),
        (r'f"\N{DASH}{x}"', [r'f"\N{DASH}', '"']),
        (r'rf"\{x}"', ['rf"\\', '"']),
        ('f"""a\n{x}\n"""', ['f"""a\n', '\n"""']),
        ('f"{x:%H:%M}"', ['f"', "%H:%M", '"']),
        ('f"unclosed\nif x', ['f"unclosed', "if"]),
        ("'unclosed\nif x", ["'unclosed", "if"]),
        ("match x:\n case 1:\n  match = 1", ["match", "case", "1", "1"]),
        ("type X = int", ["type"]),
        ("type(x)", []),
        ("@a.b\ndef ü(): x @ y", ["@a.b", "def", "ü"]),
    ],
)
def test_strings_and_soft_keywords(source: str, expected: list[str]) -> None:
    data = source.encode()
    assert [data[start:end].decode() for start, end, _ in tokens(data)] == expected


def test_lines_are_those_of_cpython() -> None:
    text = "a = 1\r\nb = 'ü'\rc\fd\x0be\u2028f\n\n"
    assert len(render_lines(text, 1, 99)) == 4
    assert [line.number for line in render_lines(text, 2, 3)] == [2, 3]
    assert texts(render_lines(text, 1, 2)) == ["a = 1", "b = 'ü'"]
    assert lexed(text).line_of(text.encode().index(b"c")) == 3
    assert render_lines(text, 5, 9) == []
    assert texts(render_lines("", 1, 1)) == [""]


def test_marks_and_names_are_cut_where_they_cross() -> None:
    text = "x = 'ü' + name.attr\n"
    names = [
        Identifier(11, 15, "/r/a/s/b?x=1&y=2", 'a "title" <b>', "name", (("data-kind", "class"),)),
        Identifier(16, 20, None, css="unresolved"),
        Identifier(13, 18, "/never"),
    ]
    marks = [(0, 13, "from"), (5, 17, "to"), (13, 13, "empty"), (100, 200, "outside")]
    (line,) = render_lines(text, 1, 1, names=names, marks=marks)
    check_page(line.html)
    assert texts([line]) == ["x = 'ü' + name.attr"]
    assert line.html.count("<a ") == 2
    assert "/never" not in line.html
    assert '<span class="from to">' in line.html
    assert '<span class="to"><a href="/r/a/s/b?x=1&amp;y=2" class="name" ' in line.html
    assert 'title="a &#34;title&#34; &lt;b&gt;"' in line.html
    assert "empty" not in line.html
    assert '<span class="unresolved">' in line.html


def test_a_mark_over_several_lines_is_opened_on_each() -> None:
    rendered = render_lines("a = '''x\ny\nz'''\nb\n", 1, 4, marks=[(4, 13, "m")])
    assert ['class="m"' in line.html for line in rendered] == [True, True, True, False]
    for line in rendered:
        check_page(line.html)


def test_hidden_characters_are_shown_by_their_code() -> None:
    (line,) = render_lines("x = '\u202e\x07\u2066<script>'\t# \u200b", 1, 1)
    check_page(line.html)
    for code in ("U+202E", "U+0007", "U+2066", "U+200B"):
        assert f'<span class="char">{code}</span>' in line.html
    assert "\u202e" not in line.html
    assert "<script" not in line.html
    assert "\t" in line.html


def test_long_lines_are_cut() -> None:
    text = "x = '" + "ü😀" * 1_000_000 + "'\ny = 1\n"
    first, second = render_lines(text, 1, 2, marks=[(6_000_000, 6_000_100, "far")])
    length = len(text.partition("\n")[0])
    assert texts([first]) == [f"{text[:LINE_CHARS]}… {length - LINE_CHARS:,} more characters"]
    assert "far" not in first.html
    assert texts([second]) == ["y = 1"]


def test_parts_cover_a_file_and_are_bounded() -> None:
    for text in ("x\n" * 100_000, ("y" * 1_900 + "\n") * 3_000, "", "z" * 3_000_000, "\r" * 5_000):
        parts = lexed(text).parts
        lines = [line for first, last in parts for line in range(first, last + 1)]
        assert lines == list(range(1, lexed(text).line_count + 1))
        source = lexed(text)
        for first, last in parts:
            assert last - first < PART_LINES
            shown = sum(
                min(LINE_CHARS, source.span(line)[1] - source.span(line)[0])
                for line in range(first, last + 1)
            )
            assert shown <= PART_BYTES


@pytest.mark.parametrize(
    "text",
    [
        "(" * 125_000,
        "f'{" * 75_000,
        "f'{x:" * 50_000,
        '"' * 225_000,
        "'\\" * 100_000,
        "#" * 225_000,
        "\\" * 225_000,
        "match " * 37_500,
        "match x\n" * 25_000,
        "@" * 225_000,
        " " * 125_000 + "@a" * 25_000,
        "0." * 112_500,
        'f"""' + '"" ' * 50_000,
        "f'" + "}" * 225_000,
        "rf'" + "\\" * 225_000,
    ],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    def lex(part: str) -> None:
        LexedText(part)
        render_lines(part, 1, 2_000)

    # A quarter takes a quarter of the time; if time grew by the square, it would be a sixteenth.
    assert seconds_of(lambda: lex(text)) < 8 * seconds_of(lambda: lex(text[: len(text) // 4])) + 0.5
    made = LexedText(text)
    assert list(made.starts) == sorted(made.starts)
    assert all(start < end for start, end in zip(made.starts, made.ends, strict=True))


def test_large_texts_have_no_colours() -> None:
    text = "if x:\n" * 200_000
    assert not LexedText(text).starts
    assert texts(render_lines(text, 3, 3)) == ["if x:"]


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_text, "CACHE_BYTES", 100_000)
    for number in range(10):
        lexed(f"{number}" * 20_000)
    assert sum(each.memory for each in source_text._CACHE.values()) <= 100_000
    text = "1" * 20_000
    assert lexed(text) is lexed("1" * 20_000)


def test_the_text_of_a_file(ask_lake: Path) -> None:
    reader = Lake.open(ask_lake).reader
    file = source_file(reader, "shop", "shop/cart.py")
    assert file is not None
    assert file.text is not None
    assert "class Cart" in file.text
    assert source_file(reader, "depot", "shop/cart.py") is None
    assert source_file(reader, "shop", "../../etc/passwd") is None
