"""Read commits, blobs and the index of a git repository without running programs that it configures.

    commit = resolve_commit(source, "main")
    files = commit_files(source, commit)           # {"shop/cart.py": Blob("5f0c...", 1311), ...}
    read_blobs(source, [files["shop/cart.py"]])    # {"5f0c...": b"..."}
    unchanged_since(source, commit, index_path(source))   # {"shop/cart.py": IndexStat(1311, 179481889...)}

A repository may be hostile: its settings can name programs for diffs, filters, hooks, file monitors and
remotes. So git is only used to resolve names, to list trees and the index, and to print blobs; none of these
commands runs such a program. Differences are computed here. Files of the work tree are read as they are.

Tests: `tests/unit/query/test_changed_definitions.py`, `tests/unit/plan/test_git_changes.py`,
`tests/unit/plan/test_repositories.py`.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from codeanatomy.errors import EnvironmentProblem, UsageError
from codeanatomy.sources.listing import FILE_FLAGS, Listing, closing_fd, decode_location

TIMEOUT_SECONDS = 60.0
# Larger files are not compared.
MAX_COMPARED_BYTES = 20_000_000
REGULAR_MODES = frozenset({b"100644", b"100755"})
REPAIR_HINT = "check the repository with `git fsck` and repair it"
SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat")
COMMIT = re.compile(r"[0-9a-f]{40,64}")
# Bytes read of a ref file; in a longer packed-refs file the commit may not be found.
REF_BYTES = 16_000_000
# Limit for a name in a message.
MAX_NAME_CHARS = 200
# An entry of the index, as `ls-files --stage --debug -z` prints it.
INDEX_ENTRY = re.compile(
    rb"(\d+) ([0-9a-f]+) \d\t([^\0]+)\0"
    rb"  ctime: .*\n  mtime: (\d+):(\d+)\n  dev: .*\n  uid: .*\n  size: (\d+)\tflags: ([0-9a-f]+)\n"
)
# Entries with one of these flags are not compared with the work tree: assume-unchanged, in conflict,
# intent-to-add and skip-worktree.
NOT_COMPARED_FLAGS = 0x8000 | 0x3000 | 1 << 29 | 1 << 30


class Blob(Struct, frozen=True):
    """A file of a commit."""

    blob_id: str
    size: int


class IndexStat(Struct, frozen=True):
    """Size and time of a file of the work tree when git last saw it equal to its entry in the index."""

    size: int
    mtime_ns: int


def resolve_commit(source: Path, name: str) -> str:
    """Return the id of the commit that a name refers to."""
    if not name or name.startswith("-") or "\0" in name or len(name) > 1000:
        raise UsageError(f"{name[:MAX_NAME_CHARS]!r} is not a commit", "name a commit, a branch or a tag")
    process = _git(source, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if process.returncode != 0:
        _refuse_outside(source)
        raise UsageError(
            f"git has no commit {name[:MAX_NAME_CHARS]!r} in {source}", "name a commit, a branch or a tag"
        )
    return process.stdout.decode("ascii", "replace").strip()


def commit_files(source: Path, commit: str) -> dict[str, Blob]:
    """Return the regular files of a commit below a folder, by path relative to the folder."""
    files: dict[str, Blob] = {}
    for path, fields in _list_tree(source, commit, "-l"):
        if fields[0] in REGULAR_MODES and fields[3].isdigit():
            files[path] = Blob(fields[2].decode("ascii"), int(fields[3]))
    return files


def tracked_files(source: Path) -> list[str]:
    """Return the paths below a folder that are in git's index."""
    process = _git(source, "ls-files", "-z", "--cached", "--", ".")
    return [os.fsdecode(path) for path in process.stdout.split(b"\0") if path]


def index_path(source: Path) -> Path:
    """Return the path of the index of the work tree that contains a folder."""
    process = _git(source, "rev-parse", "--is-inside-work-tree", "--git-path", "index")
    inside, _, name = process.stdout.removesuffix(b"\n").partition(b"\n")
    if inside != b"true":
        reason = f": {_last_error(process)}" if process.returncode != 0 else ""
        raise UsageError(f"{source} is not in a git work tree{reason}", "run without --since")
    return source / os.fsdecode(name)


def unchanged_since(source: Path, commit: str, index: Path) -> dict[str, IndexStat]:
    """Return the files below a folder that are the same in the index and in a commit, by relative path.

    Files written at or after the time of the index are left out: a second edit at the same time has no trace.
    """
    try:
        # Before reading it: if the index is written meanwhile, this is the earlier time.
        written_ns = index.stat().st_mtime_ns
    except OSError:
        return {}
    before = {path: fields[2] for path, fields in _list_tree(source, commit) if fields[0] in REGULAR_MODES}
    process = _git(source, "ls-files", "--stage", "--debug", "-z", "--", ".")
    if process.returncode != 0:
        raise UsageError(f"git cannot read {index}: {_last_error(process)}", REPAIR_HINT)
    unchanged: dict[str, IndexStat] = {}
    position = 0
    while entry := INDEX_ENTRY.match(process.stdout, position):
        position = entry.end()
        mode, blob_id, name, seconds, nanoseconds, size, flags = entry.groups()
        path = os.fsdecode(name)
        stat = IndexStat(int(size), int(seconds) * 1_000_000_000 + int(nanoseconds))
        is_compared = mode in REGULAR_MODES and not int(flags, 16) & NOT_COMPARED_FLAGS
        if is_compared and before.get(path) == blob_id and stat.mtime_ns < written_ns:
            unchanged[path] = stat
    return unchanged


