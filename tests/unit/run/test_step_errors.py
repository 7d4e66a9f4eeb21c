"""Errors of the system in a step of a build name the step, the cause and what to do."""

from __future__ import annotations

import errno
import os

import pytest

from codeanatomy.errors import StepFailed
from codeanatomy.run.build import _name_step_in_errors


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "free disk space and run the command again"),
        (errno.EDQUOT, "free space within the quota"),
        (errno.EROFS, "mount the file system of the lake writable"),
        (errno.EIO, "fix the cause and run the command again"),
    ],
)
def test_a_full_disk_in_a_step(code: int, hint: str) -> None:
    with pytest.raises(StepFailed) as failed, _name_step_in_errors("graph"):
        # As Arrow words it.
        raise OSError(code, f"Error writing bytes to file. Detail: [errno {code}] {os.strerror(code)}")
    assert failed.value.message.startswith("step graph failed: ")
    assert os.strerror(code) in failed.value.message
    assert "the published snapshot is unchanged" in failed.value.hint
    assert hint in failed.value.hint
