"""Report how far a command is, on stderr: bars on a terminal, a line every few seconds elsewhere.

    with Progress(sys.stderr) as progress:
        progress.update("extract", "1,204/1,790 files, 31 failures")
        progress.update("extract", "1,790/1,790 files, 31 failures", last=True)

On a pipe or in a file this is one line per report, at most one per step in LINE_SECONDS:

    extract   1,204/1,790 files, 31 failures
    extract   1,790/1,790 files, 31 failures

On a terminal a text that starts with counts (`1,204/1,790 files`) is a bar with its rate and the time left;
another text is a line that stays until the next step starts. A finished step is left above the bars:

    extract   ━━━━━━━━━╸━━━━    310/s    0:01 left 1,204/1,790 files, 31 failures

The bars are redrawn by `update`, not by a thread: PySpark forks to start Java, and a fork must not meet a
thread that holds a lock. Long steps report five times a second (`run_with_progress`).
Tests: `tests/unit/test_progress.py`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Task, TaskID
    from rich.text import Text

LINE_SECONDS = 5.0
POLL_SECONDS = 0.2
# Columns of the terminal: the bar gets what the others leave, within these bounds.
STEP_WIDTH, RATE_WIDTH, TIME_WIDTH, TEXT_WIDTH = 9, 8, 12, 34
BAR_WIDTHS = (10, 40)
# "1,204/1,790 files": what is done, and of how many.
COUNTS = re.compile(r"([\d,]+)/([\d,]+) ")

Result = TypeVar("Result")


class Progress(AbstractContextManager["Progress"]):
    """Show the progress of steps on a stream; `close` ends the bars.

    `bars=False` gives plain lines on a terminal, too: log lines on the same terminal would cut the bars.
    """

    def __init__(self, to: TextIO, clock: Callable[[], float] = time.monotonic, *, bars: bool = True) -> None:
        self._to = to
        self._clock = clock
        # By step, since two may run at once: the text of its last line, and when it was printed.
        self._printed: dict[str, tuple[str, float]] = {}
        self._bars = _open_bars(to, clock) if bars and to.isatty() else None

    def update(self, step: str, text: str, *, last: bool = False) -> None:
        """Report the state of a step; its first and its last report are always shown."""
        if self._bars is not None:
            self._bars.update(step, text, last=last)
            return
        now = self._clock()
        before, when = self._printed.get(step, ("", float("-inf")))
        if text == before or (not last and now - when < LINE_SECONDS):
            return
        self._printed[step] = (text, now)
        self._to.write(f"{_line(step, text)}\n")
        self._to.flush()

    def close(self) -> None:
        """Leave the bars on the screen as they are, and stop redrawing them."""
        if self._bars is not None:
            self._bars.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_with_progress(work: Callable[[], Result], report: Callable[[], None]) -> Result:
    """Run `work` in a thread, and call `report` every POLL_SECONDS until it is done."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        while not future.done():
            report()
            # Not a sleep: short work is not made longer.
            wait([future], POLL_SECONDS)
        return future.result()


def _line(step: str, text: str) -> str:
    return f"{step:<{STEP_WIDTH}} {text}"


def _open_bars(to: TextIO, clock: Callable[[], float]) -> _Bars | None:
    """Bars on a terminal that can move its cursor; None on one that cannot (TERM=dumb)."""
    from rich.console import Console

    console = Console(file=to, highlight=False)
    return _Bars(console, clock) if console.is_terminal and not console.is_dumb_terminal else None


