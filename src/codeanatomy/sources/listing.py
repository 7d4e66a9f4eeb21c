r"""List the Python files of a folder, and the reason why other paths are skipped.

A listing has one entry per candidate path, sorted by path. A skipped folder is one entry; nothing inside it
is visited. The listing of a small repository:

    .git/                   junk_folder
    build/                  ignored               by .gitignore
    pkg/api.py              to be read
    pkg/api.pyi             to be read, a stub
    pkg/data.json           no entry: neither named like Python nor without a dot
    pyproject.toml          to be read: it declares entry points (`sources.packaging_files`)
    pkg/latest -> api.py    symlink
    tool                    to be read, begins with #!/usr/bin/env python3
    LICENSE                 not_python

Python files are `.py`, `.pyi` and `.pyw` in any case (`SETUP.PY` runs, though Linux does not import it), and
files without a dot in their name that have a shebang of Python. Links are never followed: every folder is
opened part by part from the root, so that a link swapped in during the walk cannot lead out of it.

Ignore files: `.gitignore` at every level, then `.codeanatomyignore`, whose patterns win over the former in
its folder, and `.git/info/exclude` (not where `.git` is a file, and no global settings of a user: the same
folder gives the same rows everywhere). If the root lies inside a work tree, the ignore files from the folder
that holds `.git` down to the root apply too, unless they exclude the root itself: then it was named on
purpose. Git's index is not read, so a file that is tracked although a pattern matches it is ignored here.

`sources.ignore_rules` implements the patterns. `extract.include` and `extract.exclude` have the same syntax,
relative to the root. An excluded folder is not entered; of the include patterns, the one that matches the
file or the nearest folder above it counts.

`sources.archives` lists archives, `sources.stored_objects` folders of object stores by the same rules, and
`sources.detect` chooses. Tests: `tests/unit/sources/test_listing.py`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal, Protocol, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct
from msgspec.structs import replace

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import UsageError
from codeanatomy.sources.ignore_rules import Rules
from codeanatomy.sources.packaging_files import is_packaging_file

# Why a path is not read. Some of these come from `sources.reading`.
SkippedReason: TypeAlias = Literal[
    "changing",  # was being written each time it was read
    "damaged",  # cannot be unpacked: bad checksum, bad data or cut off
    "encrypted",  # a member of an archive that needs a password
    "excluded",  # matches extract.exclude
    "ignored",  # matches .gitignore, .codeanatomyignore or .git/info/exclude
    "junk_folder",  # a folder of a tool, recognized by its name, such as .git or __pycache__
    "not_a_file",  # a pipe, a socket or a device
    "not_included",  # does not match extract.include
    "not_python",  # has no suffix and no shebang of Python
    "symlink",  # a link; in an archive also a hard link
    "too_large",  # larger than extract.max_file_size
    "unreadable",  # the system refuses to open it, or its compression is not supported
    "unsafe_path",  # a member of an archive with a name that leads out of it, or could on some system
    "vanished",  # was listed, but did not exist any more when it was to be read
    "virtual_environment",  # a folder with pyvenv.cfg or conda-meta
]

STUB = ".pyi"
SUFFIXES = (".py", STUB, ".pyw")
# Folders that are never a package. `venv` and `env` may be one: they are skipped if they have a pyvenv.cfg.
JUNK_FOLDER = re.compile(
    r"\.(git|hg|svn|bzr|tox|nox|venv|eggs|idea|vscode|hypothesis|ipynb_checkpoints|(mypy|pytest|ruff)_cache)"
    r"|__pycache__|node_modules|site-packages|.+\.egg-info",
    re.DOTALL,
)
ENVIRONMENT_MARKERS = frozenset({"pyvenv.cfg", "conda-meta"})
IGNORE_FILES = (".gitignore", ".codeanatomyignore")
# Limit for an ignore file, the rest is not read; the largest known ones have some 20 KB.
IGNORE_BYTES = 128 * 1024
HEAD_BYTES = 256

# Without O_NONBLOCK, opening a pipe that has replaced a file would wait for its writer.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER_FLAGS = FILE_FLAGS | os.O_DIRECTORY

REASON_BY_ERRNO: dict[int, SkippedReason] = {
    errno.ENOENT: "vanished",
    errno.ENOTDIR: "vanished",
    errno.ELOOP: "symlink",
    # Opening a socket gives this.
    errno.ENXIO: "not_a_file",
}


class Entry(Struct, frozen=True):
    """One listed path, to be read or skipped."""

    # Relative to the root, with "/"; bytes that are not UTF-8 are shown as `\xNN`.
    path: str
    # What is opened: an absolute path, or the name of a member of an archive; see `encode_location`.
    location: str
    size_bytes: int | None
    mtime_ns: int | None
    is_stub: bool
    # None: to be read.
    skipped_reason: SkippedReason | None
    # Offset of a member of a tar, which may have several members of one name.
    position: int | None = None


class Listing(Struct, frozen=True):
    """The absolute path of a folder or an archive (`encode_location`) and its entries sorted by path."""

    root: str
    # copies: a folder of an object store, of whose files `root` has copies (`sources.stored_objects`).
    kind: Literal["folder", "zip", "tar", "copies"]
    entries: tuple[Entry, ...]
    # URI of a source in an object store, of which `root` is a copy on this machine; else empty.
    uri: str = ""
    # Import name of the package that the root is (`sources.root_package`); empty if it is none.
    package: str = ""


def list_folder(root: Path, options: ExtractOptions) -> Listing:
    """List the entries of a folder; `root` is absolute and contains no link."""
    try:
        with closing_fd(os.open(root, FOLDER_FLAGS)) as root_fd:
            entries = walk_folders(_LocalTree(str(root), root_fd), options, _levels_above(root))
    except OSError as problem:
        raise UsageError(f"{root} cannot be read: {problem}", "check its permissions") from problem
    return Listing(encode_location(str(root)), "folder", sorted_by_path(entries))


def sorted_by_path(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    r"""Sort entries and make their paths unique: a name may look like the escaped form of another."""
    by_path: dict[str, Entry] = {}
    numbers: Counter[str] = Counter()
    # Entries without escapes come first and keep their path.
    for entry in sorted(entries, key=lambda entry: (not entry.location.endswith(entry.path), entry.location)):
        path = entry.path
        while path in by_path:
            numbers[entry.path] += 1
            path = f"{entry.path}~{numbers[entry.path] + 1}"
        by_path[path] = entry if path == entry.path else replace(entry, path=path)
    return tuple(by_path[path] for path in sorted(by_path))


def escape_path(path: str) -> str:
    r"""Return a path as it is stored: valid UTF-8, other bytes as escapes.

    >>> escape_path("caf\udce9.py"), escape_path("café.py")
    ('caf\\xe9.py', 'café.py')
    """
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def encode_location(name: str) -> str:
    r"""Encode a file name as valid UTF-8 without loss; `decode_location` gives back the same bytes.

    >>> encode_location("/café.py"), encode_location("/caf\udce9.py")
    ('/café.py', 'bytes:/caf%E9.py')
    >>> decode_location("bytes:/caf%E9.py") == "/caf\udce9.py"
    True
    """
    return name if escape_path(name) == name else "bytes:" + quote(os.fsencode(name))


def decode_location(location: str) -> str:
    """Return the file name of a location, with surrogates for bytes that are not UTF-8."""
    coded = location.removeprefix("bytes:")
    return location if coded == location else os.fsdecode(unquote_to_bytes(coded))


def may_be_source(path: str) -> bool:
    """Return whether a file is named like Python or packaging, or without a dot: its first line decides."""
    name = path.rpartition("/")[2]
    return "." not in name or name.lower().endswith(SUFFIXES) or is_packaging_file(path)


SHEBANG = re.compile(
    # Options and assignments of env; "-Spython" is the option -S with its command.
    rb"#![ \t]*(?:(?:\S*/)?env[ \t]+(?:(?:-(?!S\S)\S*|\w+=\S*)[ \t]+)*(?:-S)?)?"
    # uv and pipx run scripts that declare their requirements in a comment.
    rb"(?:\S*/)?(?:(?:pythonw?|pypy)[0-9.]*[dmtu]{0,3}|(?:uv|pipx)[ \t]+run)(?!\S)",
    re.IGNORECASE,
)


def is_python_script(head: bytes) -> bool:
    """Return whether the first bytes of a file are a shebang of Python.

    >>> [is_python_script(b"#!" + line) for line in (b"/usr/bin/env -S python3 -u", b" python", b"/bin/sh")]
    [True, True, False]
    """
    return SHEBANG.match(head) is not None


def open_below(root_fd: int, folder: str) -> int:
    """Open a folder below the root (`""`: the root itself); raise OSError if a part of its path is a link."""
    fd = os.open(".", FOLDER_FLAGS, dir_fd=root_fd)
    for part in folder.split("/") if folder else ():
        try:
            below = os.open(part, FOLDER_FLAGS, dir_fd=fd)
        except NotADirectoryError:
            # Linux raises this for a link, too.
            if stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
            raise
        finally:
            os.close(fd)
        fd = below
    return fd


def read_head(name: str, folder_fd: int, size: int) -> bytes:
    """Read the first bytes of a file; none of a pipe or a device."""
    with closing_fd(os.open(name, FILE_FLAGS, dir_fd=folder_fd)) as fd:
        return os.read(fd, size) if stat.S_ISREG(os.fstat(fd).st_mode) else b""


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    """Close a file descriptor at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


