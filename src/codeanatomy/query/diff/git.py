"""What git has of a folder, read without running anything that the repository could bring along.

    commit = commit_of(source, "main")
    tree = files_of(source, commit)             # {"shop/cart.py": Blob("5f0c...", 1311), ...}
    texts_of(source, [tree["shop/cart.py"]])    # {"5f0c...": b"..."}

A repository may be hostile: its own settings can name programs for differences, filters, hooks, file monitors
and remotes. So git only looks up names, lists trees and hands out blobs, which none of these has a part in;
what differs is found here. Files of the work tree are read as they are. Tests: `tests/test_changes.py`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from codeanatomy.errors import EnvironmentProblem, UsageError

SECONDS = 60.0
# A larger file is not compared.
LARGEST = 20_000_000
REGULAR = frozenset({b"100644", b"100755"})
SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat")
NAME_SHOWN = 200


class Blob(Struct, frozen=True):
    """A file of a commit."""

    blob_id: str
    size: int


def commit_of(source: Path, name: str) -> str:
    """The commit that a name means."""
    if not name or name.startswith("-") or "\0" in name or len(name) > 1000:
        raise UsageError(f"{name[:NAME_SHOWN]!r} is no commit", "name a commit, a branch or a tag")
    done = _git(source, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if done.returncode != 0:
        _refuse_outside(source)
        raise UsageError(
            f"git knows no commit {name[:NAME_SHOWN]!r} in {source}", "name a commit, a branch or a tag"
        )
    return done.stdout.decode("ascii", "replace").strip()


def files_of(source: Path, commit: str) -> dict[str, Blob]:
    """The regular files of a commit below a folder, by their paths from there."""
    done = _git(source, "ls-tree", "-r", "-l", "-z", "--end-of-options", commit, ".")
    if done.returncode != 0:
        raise UsageError(f"git cannot list {commit} in {source}: {_said(done)}", "mend the repository")
    found: dict[str, Blob] = {}
    for line in done.stdout.split(b"\0"):
        facts, _, path = line.partition(b"\t")
        fields = facts.split()
        if len(fields) == 4 and fields[0] in REGULAR and fields[3].isdigit():
            found[os.fsdecode(path)] = Blob(fields[2].decode("ascii"), int(fields[3]))
    return found


def tracked_in(source: Path) -> list[str]:
    """The paths below a folder that git will commit, by its index alone."""
    done = _git(source, "ls-files", "-z", "--cached", "--", ".")
    return [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]


def texts_of(source: Path, blobs: Iterable[Blob]) -> dict[str, bytes]:
    """The bytes of blobs, by id; of those that are too large, or missing, none."""
    wanted = sorted({blob.blob_id for blob in blobs if blob.size <= LARGEST})
    if not wanted:
        return {}
    done = _git(source, "cat-file", "--batch", said="\n".join(wanted).encode() + b"\n")
    found: dict[str, bytes] = {}
    rest = memoryview(done.stdout)
    for blob_id in wanted:
        header, _, _ = bytes(rest[:200]).partition(b"\n")
        fields = header.split()
        if len(fields) != 3:
            # A line of its own says that the blob is missing.
            rest = rest[len(header) + 1 :]
            continue
        begin, size = len(header) + 1, int(fields[2])
        found[blob_id] = bytes(rest[begin : begin + size])
        rest = rest[begin + size + 1 :]
    return found


def _refuse_outside(source: Path) -> None:
    if not source.is_dir():
        raise UsageError(f"the source {source} is gone", "name symbols instead of a commit")
    inside = _git(source, "rev-parse", "--git-dir")
    if inside.returncode != 0:
        raise UsageError(
            f"{source} cannot be read as a git repository: {_said(inside)}", "name symbols instead"
        )


def _git(source: Path, *arguments: str, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, with none of its variables around us."""
    settings = [part for setting in SETTINGS for part in ("-c", setting)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        # What is missing here is not fetched.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "LC_ALL": "C",
    }
    try:
        return subprocess.run(
            ["git", *settings, *arguments],
            cwd=source,
            env=environment,
            input=said,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (FileNotFoundError, NotADirectoryError) as problem:
        if not source.is_dir():
            raise UsageError(f"the source {source} is gone", "name symbols instead of a commit") from problem
        raise EnvironmentProblem("git is not installed", "install git, or name symbols") from problem
    except subprocess.TimeoutExpired as problem:
        raise EnvironmentProblem(
            f"git has not answered in {SECONDS:.0f} s in {source}", "name symbols instead"
        ) from problem


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit {done.returncode}"
