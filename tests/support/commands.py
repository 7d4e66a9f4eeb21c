"""Run commands in this process, as `main` does, or as processes, and return what they print.

run_process("build", "src", "--lake", "lake")                       # on local processes
run_process("build", "src", "--lake", "lake", "--engine", "spark")  # as a user who names no engine
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from codeanatomy.cli import main as cli

RunCommand: TypeAlias = Callable[..., tuple[int, str, str]]
# Builds start no JVM unless a test names the engine.
LOCAL_BUILDS = {"CODEANATOMY_RUNTIME__ENGINE": "local"}
# No command of a test takes longer.
PROCESS_SECONDS = 900


def run_process(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own; `--engine spark` starts a JVM."""
    command = [sys.executable, "-m", "codeanatomy", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**LOCAL_BUILDS, **os.environ},
        check=False,
        timeout=PROCESS_SECONDS,
    )


def command_runner(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> RunCommand:
    """Return a function that runs commands in a folder, with the engine as the only setting around."""
    monkeypatch.chdir(folder)
    for name in os.environ:
        if name.startswith("CODEANATOMY_"):
            monkeypatch.delenv(name)
    for name, value in LOCAL_BUILDS.items():
        monkeypatch.setenv(name, value)

    def call(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["codeanatomy", *args])
        capfd.readouterr()
        try:
            cli.run_command()
            code = 0
        except SystemExit as ending:
            code = int(ending.code or 0)
        return code, *capfd.readouterr()

    return call
