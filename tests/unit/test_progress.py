"""Progress: not too often, never mixed up, the last word always."""

from __future__ import annotations

import io

from codeanatomy.progress import MOVING_SECONDS, QUIET_SECONDS, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_pipe_gets_a_line_now_and_then() -> None:
    to, clock = io.StringIO(), Clock()
    with Progress(to, clock) as progress:
        progress.update("extract", "0/3 files")
        progress.update("extract", "1/3 files")
        clock.now += QUIET_SECONDS
        progress.update("extract", "2/3 files")
        progress.update("extract", "3/3 files", last=True)
        progress.update("commit", "1/1 tables")
    assert to.getvalue().splitlines() == [
        "extract   0/3 files",
        "extract   2/3 files",
        "extract   3/3 files",
        "commit    1/1 tables",
    ]


def test_a_terminal_gets_a_line_that_moves() -> None:
    to, clock = Terminal(), Clock()
    with Progress(to, clock) as progress:
        progress.update("extract", "0/3 files")
        clock.now += MOVING_SECONDS
        progress.update("extract", "1/3 files")
        progress.update("commit", "1/2 tables")
    line = "\r\x1b[K"
    assert (
        to.getvalue() == f"{line}extract   0/3 files{line}extract   1/3 files\n{line}commit    1/2 tables\n"
    )


def test_the_same_word_is_said_once() -> None:
    to, clock = io.StringIO(), Clock()
    progress = Progress(to, clock)
    for _ in range(3):
        progress.update("list", "1/1 repositories", last=True)
        clock.now += 100
    assert to.getvalue() == "list      1/1 repositories\n"
