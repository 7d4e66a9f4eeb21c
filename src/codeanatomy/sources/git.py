"""What git has of a folder, read without running anything that the repository could bring along.

    commit = commit_of(source, "main")
    tree = files_of(source, commit)             # {"shop/cart.py": Blob("5f0c...", 1311), ...}
    texts_of(source, [tree["shop/cart.py"]])    # {"5f0c...": b"..."}
    unchanged_since(source, commit, index_of(source))     # {"shop/cart.py": Stamp(1311, 17948188903679...)}

A repository may be hostile: its own settings can name programs for differences, filters, hooks, file monitors
and remotes. So git only looks up names, lists trees and its index, and hands out blobs, which none of these
has a part in; what differs is found here. Files of the work tree are read as they are.

Tests: `tests/unit/plan/test_changes.py`, `tests/unit/plan/test_git_changes.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from codeanatomy.errors import EnvironmentProblem, UsageError

SECONDS = 60.0
# A larger file is not compared.
LARGEST = 20_000_000
REGULAR = frozenset({b"100644", b"100755"})
SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat")
NAME_SHOWN = 200
# An entry of the index, as `ls-files --stage --debug -z` tells it.
INDEXED = re.compile(
    rb"(\d+) ([0-9a-f]+) \d\t([^\0]+)\0"
    rb"  ctime: .*\n  mtime: (\d+):(\d+)\n  dev: .*\n  uid: .*\n  size: (\d+)\tflags: ([0-9a-f]+)\n"
)
# Of the flags of an entry: assume-unchanged, in conflict, intent-to-add and skip-worktree.
NOT_LOOKED_AT = 0x8000 | 0x3000 | 1 << 29 | 1 << 30


class Blob(Struct, frozen=True):
    """A file of a commit."""

    blob_id: str
    size: int


class Stamp(Struct, frozen=True):
    """Size and time of a file of the work tree when it was last known to be what the index has."""

    size: int
    mtime_ns: int


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
    found: dict[str, Blob] = {}
    for path, fields in _tree(source, commit, "-l"):
        if fields[0] in REGULAR and fields[3].isdigit():
            found[path] = Blob(fields[2].decode("ascii"), int(fields[3]))
    return found


def tracked_in(source: Path) -> list[str]:
    """The paths below a folder that git will commit, by its index alone."""
    done = _git(source, "ls-files", "-z", "--cached", "--", ".")
    return [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]


def index_of(source: Path) -> Path:
    """The file with the index of the work tree that a folder lies in."""
    done = _git(source, "rev-parse", "--is-inside-work-tree", "--git-path", "index")
    inside, _, name = done.stdout.removesuffix(b"\n").partition(b"\n")
    if inside != b"true":
        said = f": {_said(done)}" if done.returncode != 0 else ""
        raise UsageError(f"{source} lies in no work tree of git{said}", "do without --since")
    return source / os.fsdecode(name)


def unchanged_since(source: Path, commit: str, index: Path) -> dict[str, Stamp]:
    """The files below a folder that the index has as a commit has them, by their paths from there.

    One that was written when the index was, or later, is none: an edit in the same moment leaves no trace.
    """
    try:
        # Before it is read: if it is written meanwhile, this is the earlier time.
        written_ns = index.stat().st_mtime_ns
    except OSError:
        return {}
    before = {path: fields[2] for path, fields in _tree(source, commit) if fields[0] in REGULAR}
    done = _git(source, "ls-files", "--stage", "--debug", "-z", "--", ".")
    if done.returncode != 0:
        raise UsageError(f"git cannot read {index}: {_said(done)}", "mend the repository")
    found: dict[str, Stamp] = {}
    position = 0
    while entry := INDEXED.match(done.stdout, position):
        position = entry.end()
        mode, blob_id, name, seconds, nanoseconds, size, flags = entry.groups()
        path = os.fsdecode(name)
        stamp = Stamp(int(size), int(seconds) * 1_000_000_000 + int(nanoseconds))
        is_looked_at = mode in REGULAR and not int(flags, 16) & NOT_LOOKED_AT
        if is_looked_at and before.get(path) == blob_id and stamp.mtime_ns < written_ns:
            found[path] = stamp
    return found


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


def _tree(source: Path, commit: str, *options: str) -> Iterator[tuple[str, list[bytes]]]:
    """The paths of a commit below a folder, each with its mode, its type, its id and what was asked for."""
    done = _git(source, "ls-tree", "-r", "-z", *options, "--end-of-options", commit, ".")
    if done.returncode != 0:
        raise UsageError(f"git cannot list {commit} in {source}: {_said(done)}", "mend the repository")
    for line in done.stdout.split(b"\0"):
        facts, _, path = line.partition(b"\t")
        if path:
            yield os.fsdecode(path), facts.split()


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
        raise EnvironmentProblem("git is not installed", "install git, or name no commit") from problem
    except subprocess.TimeoutExpired as problem:
        raise EnvironmentProblem(
            f"git has not answered in {SECONDS:.0f} s in {source}", "name no commit"
        ) from problem


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit {done.returncode}"