def read_blobs(source: Path, blobs: Iterable[Blob]) -> dict[str, bytes]:
    """Read the bytes of blobs, by id, without those that are too large or missing."""
    blob_ids = sorted({blob.blob_id for blob in blobs if blob.size <= MAX_COMPARED_BYTES})
    if not blob_ids:
        return {}
    process = _git(source, "cat-file", "--batch", stdin="\n".join(blob_ids).encode() + b"\n")
    contents: dict[str, bytes] = {}
    rest = memoryview(process.stdout)
    for blob_id in blob_ids:
        header, _, _ = bytes(rest[:200]).partition(b"\n")
        fields = header.split()
        if len(fields) != 3:
            # "<id> missing", without contents.
            rest = rest[len(header) + 1 :]
            continue
        begin, size = len(header) + 1, int(fields[2])
        contents[blob_id] = bytes(rest[begin : begin + size])
        rest = rest[begin + size + 1 :]
    return contents


def _list_tree(source: Path, commit: str, *options: str) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the paths of a commit below a folder, each with mode, type, id and the columns of the options."""
    process = _git(source, "ls-tree", "-r", "-z", *options, "--end-of-options", commit, ".")
    if process.returncode != 0:
        raise UsageError(f"git cannot list {commit} in {source}: {_last_error(process)}", REPAIR_HINT)
    for line in process.stdout.split(b"\0"):
        columns, _, path = line.partition(b"\t")
        if path:
            yield os.fsdecode(path), columns.split()


def _refuse_outside(source: Path) -> None:
    """Raise UsageError if the source does not exist or is not in a git repository."""
    if not source.is_dir():
        raise UsageError(f"the source {source} does not exist any more", "name symbols instead of a commit")
    process = _git(source, "rev-parse", "--git-dir")
    if process.returncode != 0:
        raise UsageError(
            f"{source} cannot be read as a git repository: {_last_error(process)}",
            "name symbols instead of a commit",
        )


def _git(source: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, without the GIT_* variables of our own environment."""
    settings = [part for setting in SETTINGS for part in ("-c", setting)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        # Missing objects of a partial clone are not fetched.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "LC_ALL": "C",
    }
    try:
        return subprocess.run(
            ["git", *settings, *arguments],
            cwd=source,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (FileNotFoundError, NotADirectoryError) as problem:
        if not source.is_dir():
            raise UsageError(
                f"the source {source} does not exist any more", "name symbols instead of a commit"
            ) from problem
        raise EnvironmentProblem(
            "git is not installed", "install git, or run the command without a commit"
        ) from problem
    except subprocess.TimeoutExpired as problem:
        raise EnvironmentProblem(
            f"git did not finish in {TIMEOUT_SECONDS:.0f} s in {source}", "run the command without a commit"
        ) from problem


def _last_error(process: subprocess.CompletedProcess[bytes]) -> str:
    lines = process.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {process.returncode}"


def checked_out_commit(listing: Listing) -> str | None:
    """Read the commit of a work tree from git's files; None for an archive, a store, and outside of git."""
    if listing.kind != "folder":
        return None
    root = Path(decode_location(listing.root))
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.is_dir():
            return _head(git)
        if os.path.lexists(git):
            # A submodule or an additional work tree: the commit of a parent folder is not its commit.
            return None
    return None


def _head(git: Path) -> str | None:
    """Resolve HEAD. The files are not trusted: only a well-formed hash is returned."""
    head = _read_ref(git / "HEAD").strip()
    if head.startswith("ref: "):
        name = head.removeprefix("ref: ")
        if ".." in name or name.startswith("/"):
            return None
        packed = (line.split(" ") for line in _read_ref(git / "packed-refs").splitlines())
        known = {parts[1]: parts[0] for parts in packed if len(parts) == 2}
        head = _read_ref(git / name).strip() or known.get(name, "")
    return head if COMMIT.fullmatch(head) else None


def _read_ref(path: Path) -> str:
    """Read a small file of git; empty if it is not a regular file or cannot be read."""
    try:
        with closing_fd(os.open(path, FILE_FLAGS)) as fd:
            return (
                os.read(fd, REF_BYTES).decode("utf-8", "replace")
                if stat.S_ISREG(os.fstat(fd).st_mode)
                else ""
            )
    except (OSError, ValueError):
        return ""
