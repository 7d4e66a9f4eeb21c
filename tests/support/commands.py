"""Run commands in this process, as `main` does, and return exit code, stdout and stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from codeanatomy.cli import main as cli

RunCommand: TypeAlias = Callable[..., tuple[int, str, str]]


def command_runner(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> RunCommand:
    """Return a function that runs commands in a folder, with no settings in the environment."""
    monkeypatch.chdir(folder)
    for name in os.environ:
        if name.startswith("CODEANATOMY_"):
            monkeypatch.delenv(name)

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