def skip_reason(problem: OSError) -> SkippedReason:
    """Return the reason code for a path that could not be opened."""
    return REASON_BY_ERRNO.get(problem.errno or 0, "unreadable")


class Selection:
    """Skip paths by their names and by the user's patterns, in folders and in archives."""

    def __init__(self, options: ExtractOptions) -> None:
        self.exclude = Rules(os.fsencode("\n".join(options.exclude)))
        self.include = Rules(os.fsencode("\n".join(options.include))) if options.include else None

    def folder_reason(self, path: str) -> SkippedReason | None:
        """Return why a folder is skipped because of its path, or None."""
        if JUNK_FOLDER.fullmatch(path.rpartition("/")[2]):
            return "junk_folder"
        return "excluded" if self.exclude.decide(os.fsencode(path), True) else None

    def file_reason(self, path: str, folder_included: bool) -> SkippedReason | None:
        """Return why a file is skipped because of its path, or None."""
        if self.exclude.decide(os.fsencode(path), False):
            return "excluded"
        return None if self.is_included(path, False, folder_included) else "not_included"

    def is_included(self, path: str, is_dir: bool, parent_included: bool) -> bool:
        """Return whether the include patterns select a path; if none matches, its parent decides."""
        if self.include is None:
            return True
        matched = self.include.decide(os.fsencode(path), is_dir)
        return parent_included if matched is None else matched


