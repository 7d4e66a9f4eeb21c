"""A disk that becomes full while local processes build: one error of the family, and no traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import LOCAL_BUILDS, PROCESS_SECONDS
from support.marks import quick

BUILD = ("build", "source", "--lake", "lake", "--types", "off")


def limited(folder: Path, file_bytes: int) -> subprocess.CompletedProcess[str]:
    """Build with a limit for the size of a file, which fails a write as a full disk does."""
    return subprocess.run(
        [sys.executable, "-m", "codeanatomy", *BUILD],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**LOCAL_BUILDS, **os.environ},
        check=False,
        timeout=PROCESS_SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY)),
    )


@pytest.mark.parametrize("file_bytes", quick([2_000, 8_000, 20_000], 1))
def test_a_write_that_fails_is_an_error_of_the_family(file_bytes: int, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.py").write_text("def f(x):\n    return f(x)\n" * 40)
    done = limited(tmp_path, file_bytes)
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr
    assert "error [CA04" in done.stderr
    assert "File too large" in done.stderr
    assert "\n  next: " in done.stderr
    # With room, the same command goes on.
    assert limited(tmp_path, 100_000_000).returncode == 0
