"""Parse the sources of a command line into repositories, and list their files.

>>> parse_repositories(("requests=src/requests", "s3a://bucket/flask-3.1.3.tar.gz"))
[Repository(repo_id='requests', path=PosixPath('src/requests')), \
Repository(repo_id='flask-3.1.3', path='s3a://bucket/flask-3.1.3.tar.gz')]

Tests: `tests/unit/plan/test_repositories.py`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.delta.store_policy import path_of
from codeanatomy.errors import CodeAnatomyError, UsageError
from codeanatomy.plan.changes import GitBaseline
from codeanatomy.plan.stored_sources import is_stored, list_stored
from codeanatomy.progress import Progress
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.digest import FileStates, file_states, states_digest
from codeanatomy.sources.git import checked_out_commit
from codeanatomy.sources.listing import Listing
from codeanatomy.sources.root_package import ARCHIVE, root_package

# A name is part of ids and log lines, so it has no spaces, separators or quotes.
NAME = re.compile(r"[\w.@+-][\w.@+/-]*")
NAMED = re.compile(rf"({NAME.pattern})=(.+)", re.DOTALL)


class Repository(Struct, frozen=True):
    """A folder or archive to build, and its name in the lake."""

    repo_id: str
    # The URI of a source in an object store is text.
    path: Path | str

    @property
    def root(self) -> str:
        """Absolute path, or URI."""
        return self.path if isinstance(self.path, str) else str(self.path.absolute())


def parse_repositories(
    sources: Sequence[str], repo_id: str | None = None, repos_file: Path | None = None
) -> list[Repository]:
    """Parse `NAME=PATH` or `PATH` arguments, and a file with one per line, relative to its folder."""
    repositories = [_repository(source, Path()) for source in sources]
    if repos_file is not None:
        repositories += [_repository(line, repos_file.parent) for line in _lines(repos_file)]
    if not repositories:
        raise UsageError("nothing to build", "give a folder or an archive, or use --repos-file")
    if repo_id is not None:
        if len(repositories) > 1:
            raise UsageError(
                f"--repo-id names one repository, got {len(repositories)}", "write NAME=PATH for each of them"
            )
        repositories = [Repository(_checked_name(repo_id), repositories[0].path)]
    twice = [name for name, count in Counter(each.repo_id for each in repositories).items() if count > 1]
    if twice:
        raise UsageError(f"several sources are named {', '.join(twice)}", "write NAME=PATH for each")
    return repositories


class ListedRepositories(Struct, frozen=True):
    """The repositories of a run with their listings; `failed` has those that could not be opened."""

    repositories: tuple[Repository, ...]
    listings: dict[str, Listing]
    # By repository: state of each path, digest of these states, git commit.
    file_states: dict[str, FileStates]
    digests: dict[str, str]
    commits: dict[str, str | None]
    # Error message by repository.
    failed: dict[str, str]
    seconds: float


def list_repositories(
    repositories: Sequence[Repository],
    options: ExtractOptions,
    progress: Progress,
    since: GitBaseline | None = None,
) -> ListedRepositories:
    """List the files of each repository.

    A repository that cannot be opened is recorded in `failed`; one that does not have the commit of `since`
    raises an error.
    """
    began = time.monotonic()
    listings: dict[str, Listing] = {}
    states: dict[str, FileStates] = {}
    commits: dict[str, str | None] = {}
    failed: dict[str, str] = {}
    paths = 0
    for ready, repository in enumerate(repositories, start=1):
        try:
            listing = list_repository(repository.path, options)
            listing = structs.replace(listing, package=root_package(listing, repository.repo_id, options))
        except CodeAnatomyError as problem:
            hint = f" ({problem.hint})" if problem.hint else ""
            failed[repository.repo_id] = f"{problem.message}{hint}"
        else:
            name = repository.repo_id
            listings[name], commits[name] = listing, checked_out_commit(listing)
            states[name] = (
                since.file_states(name, listing, options) if since else file_states(listing, options)
            )
            paths += len(listing.entries)
        last = ready == len(repositories)
        progress.update("list", f"{ready}/{len(repositories)} repositories, {paths:,} paths", last=last)
    digests = {name: states_digest(each) for name, each in states.items()}
    seconds = round(time.monotonic() - began, 3)
    return ListedRepositories(tuple(repositories), listings, states, digests, commits, failed, seconds)


def list_repository(path: Path | str, options: ExtractOptions) -> Listing:
    """List the files of a folder or an archive, given its path or the URI of an object store."""
    return list_stored(str(path), options) if is_stored(path) else list_source(Path(path), options)


def _repository(source: str, base: Path) -> Repository:
    named = NAMED.fullmatch(source)
    # The name of a folder may contain "=".
    if named is not None and not (base / source).exists():
        return Repository(_checked_name(named[1]), _path(named[2], base))
    if not source.strip():
        # As a path, it would be the current folder.
        raise UsageError("a source is empty", "name a folder or an archive; `.` is the current folder")
    path = _path(source, base)
    name = ARCHIVE.sub("", path.rpartition("/")[2] if isinstance(path, str) else path.resolve().name)
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{source!r} does not give a name for the repository",
            "write NAME=PATH, with a name of letters, digits and . _ @ + / -",
        )
    return Repository(name, path)


def _path(text: str, base: Path) -> Path | str:
    """Return a path relative to a folder, or the URI of an object store."""
    if is_stored(text):
        return text.rstrip("/")
    return Path(path_of(text)) if text.lower().startswith("file:") else base / text


def _checked_name(name: str) -> str:
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