class _Bars:
    """One row per step under way, drawn by rich: bars, and below them lines without counts."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        others = STEP_WIDTH + RATE_WIDTH + TIME_WIDTH + TEXT_WIDTH + 4
        fewest, most = BAR_WIDTHS
        bar_width = max(fewest, min(most, console.width - others))

        def column(field: str, width: int | None, style: str = "none", *, right: bool = False) -> TextColumn:
            return TextColumn(
                f"{{task.fields[{field}]}}",
                style=style,
                justify="right" if right else "left",
                markup=False,
                table_column=Column(width=width, no_wrap=True, overflow="ellipsis"),
            )

        # Steps under way: those with counts, and those without.
        self._tasks: dict[str, TaskID] = {}
        self._lines = lines = dict[str, str]()

        class Rows(Progress):
            def get_renderables(self) -> Iterable[RenderableType]:
                yield self.make_tasks_table(self.tasks)
                yield from (_styled_line(step, text) for step, text in lines.items())

        self._clock = clock
        self._drawn = float("-inf")
        # The text that a finished step has left on the screen.
        self._left: dict[str, str] = {}
        self._rows = Rows(
            column("step", STEP_WIDTH, "bold"),
            BarColumn(bar_width),
            column("rate", RATE_WIDTH, "cyan", right=True),
            column("time", TIME_WIDTH, "cyan", right=True),
            column("text", None),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            get_time=clock,
        )

    def update(self, step: str, text: str, *, last: bool) -> None:
        """Show a report: a bar if it has counts, else a line."""
        if self._left.get(step) == text:
            return
        self._rows.start()
        counts = COUNTS.match(text)
        # Nothing else ends a step without counts.
        for other in [each for each in self._lines if each != step]:
            self._leave_line(other, self._lines[other])
        if counts is not None:
            completed, total = (int(each.replace(",", "")) for each in counts.groups())
            self._update_bar(step, text, completed, total, last=last)
        elif last:
            self._leave_line(step, text)
        else:
            is_new = self._lines.get(step) != text
            self._lines[step] = text
            self._draw(at_once=is_new)

    def _update_bar(self, step: str, text: str, completed: int, total: int, *, last: bool) -> None:
        is_new = step not in self._tasks
        if is_new:
            self._tasks[step] = self._rows.add_task("", total=total, step=step, rate="", time="", text=text)
        self._rows.update(self._tasks[step], completed=completed, total=total, text=text)
        task = self._task(step)
        # The duration of a step with a single report is not known.
        elapsed = 0.0 if is_new else task.elapsed or 0.0
        rate = completed / elapsed if last and elapsed else task.speed
        if last:
            duration = f"{elapsed:.1f} s" if elapsed else ""
        else:
            duration = "" if task.time_remaining is None else f"{_minutes(task.time_remaining)} left"
        self._rows.update(task.id, rate=f"{_rate(rate)}/s" if rate else "", time=duration)
        if last:
            self._leave_bar(step)
        else:
            self._draw(at_once=is_new)

    def close(self) -> None:
        """Leave all rows on the screen as they are."""
        for step, task_id in tuple(self._tasks.items()):
            # The step has ended: no time is left.
            self._rows.update(task_id, time="")
            self._leave_bar(step)
        for step, text in tuple(self._lines.items()):
            self._leave_line(step, text)
        self._rows.stop()

    def _draw(self, *, at_once: bool) -> None:
        if at_once or self._clock() - self._drawn >= POLL_SECONDS:
            self._drawn = self._clock()
            self._rows.refresh()

    def _leave_bar(self, step: str) -> None:
        """Print the bar of a step above the rows, and take it from them."""
        task = self._task(step)
        self._rows.remove_task(self._tasks.pop(step))
        self._left[step] = task.fields["text"]
        self._rows.refresh()
        self._rows.console.print(self._rows.make_tasks_table([task]))

    def _leave_line(self, step: str, text: str) -> None:
        """Print the line of a step above the rows, and take it from them."""
        self._lines.pop(step, None)
        self._left[step] = text
        self._rows.refresh()
        self._rows.console.print(_styled_line(step, text))

    def _task(self, step: str) -> Task:
        return next(task for task in self._rows.tasks if task.id == self._tasks[step])


def _styled_line(step: str, text: str) -> Text:
    from rich.text import Text

    return Text.assemble((f"{step:<{STEP_WIDTH}}", "bold"), f" {text}")


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def _minutes(seconds: float) -> str:
    """Format a duration.

    >>> _minutes(3), _minutes(75), _minutes(3675)
    ('0:03', '1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
