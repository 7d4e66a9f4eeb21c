"""Repositories to build: what the user names, and which commit it is at.

>>> named_sources(("requests=src/requests", "flask-3.1.3.tar.gz"))
[Repository(repo_id='requests', path=PosixPath('src/requests')), \
Repository(repo_id='flask-3.1.3', path=PosixPath('flask-3.1.3.tar.gz'))]

Tests: `tests/unit/plan/test_repositories.py`.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import CodeAnatomyError, UsageError
from codeanatomy.plan.git_changes import Since
from codeanatomy.progress import Progress
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.digest import FileStates, file_states, states_digest
from codeanatomy.sources.listing import FILE_FLAGS, Listing, closing_fd, decode_location

# A name is part of every id and of log lines: no spaces, separators or quotes.
NAME = re.compile(r"[\w.@+-][\w.@+/-]*")
NAMED = re.compile(rf"({NAME.pattern})=(.+)", re.DOTALL)
ARCHIVE = re.compile(r"\.(whl|zip|tar|tgz|tar\.\w+)$", re.IGNORECASE)
COMMIT = re.compile(r"[0-9a-f]{40,64}")
# More than most ref files have; in a longer list of packed refs the commit may be missed.
REF_BYTES = 16_000_000


class Repository(Struct, frozen=True):
    """A folder or archive, and the name it has in the lake."""

    repo_id: str
    path: Path


def named_sources(
    sources: Sequence[str], repo_id: str | None = None, repos_file: Path | None = None
) -> list[Repository]:
    """The repositories of a command line; a file has one `NAME=PATH` per line, relative to itself."""
    found = [_repository(source, Path()) for source in sources]
    if repos_file is not None:
        found += [_repository(line, repos_file.parent) for line in _lines(repos_file)]
    if not found:
        raise UsageError("nothing to build", "name a folder or an archive, or use --repos-file")
    if repo_id is not None:
        if len(found) > 1:
            raise UsageError("--repo-id names one repository", "with several, write NAME=PATH for each")
        found = [Repository(_checked(repo_id), found[0].path)]
    _refuse_twice(repository.repo_id for repository in found)
    return found


class Listed(Struct, frozen=True):
    """The repositories of a run: what was found in each, or why it could not be opened."""

    repositories: tuple[Repository, ...]
    listings: dict[str, Listing]
    # What is known of the paths of each source, what it therefore is, and the commit it is at.
    lines: dict[str, FileStates]
    digests: dict[str, str]
    commits: dict[str, str | None]
    failed: dict[str, str]
    seconds: float


def list_repositories(
    repositories: Sequence[Repository],
    options: ExtractOptions,
    progress: Progress,
    since: Since | None = None,
) -> Listed:
    """Look into every repository; one that cannot be opened fails alone, one without the commit for all."""
    began = time.monotonic()
    listings: dict[str, Listing] = {}
    lines: dict[str, FileStates] = {}
    commits: dict[str, str | None] = {}
    failed: dict[str, str] = {}
    paths = 0
    for ready, repository in enumerate(repositories, start=1):
        try:
            listing = list_source(repository.path, options)
        except CodeAnatomyError as problem:
            failed[repository.repo_id] = (
                f"{problem.message} ({problem.hint})" if problem.hint else problem.message
            )
        else:
            name = repository.repo_id
            lines[name] = (
                file_states(listing, options) if since is None else since.lines(name, listing, options)
            )
            listings[name], commits[name] = listing, git_commit(listing)
            paths += len(listing.entries)
        last = ready == len(repositories)
        progress.update("list", f"{ready}/{len(repositories)} repositories, {paths:,} paths", last=last)
    digests = {name: states_digest(found) for name, found in lines.items()}
    seconds = round(time.monotonic() - began, 3)
    return Listed(tuple(repositories), listings, lines, digests, commits, failed, seconds)


def refuse_nothing(listed: Listed) -> None:
    """A build of which nothing is left is no build."""
    if not listed.listings:
        said = "; ".join(f"{name}: {error}" for name, error in listed.failed.items())
        raise UsageError(f"nothing can be built: {said}", "mend what the message names")


def git_commit(listing: Listing) -> str | None:
    """The commit a work tree is at, from git's own files; null outside git and for an archive."""
    if listing.kind != "folder":
        return None
    root = Path(decode_location(listing.root))
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.is_dir():
            return _head(git)
        if os.path.lexists(git):
            # A submodule or a second work tree: the commit is not the one of a folder above.
            return None
    return None


def _repository(source: str, base: Path) -> Repository:
    named = NAMED.fullmatch(source)
    # A folder may have "=" in its own name.
    if named is not None and not (base / source).exists():
        return Repository(_checked(named[1]), base / named[2])
    path = base / source
    name = ARCHIVE.sub("", path.resolve().name)
    if not NAME.fullmatch(name):
        raise UsageError(f"{source!r} does not give a name for the repository", "write NAME=PATH")
    return Repository(name, path)


def _checked(name: str) -> str:
    if not NAME.fullmatch(name) or ".." in name.split("/"):
        raise UsageError(
            f"{name!r} cannot be the name of a repository", "use letters, digits and . _ @ + / -"
        )
    return name


def _lines(repos_file: Path) -> list[str]:
    try:
        text = repos_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot read {repos_file}: {problem}", "one NAME=PATH per line, UTF-8") from problem
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _refuse_twice(names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UsageError(f"several sources are named {', '.join(twice)}", "write NAME=PATH for each")


def _head(git: Path) -> str | None:
    """What HEAD points at. Files of a repository are hostile: only a hash is believed."""
    head = _read(git / "HEAD").strip()
    if head.startswith("ref: "):
        name = head.removeprefix("ref: ")
        if ".." in name or name.startswith("/"):
            return None
        packed = (line.split(" ") for line in _read(git / "packed-refs").splitlines())
        known = {parts[1]: parts[0] for parts in packed if len(parts) == 2}
        head = _read(git / name).strip() or known.get(name, "")
    return head if COMMIT.fullmatch(head) else None


def _read(path: Path) -> str:
    """The text of a small file of git's; nothing of what is no file, or cannot be read."""
    try:
        with closing_fd(os.open(path, FILE_FLAGS)) as fd:
            return (
                os.read(fd, REF_BYTES).decode("utf-8", "replace")
                if stat.S_ISREG(os.fstat(fd).st_mode)
                else ""
            )
    except (OSError, ValueError):
        return ""
