"""Progress: plain lines on a pipe, bars on a terminal, the last report always."""

from __future__ import annotations

import io
import re
import time

import pytest

from codeanatomy.progress import LINE_SECONDS, POLL_SECONDS, Progress, run_with_progress

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def rows(to: Terminal) -> list[str]:
    """All rows that were drawn, one after the other, without colours and moves of the cursor."""
    text = ESCAPES.sub("", to.getvalue().replace("\r", "\n"))
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def test_a_pipe_gets_a_line_now_and_then() -> None:
    to, clock = io.StringIO(), Clock()
    with Progress(to, clock) as progress:
        progress.update("extract", "0/3 files")
        progress.update("extract", "1/3 files")
        clock.now += LINE_SECONDS
        progress.update("extract", "2/3 files")
        progress.update("extract", "3/3 files", last=True)
        progress.update("commit", "1/1 tables")
    assert to.getvalue().splitlines() == [
        "extract   0/3 files",
        "extract   2/3 files",
        "extract   3/3 files",
        "commit    1/1 tables",
    ]


def test_the_same_text_is_printed_once() -> None:
    to, clock = io.StringIO(), Clock()
    progress = Progress(to, clock)
    for _ in range(3):
        progress.update("list", "1/1 repositories", last=True)
        clock.now += 100
    assert to.getvalue() == "list      1/1 repositories\n"


@pytest.mark.parametrize("flags", [{"bars": False}, {}])
def test_a_terminal_without_bars_gets_lines(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, flags: dict[str, bool]
) -> None:
    if not flags:
        monkeypatch.setenv("TERM", "dumb")
    with Progress(terminal, Clock(), **flags) as progress:
        progress.update("extract", "0/3 files")
    assert terminal.getvalue() == "extract   0/3 files\n"


def test_a_bar_has_counts_rate_and_time_left(terminal: Terminal) -> None:
    clock = Clock()
    with Progress(terminal, clock) as progress:
        progress.update("extract", "0/1,200 files")
        for done in (100, 200, 300):
            clock.now += 1
            progress.update("extract", f"{done}/1,200 files, 2 failures")
        clock.now += 9
        progress.update("extract", "1,200/1,200 files, 2 failures", last=True)
    drawn = rows(terminal)
    assert re.fullmatch(r"extract   \S+ +100/s    0:09 left 300/1,200 files, 2 failures", drawn[-2])
    # What stays: the whole time and the rate over it.
    assert re.fullmatch(r"extract   \S+ +100/s       12.0 s 1,200/1,200 files, 2 failures", drawn[-1])
    assert all(len(row) <= 80 for row in drawn)


def test_bars_of_two_steps_are_drawn_together(terminal: Terminal) -> None:
    clock = Clock()
    with Progress(terminal, clock) as progress:
        progress.update("extract", "1/9 files")
        progress.update("commit", "1/2 tables")
        clock.now += POLL_SECONDS
        progress.update("extract", "2/9 files")
        drawn = rows(terminal)
    assert [row.split()[0] for row in drawn[-2:]] == ["extract", "commit"]
    assert drawn[-2].endswith("2/9 files")


def test_a_step_without_counts_is_a_line_that_stays_when_the_next_starts(terminal: Terminal) -> None:
    clock = Clock()
    with Progress(terminal, clock) as progress:
        progress.update("spark", "starting on local[*]")
        progress.update("extract", "1/9 files")
        progress.update("extract", "no pyrefly: [bold]types[/bold] are left out", last=True)
        progress.update("extract", "9/9 files", last=True)
    drawn = rows(terminal)
    assert "spark     starting on local[*]" in drawn
    assert "extract   no pyrefly: [bold]types[/bold] are left out" in drawn
    assert drawn[-1].endswith("9/9 files")


def test_the_same_step_again_is_another_bar(terminal: Terminal) -> None:
    with Progress(terminal, Clock()) as progress:
        for rows_written in (10, 20):
            progress.update("commit", f"1/2 tables, {rows_written} rows")
            progress.update("commit", f"2/2 tables, {rows_written} rows", last=True)
    assert sum(row.endswith("2/2 tables, 10 rows") for row in rows(terminal)) == 1
    assert rows(terminal)[-1].endswith("2/2 tables, 20 rows")


def test_no_colour_where_none_is_wanted(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with Progress(terminal, Clock()) as progress:
        progress.update("extract", "1/9 files")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9][0-9;]*m", terminal.getvalue())


def test_short_work_is_not_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeanatomy.progress.POLL_SECONDS", 60.0)
    reports: list[str] = []

    def work() -> str:
        time.sleep(0.05)
        return "made"

    assert run_with_progress(work, lambda: reports.append("0/1 files")) == "made"
    assert reports == ["0/1 files"]