class IgnoreLevel(Struct, frozen=True):
    """The rules of one ignore file, and how to make a path relative to its folder."""

    rules: Rules
    # Prefix to add to a path, if the ignore file lies above the root ...
    prefix: bytes = b""
    # ... and number of bytes to remove from its start, if below.
    cut: int = 0


def is_ignored(levels: Iterable[IgnoreLevel], path: bytes, is_dir: bool) -> bool:
    """Return the decision of the nearest ignore file with a pattern that matches."""
    for level in levels:
        matched = level.rules.decide(level.prefix + path[level.cut :], is_dir)
        if matched is not None:
            return matched
    return False


class _Folder(Struct, frozen=True):
    """A folder to be visited."""

    path: str
    levels: tuple[IgnoreLevel, ...]
    included: bool


class FileFacts(Protocol):
    """Size and modification time of a file."""

    @property
    def st_size(self) -> int: ...
    @property
    def st_mtime_ns(self) -> int: ...


class FolderItem(Protocol):
    """A file or folder in a folder, as `os.scandir` yields them."""

    @property
    def name(self) -> str: ...
    def is_symlink(self) -> bool: ...
    def is_dir(self, *, follow_symlinks: bool) -> bool: ...
    def is_file(self, *, follow_symlinks: bool) -> bool: ...
    def stat(self, *, follow_symlinks: bool) -> FileFacts: ...


class OpenFolder(Protocol):
    """A folder while it is visited; methods raise OSError."""

    def items(self) -> Sequence[FolderItem]:
        """List the files and folders in it."""

    def read_head(self, name: str, size: int) -> bytes:
        """Read the first bytes of a file."""


class FolderTree(Protocol):
    """Folders below a root, in a file system or in an object store."""

    def open(self, path: str) -> AbstractContextManager[OpenFolder]:
        """Open a folder; raise OSError if that is not possible."""

    def location(self, path: str) -> str:
        """Return what is opened to read a path (see `Entry`)."""


class _LocalFolder(Struct, frozen=True):
    """A folder of a file system."""

    fd: int

    def items(self) -> list[os.DirEntry[str]]:
        with os.scandir(self.fd) as scan:
            return list(scan)

    def read_head(self, name: str, size: int) -> bytes:
        return read_head(name, self.fd, size)


class _LocalTree(Struct, frozen=True):
    """Folders of a file system below an open root."""

    root: str
    root_fd: int

    @contextmanager
    def open(self, path: str) -> Iterator[_LocalFolder]:
        with closing_fd(open_below(self.root_fd, path)) as fd:
            yield _LocalFolder(fd)

    def location(self, path: str) -> str:
        return f"{self.root.rstrip('/')}/{path}"


def walk_folders(
    tree: FolderTree, options: ExtractOptions, levels: tuple[IgnoreLevel, ...] = ()
) -> list[Entry]:
    """Visit folders and list their entries; `levels` are ignore files above the root."""
    walk = _FolderWalk(tree, Selection(options), options.max_file_size)
    walk.run(levels)
    return walk.entries


