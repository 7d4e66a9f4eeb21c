"""Questions that nobody should ask: names, options and lakes that are broken or meant to break something."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.cli.options import AnswerFormat
from codeanatomy.cli.printing import print_answer
from codeanatomy.errors import CodeAnatomyError, UsageError
from codeanatomy.query.answers import Answer, Coverage, Freshness, Symbol
from codeanatomy.query.ask import VERBS
from codeanatomy.query.lake import Lake
from support.commands import RunCommand, command_runner

FORMATS: tuple[AnswerFormat, ...] = ("table", "json", "jsonl", "csv", "markdown")
# Documented, in `codeanatomy.errors`; 0 where a name may well be looked for and not be found.
CODES = (0, 2)
NAMES = {
    "quote": "it's",
    "quotes": "\"it''s\"",
    "statement": "x'; DROP TABLE n; --",
    "union": "' UNION SELECT 1, 2, 3 --",
    "comment": "/* */ x -- y",
    "marks": "%_!\\",
    "placeholder": "? ?1 $1 :name",
    "format": "{0}{x!r}%s%n",
    "null byte": "a\0b",
    "lines": "a\nb\r\nc\u2028d",
    "surrogate": os.fsdecode(b"a\xff\xfeb"),
    "empty": "",
    "blank": " \t ",
    "dots": "...",
    "one dot": ".",
    "right to left": "abc\u202edef",
    "escape": "\x1b[31mred\x1b]0;title\x07",
    "control": "a\x9b31mb\x7f",
    "markup": "<script>alert(1)</script>[red]",
    "stars": "*" * 900,
    "questions": "?" * 900,
    "mixed pattern": "*'%_!?*",
    "an id": "function:" + "A" * 22,
    "no id": "function:AAAAAAAAAAAAAAAAAAAAA' OR 1=1",
    "place": "../../../etc/passwd.py:1",
    "far place": "flask/app.py:999999999",
    "long": "x" * 1001,
    "marks of accents": "e\u0301" * 400,
}
# Options of every verb, and the exit code.
OPTIONS = (
    ("--format", "../../etc/passwd", 2),
    ("--format", "table;ls", 2),
    ("--limit", "0", 2),
    ("--limit", "-1", 2),
    ("--limit", "9" * 30, 2),
    ("--limit", "1e3", 2),
    ("--as-of", "\x1b[31mgarbage\0", 2),
    ("--as-of", "2026-99-99", 2),
    ("--as-of", "0001-01-01T00:00+14:00", 6),
    ("--as-of", os.fsdecode(b"\xff"), 2),
    ("--repo-id", "flask' OR '1'='1", 2),
    ("--repo-id", os.fsdecode(b"\xff"), 2),
)
# How many names each verb that takes names is given.
TAKES = {"path": 2, "explain": 2} | dict.fromkeys(
    ("find", "show", "callers", "callees", "refs", "impact", "flows", "unresolved"), 1
)


def pairs() -> Iterator[tuple[str, str, AnswerFormat]]:
    """Every name with two verbs and a format, so that each verb and each format meets many of them."""
    verbs = list(TAKES)
    for number, label in enumerate(NAMES):
        yield label, "find", FORMATS[number % len(FORMATS)]
        yield label, verbs[1 + number % (len(verbs) - 1)], FORMATS[(number + 2) % len(FORMATS)]


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def untouched(ask_lake: Path) -> Iterator[Callable[[], None]]:
    """Compares what is in the lake with what was there before."""
    before = listing(ask_lake)

    def compare() -> None:
        assert listing(ask_lake) == before

    yield compare
    compare()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("label", "verb", "form"), list(pairs()))
def test_a_hostile_name_is_answered_or_refused(
    ask: RunCommand, ask_lake: Path, tmp_path: Path, label: str, verb: str, form: AnswerFormat
) -> None:
    names = [NAMES[label]] * TAKES[verb]
    ran = ask(verb, "--lake", str(ask_lake), "--format", form, "--limit", "5", "--", *names)
    clean(ran, *CODES)
    assert listing(tmp_path) == []
    if label in ("empty", "blank", "long", "surrogate"):
        assert ran[0] == 2
    if form == "json" and ran[1]:
        assert json.loads(ran[1])["status"] in ("ok", "unknown", "ambiguous", "error")


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("verb", VERBS)
def test_hostile_options_are_refused(ask: RunCommand, ask_lake: Path, tmp_path: Path, verb: str) -> None:
    names = ["flask.helpers.url_for"] * TAKES.get(verb, 0)
    for option, value, code in OPTIONS:
        clean(ask(verb, "--lake", str(ask_lake), option, value, *names), code)
    assert listing(tmp_path) == []


@pytest.mark.parametrize("verb", ["callers", "callees", "path", "impact", "flows"])
@pytest.mark.parametrize("depth", ["0", "-1", "101", "9" * 30])
def test_a_depth_without_sense_is_refused(ask: RunCommand, ask_lake: Path, verb: str, depth: str) -> None:
    names = ["flask.helpers.url_for"] * TAKES[verb]
    clean(ask(verb, "--lake", str(ask_lake), "--depth", depth, *names), 2)


@pytest.mark.parametrize(
    ("verb", "option", "value"),
    [
        ("find", "--kind", "x' OR 1=1"),
        ("find", "--kind", os.fsdecode(b"\xff")),
        ("unused", "--kind", "\x1b[31m"),
        ("unresolved", "--reason", "x' OR 1=1"),
        ("unresolved", "--reason", os.fsdecode(b"\xff")),
        ("path", "--by", "../x"),
        ("cycles", "--by", "x; DROP"),
        ("impact", "--diff", "--output=written"),
        ("impact", "--diff", os.fsdecode(b"\xff")),
        ("impact", "--diff", "a\0b"),
    ],
)
def test_hostile_options_of_one_verb_are_refused(
    ask: RunCommand, ask_lake: Path, tmp_path: Path, verb: str, option: str, value: str
) -> None:
    names = {"find": ["url_for"], "path": ["url_for", "url_for"]}.get(verb, [])
    clean(ask(verb, "--lake", str(ask_lake), "--limit", "1", f"{option}={value}", *names), *CODES)
    assert listing(tmp_path) == []


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_lake_is_told(ask: RunCommand, tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("not a lake", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    before = listing(tmp_path)
    names = ["x"] * TAKES.get(verb, 0)
    for lake, codes in (
        (str(tmp_path / "file"), (2,)),
        (str(tmp_path / "folder"), (6,)),
        (str(tmp_path / "nowhere"), (6,)),
        ("../" * 30 + "nowhere", (6,)),
        ("", (2, 6)),
        ("\x1b[31mx", (2, 6)),
        ("a\0b", (2, 6)),
        (os.fsdecode(b"\xff"), (2, 5, 6)),
        # Nobody is asked for these: the scheme is not known, or has no host.
        ("memory://x", (2, 5)),
        ("hdfs:///x", (2, 5)),
    ):
        clean(ask(verb, "--lake", lake, *names), *codes)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("label", [*NAMES, "huge", "huge pattern"])
def test_the_api_is_as_careful(ask_lake: Path, label: str) -> None:
    name = {**NAMES, "huge": "x" * 1_000_000, "huge pattern": "*" * 1_000_000}[label]
    lake = Lake.open(str(ask_lake))
    try:
        found = lake.find(name, limit=5)
    except CodeAnatomyError as problem:
        refused = problem
    else:
        # Nothing has such a name; a pattern or a place may mean something.
        assert len(found) <= (5 if "*" in name or "?" in name or ".py:" in name else 0)
        with pytest.raises(CodeAnatomyError) as caught:
            lake.show(name if ".py:" not in name else "nothing.py:1")
        refused = caught.value
    assert refused.exit_code == 2
    assert len(str(refused)) < 5000


@pytest.mark.parametrize("limit", [0, -1, 2**63, 10**30])
def test_the_api_refuses_limits_without_sense(ask_lake: Path, limit: int) -> None:
    with pytest.raises(UsageError):
        Lake.open(str(ask_lake)).find("url_for", limit=limit)


@pytest.mark.parametrize("verb", ["callers", "callees", "impact", "flows"])
def test_the_api_refuses_depths_without_sense(ask_lake: Path, verb: str) -> None:
    for depth in (0, -1):
        with pytest.raises(UsageError):
            Lake.open(str(ask_lake)).ask(verb, "flask.helpers.url_for", depth=depth)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("verb", ["find", "show"])
def test_values_of_sources_command_no_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str, form: AnswerFormat
) -> None:
    if form == "csv":
        # A file has what the sources have; what is shown on a terminal has not.
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    nasty = "\x1b[31m\x1b]8;;http://x\x07\x9b1m\x7f\u202e<script>|`*_[a](b)\r\u2028"
    row: dict[str, Any] = {
        "symbol": nasty,
        "kind": nasty,
        "path": nasty,
        "line": 1,
        "docstring": f"{nasty}\n{nasty}",
        "signature": nasty,
        "symbol_id": nasty,
    }
    found = Answer(
        verb,
        (nasty,),
        (Symbol(nasty, nasty, nasty, nasty, 1, nasty, nasty, (nasty,)),),
        tuple(row),
        (row, row),
        3,
        1,
        "--limit 3",
        (nasty,),
        nasty,
        (Freshness(nasty, nasty, datetime(2026, 1, 1, tzinfo=UTC), nasty, "changed"),),
        (Coverage(nasty, 1, 1, False),),
    )
    print_answer(found, form)
    out, err = capfd.readouterr()
    assert out
    harmless(out, err)
    if form == "json":
        # To a program it is what it was.
        assert json.loads(out)["rows"][0]["symbol"] == nasty
    if form == "jsonl":
        assert json.loads(out.splitlines()[0])["symbol"] == nasty
    if form == "markdown":
        assert "<script" not in out


def clean(ran: tuple[int, str, str], *codes: int) -> None:
    """It ended as documented, said why if it failed, and printed nothing that a terminal obeys."""
    code, out, err = ran
    assert code in codes, err[-2000:]
    assert "Traceback" not in err
    if code:
        assert err.strip()
    harmless(out, err)


def harmless(*texts: str) -> None:
    for text in texts:
        assert {each for each in text if each != "\n" and not each.isprintable()} == set()


def listing(folder: Path) -> list[tuple[str, int, int]]:
    """The files below a folder, with size and time."""
    facts = ((file, file.lstat()) for file in sorted(folder.rglob("*")))
    return [(str(file), fact.st_size, fact.st_mtime_ns) for file, fact in facts]
