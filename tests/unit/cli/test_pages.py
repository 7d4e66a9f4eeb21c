"""Samples in README.md and docs/: every command in a console block is run, and prints what stands there.

    ```console
    $ codeanatomy refs shop.money.TAX --lake lake --format table
    symbol          kind      place            ...
    ```

`lake` is the lake of `support.ask_lake` (flask 3.1.3, and the repositories `shop` and `depot` of
tests/cases/ask), and the default; `old-lake` one with six runs (`support.aged_lake`), whose ids are RUN1 to
RUN6. `--format table` is added where no format is given; of a command that fails the messages are compared,
too. A line `...` stands for any lines. Ids of runs, times, seconds and sizes are not compared. `pytest
tests/unit/cli/test_pages.py --regenerate` writes the outputs anew.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from codeanatomy.lake.snapshot import recorded_runs
from support.commands import RunCommand, command_runner
from support.folders import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from build to build, and what stands for it.
VOLATILE = (
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}"), "RUN"),
    (re.compile(r", commit [0-9a-f]{12}"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms|kB|MB)\b"), "SIZE"),
    (re.compile(r"\bseconds +\d+\.\d+"), "SECONDS"),
    (re.compile(r" +"), " "),
)


class Sample(NamedTuple):
    """A command on a page and the lines below it."""

    page: Path
    command: str
    output: str


def samples(page: Path) -> Iterator[Sample]:
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Sample(page, command, output)


SAMPLES = [sample for page in PAGES for sample in samples(page)]


@pytest.fixture
def ran(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def test_pages_have_samples() -> None:
    assert ROOT / "README.md" in {sample.page for sample in SAMPLES}
    assert len(SAMPLES) >= 10


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the samples are of Python 3.11")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: f"{each.page.stem}: {each.command[:60]}")
def test_a_sample_is_what_the_command_prints(
    sample: Sample,
    ran: RunCommand,
    ask_lake: Path,
    aged_lake: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    (tmp_path / "lake").symlink_to(ask_lake)
    (tmp_path / "old-lake").symlink_to(aged_lake)
    program, *args = shlex.split(sample.command)
    assert program == "codeanatomy"
    lake = "old-lake" if "old-lake" in args else "lake"
    runs = [run.run_id for run in recorded_runs(str(tmp_path / lake))]
    args = [runs[int(arg[3:]) - 1] if re.fullmatch(r"RUN\d", arg) else arg for arg in args]
    if "--lake" not in args:
        args += ["--lake", "lake"]
    if "--format" not in args and args[0] not in ("export", "maintain"):
        args += ["--format", "table"]
    code, printed, notes = ran(*args)
    output = printed if code == 0 and printed.strip() else printed + notes
    if request.config.getoption("--regenerate"):
        write(sample, output)
    else:
        assert agrees(sample.output, output), f"{sample.command} prints\n{output}"


def agrees(shown: str, printed: str) -> bool:
    """Whether an output has the lines shown; `...` stands for any number of them.

    >>> agrees("a\\n...\\nd\\n", "a\\nb\\nc\\nd\\n"), agrees("a\\n...\\nd\\n", "a\\nb\\n")
    (True, False)
    """
    pattern = "\n".join(".*" if line == "..." else re.escape(line) for line in normal(shown).splitlines())
    return re.fullmatch(pattern, "\n".join(normal(printed).splitlines()), re.DOTALL) is not None


def normal(text: str) -> str:
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def write(sample: Sample, output: str) -> None:
    """Put a new output on the page; a sample with `...` keeps its first lines."""
    if "\n...\n" in f"\n{sample.output}":
        kept = f"\n{sample.output}".split("\n...\n", 1)[0].count("\n")
        lines = output.splitlines()
        output = "\n".join([*lines[:kept], "..."]) + "\n"
    text = sample.page.read_text(encoding="utf-8")
    old = f"$ {sample.command}\n{sample.output}"
    assert old in text
    sample.page.write_text(text.replace(old, f"$ {sample.command}\n{output.rstrip()}\n"), encoding="utf-8")