class _FolderWalk:
    """Visit folders and collect entries."""

    def __init__(self, tree: FolderTree, selection: Selection, max_size: int) -> None:
        self.tree = tree
        self.selection = selection
        self.max_size = max_size
        self.entries: list[Entry] = []

    def run(self, levels: tuple[IgnoreLevel, ...]) -> None:
        pending = [_Folder("", levels, False)]
        while pending:
            folder = pending.pop()
            try:
                with self.tree.open(folder.path) as opened:
                    pending += self.visit(folder, opened)
            except OSError as problem:
                if not folder.path:
                    raise
                self.add(folder.path, skip_reason(problem))

    def visit(self, folder: _Folder, opened: OpenFolder) -> list[_Folder]:
        """Add the entries of one folder; return its sub-folders to visit."""
        items = opened.items()
        names = {item.name for item in items}
        if folder.path and not names.isdisjoint(ENVIRONMENT_MARKERS):
            self.add(folder.path, "virtual_environment")
            return []
        prefix = f"{folder.path}/" if folder.path else ""
        rules = read_rules(opened, [name for name in IGNORE_FILES if name in names])
        own_level = () if rules is None else (IgnoreLevel(rules, cut=len(os.fsencode(prefix))),)
        folder = replace(folder, levels=own_level + folder.levels)
        subfolders: list[_Folder] = []
        for item in items:
            path = prefix + item.name
            if item.is_symlink():
                self.add(path, "symlink")
            elif item.is_dir(follow_symlinks=False):
                subfolders += self.check_folder(folder, path)
            elif not item.is_file(follow_symlinks=False):
                self.add(path, "not_a_file")
            elif may_be_source(path):
                self.check_file(folder, path, item, opened)
        return subfolders

    def check_folder(self, parent: _Folder, path: str) -> Iterator[_Folder]:
        """Yield a folder that is to be visited, or add it as skipped."""
        reason = self.selection.folder_reason(path)
        if reason is None and is_ignored(parent.levels, os.fsencode(path), True):
            reason = "ignored"
        if reason is None:
            yield _Folder(path, parent.levels, self.selection.is_included(path, True, parent.included))
        else:
            self.add(path, reason)

    def check_file(self, folder: _Folder, path: str, item: FolderItem, opened: OpenFolder) -> None:
        """Add a file that is to be read, or as skipped."""
        try:
            status = item.stat(follow_symlinks=False)
        except OSError as problem:
            self.add(path, skip_reason(problem))
            return
        reason = self.selection.file_reason(path, folder.included)
        if reason != "excluded" and is_ignored(folder.levels, os.fsencode(path), False):
            reason = "ignored"
        if reason is None and "." not in item.name:
            reason = _script_reason(item.name, opened)
        if reason is None and status.st_size > self.max_size:
            reason = "too_large"
        self.add(path, reason, status)

    def add(self, path: str, reason: SkippedReason | None, status: FileFacts | None = None) -> None:
        """Add an entry: skipped for a reason, or to be read if there is none."""
        size, mtime = (None, None) if status is None else (status.st_size, status.st_mtime_ns)
        location = encode_location(self.tree.location(path))
        stub = status is not None and path.lower().endswith(STUB)
        self.entries.append(Entry(escape_path(path), location, size, mtime, stub, reason))


def _script_reason(name: str, folder: OpenFolder) -> SkippedReason | None:
    try:
        head = folder.read_head(name, HEAD_BYTES)
    except OSError as problem:
        return skip_reason(problem)
    return None if is_python_script(head) else "not_python"


def read_rules(folder: OpenFolder, names: Sequence[str]) -> Rules | None:
    """Read the rules of a folder's ignore files, of which later ones win; skip those that cannot be read."""
    texts = []
    for name in names:
        try:
            text = folder.read_head(name, IGNORE_BYTES)
        except OSError:
            continue
        # A line cut in the middle could match other paths.
        texts.append(text if len(text) < IGNORE_BYTES else text[: text.rfind(b"\n") + 1])
    return Rules(*texts) if texts else None


def _levels_above(root: Path) -> tuple[IgnoreLevel, ...]:
    """Read the rules from the folder that holds `.git` down to the one above the root, the nearest first."""
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)
    if top is None:
        return ()
    rules = _rules_at(top, ".git/info", ("exclude",))
    levels: tuple[IgnoreLevel, ...] = () if rules is None else (IgnoreLevel(rules),)
    folder = top
    for name in root.relative_to(top).parts:
        rules = _rules_at(folder, "", IGNORE_FILES)
        levels = levels if rules is None else (IgnoreLevel(rules), *levels)
        raw = os.fsencode(name)
        if is_ignored(levels, raw, True):
            return ()
        levels = tuple(IgnoreLevel(level.rules, level.prefix + raw + b"/") for level in levels)
        folder /= name
    return levels


def _rules_at(top: Path, folder: str, names: Sequence[str]) -> Rules | None:
    try:
        with (
            closing_fd(os.open(top, FOLDER_FLAGS)) as top_fd,
            closing_fd(open_below(top_fd, folder)) as folder_fd,
        ):
            return read_rules(_LocalFolder(folder_fd), names)
    except OSError:
        return None
