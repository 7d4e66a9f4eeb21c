r"""Which files of a folder are read, and why the others are not.

A listing has one entry per path that was considered, sorted by path. A folder that is skipped is one entry;
nothing inside it is looked at. This is what becomes of a small repository:

    .git/                   junk_folder
    build/                  ignored               by .gitignore
    pkg/api.py              to be read
    pkg/api.pyi             to be read, a stub
    pkg/data.json           no entry: neither named like Python nor without a dot
    pkg/latest -> api.py    symlink
    tool                    to be read, begins with #!/usr/bin/env python3
    LICENSE                 not_python

Python files are `.py`, `.pyi` and `.pyw` in any case (`SETUP.PY` runs, though Linux does not import it), and
files without a dot in their name whose first line calls Python. Links are never followed: every folder is
opened part by part from the root, so that none can lead out while we walk.

Ignore files: `.gitignore` at every level, then `.codeanatomyignore`, whose patterns win over the former in
its folder, and `.git/info/exclude` (not where `.git` is a file, and nobody's global settings: the same folder
gives the same rows everywhere). If the root lies inside a work tree, the files from the folder that holds
`.git` down to the root count too, unless they exclude the root itself: then it was named on purpose. Git's
index is not read, so a file that is tracked although a pattern matches it is ignored here.

What a pattern means is told by `ignoring`. `extract.include` and `extract.exclude` have the same syntax,
relative to the root. An excluded folder is not entered; of the include patterns, the one that matches the
file or the nearest folder above it counts.

Archives are listed by `archives`; `sources` tells them apart. Tests: `tests/unit/sources/test_listing.py`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct
from msgspec.structs import replace

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import UsageError
from codeanatomy.sources.ignore_rules import Rules

# Why a path is not read. `reading` gives some of these, too.
SkippedReason: TypeAlias = Literal[
    "changing",  # was being written each time it was read
    "damaged",  # cannot be unpacked: bad checksum, bad data or cut off
    "encrypted",  # a member of an archive that needs a password
    "excluded",  # matches extract.exclude
    "ignored",  # matches .gitignore, .codeanatomyignore or .git/info/exclude
    "junk_folder",  # a folder of a tool, known by its name, such as .git or __pycache__
    "not_a_file",  # a pipe, a socket or a device
    "not_included",  # does not match extract.include
    "not_python",  # has no suffix, and its first line does not call Python
    "symlink",  # a link; in an archive also a hard link
    "too_large",  # larger than extract.max_file_size
    "unreadable",  # the system, or an unknown way of compression, does not let us read it
    "unsafe_path",  # a member of an archive whose name leads out of it, or could on some system
    "vanished",  # was listed, and gone when it was to be read
    "virtual_environment",  # a folder with pyvenv.cfg or conda-meta
]

STUB = ".pyi"
SUFFIXES = (".py", STUB, ".pyw")
# Folders that are never a package of their own. `venv` and `env` may be: those need a pyvenv.cfg.
JUNK = re.compile(
    r"\.(git|hg|svn|bzr|tox|nox|venv|eggs|idea|vscode|hypothesis|ipynb_checkpoints|(mypy|pytest|ruff)_cache)"
    r"|__pycache__|node_modules|site-packages|.+\.egg-info",
    re.DOTALL,
)
ENVIRONMENT = frozenset({"pyvenv.cfg", "conda-meta"})
IGNORE_FILES = (".gitignore", ".codeanatomyignore")
# Of an ignore file, what comes after is not read; the largest known ones have some 20 KB.
IGNORE_BYTES = 128 * 1024
HEAD_BYTES = 256

# Without O_NONBLOCK, a pipe that took the place of a file would wait for its writer.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER_FLAGS = FILE_FLAGS | os.O_DIRECTORY

# A socket cannot be opened: ENXIO.
REFUSALS: dict[int, SkippedReason] = {errno.ENOENT: "vanished", errno.ENOTDIR: "vanished"}
REFUSALS |= {errno.ELOOP: "symlink", errno.ENXIO: "not_a_file"}


class Entry(Struct, frozen=True):
    """One path that was considered."""

    # Below the root, with "/"; bytes that are not UTF-8 are shown as `\xNN`.
    path: str
    # What is opened: an absolute path, or the name of a member of an archive; both `portable`.
    location: str
    size_bytes: int | None
    mtime_ns: int | None
    is_stub: bool
    # Null: to be read.
    skipped_reason: SkippedReason | None
    # Where a member of a tar begins: of several with one name, this one.
    position: int | None = None


class Listing(Struct, frozen=True):
    """A folder or an archive (its absolute path, `portable`), and its entries sorted by path."""

    root: str
    kind: Literal["folder", "zip", "tar"]
    entries: tuple[Entry, ...]


def list_folder(root: Path, options: ExtractOptions) -> Listing:
    """The entries of a folder; `root` is absolute and has no link in it."""
    walk = _Walk(root, Selection(options), options.max_file_size)
    try:
        with held(os.open(root, FOLDER_FLAGS)) as root_fd:
            walk.everything(root_fd)
    except OSError as problem:
        raise UsageError(f"{root} cannot be read: {problem}", "check its permissions") from problem
    return Listing(portable(str(root)), "folder", sorted_by_path(walk.entries))


def sorted_by_path(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    r"""The entries in order, each with a path of its own: a name may read like the escapes of another."""
    made: dict[str, Entry] = {}
    numbers: Counter[str] = Counter()
    # Those that are shown as they are named keep their path.
    for entry in sorted(entries, key=lambda entry: (not entry.location.endswith(entry.path), entry.location)):
        path = entry.path
        while path in made:
            numbers[entry.path] += 1
            path = f"{entry.path}~{numbers[entry.path] + 1}"
        made[path] = entry if path == entry.path else replace(entry, path=path)
    return tuple(made[path] for path in sorted(made))


def shown(path: str) -> str:
    r"""A path as it is stored: valid UTF-8, other bytes as escapes.

    >>> shown("caf\udce9.py"), shown("café.py")
    ('caf\\xe9.py', 'café.py')
    """
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def portable(name: str) -> str:
    r"""A name that can be stored and sent; `unported` gives back the very bytes.

    >>> portable("/café.py"), portable("/caf\udce9.py"), unported("bytes:/caf%E9.py") == "/caf\udce9.py"
    ('/café.py', 'bytes:/caf%E9.py', True)
    """
    return name if shown(name) == name else "bytes:" + quote(os.fsencode(name))


def unported(location: str) -> str:
    """The name again, with surrogates for bytes that are not UTF-8."""
    coded = location.removeprefix("bytes:")
    return location if coded == location else os.fsdecode(unquote_to_bytes(coded))


def may_be_python(name: str) -> bool:
    """Whether a file is considered: named like Python, or without a dot."""
    return "." not in name or name.lower().endswith(SUFFIXES)


SHEBANG = re.compile(
    # Options and assignments of env; "-Spython" is an option and a command.
    rb"#![ \t]*(?:(?:\S*/)?env[ \t]+(?:(?:-(?!S\S)\S*|\w+=\S*)[ \t]+)*(?:-S)?)?"
    # uv and pipx run scripts that say in a comment what they need.
    rb"(?:\S*/)?(?:(?:pythonw?|pypy)[0-9.]*[dmtu]{0,3}|(?:uv|pipx)[ \t]+run)(?!\S)",
    re.IGNORECASE,
)


def is_python_script(head: bytes) -> bool:
    """Whether a file that begins so is run by Python.

    >>> [is_python_script(b"#!" + line) for line in (b"/usr/bin/env -S python3 -u", b" python", b"/bin/sh")]
    [True, True, False]
    """
    return SHEBANG.match(head) is not None


def open_below(root_fd: int, folder: str) -> int:
    """A descriptor of a folder below the root (`""`: the root itself); no part of the way may be a link."""
    fd = os.open(".", FOLDER_FLAGS, dir_fd=root_fd)
    for part in folder.split("/") if folder else ():
        try:
            below = os.open(part, FOLDER_FLAGS, dir_fd=fd)
        except NotADirectoryError:
            # Linux says this of a link, too.
            if stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
            raise
        finally:
            os.close(fd)
        fd = below
    return fd


def read_head(name: str, folder_fd: int, size: int) -> bytes:
    """The first bytes of a file; nothing of a pipe or a device."""
    with held(os.open(name, FILE_FLAGS, dir_fd=folder_fd)) as fd:
        return os.read(fd, size) if stat.S_ISREG(os.fstat(fd).st_mode) else b""


@contextmanager
def held(fd: int) -> Iterator[int]:
    """The descriptor, closed at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def refusal(problem: OSError) -> SkippedReason:
    """What it means that a path could not be opened."""
    return REFUSALS.get(problem.errno or 0, "unreadable")


class Selection:
    """What is skipped by its name or by the user's globs, in folders and in archives."""

    def __init__(self, options: ExtractOptions) -> None:
        self.exclude = Rules(os.fsencode("\n".join(options.exclude)))
        self.include = Rules(os.fsencode("\n".join(options.include))) if options.include else None

    def folder(self, path: str) -> SkippedReason | None:
        """Why a folder is not entered, as far as its path tells."""
        if JUNK.fullmatch(path.rpartition("/")[2]):
            return "junk_folder"
        return "excluded" if self.exclude.decide(os.fsencode(path), True) else None

    def file(self, path: str, included: bool) -> SkippedReason | None:
        """Why a file is not read, as far as its path tells; `included` is said of its folder."""
        if self.exclude.decide(os.fsencode(path), False):
            return "excluded"
        return None if self.included(path, False, included) else "not_included"

    def included(self, path: str, is_dir: bool, above: bool) -> bool:
        """Whether the include patterns want it; if none matches, as they want the folder above."""
        if self.include is None:
            return True
        said = self.include.decide(os.fsencode(path), is_dir)
        return above if said is None else said


class Level(Struct, frozen=True):
    """The rules of one ignore file, and how to see a path of ours from its folder."""

    rules: Rules
    # Put before a path, if the file lies above the root, ...
    lead: bytes = b""
    # ... and bytes taken off it, if below.
    cut: int = 0


def is_ignored(levels: Iterable[Level], path: bytes, is_dir: bool) -> bool:
    """What the nearest ignore file says that says anything."""
    for level in levels:
        said = level.rules.decide(level.lead + path[level.cut :], is_dir)
        if said is not None:
            return said
    return False


class _Folder(Struct, frozen=True):
    """A folder to be visited."""

    path: str
    levels: tuple[Level, ...]
    included: bool


class _Walk:
    """Visits folders and collects entries."""

    def __init__(self, root: Path, selection: Selection, max_size: int) -> None:
        self.root = root
        self.selection = selection
        self.max_size = max_size
        self.entries: list[Entry] = []

    def everything(self, root_fd: int) -> None:
        waiting = [_Folder("", _levels_above(self.root), False)]
        while waiting:
            folder = waiting.pop()
            try:
                with held(open_below(root_fd, folder.path)) as folder_fd:
                    waiting += self.visit(folder, folder_fd)
            except OSError as problem:
                if not folder.path:
                    raise
                self.add(folder.path, refusal(problem))

    def visit(self, folder: _Folder, folder_fd: int) -> list[_Folder]:
        """Add entries for what lies here; returns the folders to go on with."""
        with os.scandir(folder_fd) as found:
            items = list(found)
        names = {item.name for item in items}
        if folder.path and not names.isdisjoint(ENVIRONMENT):
            self.add(folder.path, "virtual_environment")
            return []
        lead = f"{folder.path}/" if folder.path else ""
        rules = _rules_of(folder_fd, [name for name in IGNORE_FILES if name in names])
        own = () if rules is None else (Level(rules, cut=len(os.fsencode(lead))),)
        folder = replace(folder, levels=own + folder.levels)
        below: list[_Folder] = []
        for item in items:
            path = lead + item.name
            if item.is_symlink():
                self.add(path, "symlink")
            elif item.is_dir(follow_symlinks=False):
                below += self.folder(folder, path)
            elif not item.is_file(follow_symlinks=False):
                self.add(path, "not_a_file")
            elif may_be_python(item.name):
                self.file(folder, path, item, folder_fd)
        return below

    def folder(self, above: _Folder, path: str) -> Iterator[_Folder]:
        reason = self.selection.folder(path)
        if reason is None and is_ignored(above.levels, os.fsencode(path), True):
            reason = "ignored"
        if reason is None:
            yield _Folder(path, above.levels, self.selection.included(path, True, above.included))
        else:
            self.add(path, reason)

    def file(self, folder: _Folder, path: str, item: os.DirEntry[str], folder_fd: int) -> None:
        try:
            status = item.stat(follow_symlinks=False)
        except OSError as problem:
            self.add(path, refusal(problem))
            return
        reason = self.selection.file(path, folder.included)
        if reason != "excluded" and is_ignored(folder.levels, os.fsencode(path), False):
            reason = "ignored"
        if reason is None and "." not in item.name:
            reason = _script_reason(item.name, folder_fd)
        if reason is None and status.st_size > self.max_size:
            reason = "too_large"
        self.add(path, reason, status)

    def add(self, path: str, reason: SkippedReason | None, status: os.stat_result | None = None) -> None:
        """Add an entry; without a reason, one to be read."""
        size, mtime = (None, None) if status is None else (status.st_size, status.st_mtime_ns)
        location = f"{str(self.root).rstrip('/')}/{path}"
        stub = status is not None and path.lower().endswith(STUB)
        self.entries.append(Entry(shown(path), portable(location), size, mtime, stub, reason))


def _script_reason(name: str, folder_fd: int) -> SkippedReason | None:
    try:
        head = read_head(name, folder_fd, HEAD_BYTES)
    except OSError as problem:
        return refusal(problem)
    return None if is_python_script(head) else "not_python"


def _rules_of(folder_fd: int, names: Sequence[str]) -> Rules | None:
    """The rules of a folder's ignore files, the later ones stronger; one that cannot be read says nothing."""
    texts = []
    for name in names:
        try:
            text = read_head(name, folder_fd, IGNORE_BYTES)
        except OSError:
            continue
        # A line that is cut off could mean something else.
        texts.append(text if len(text) < IGNORE_BYTES else text[: text.rfind(b"\n") + 1])
    return Rules(*texts) if texts else None


def _levels_above(root: Path) -> tuple[Level, ...]:
    """The rules from the folder that holds `.git` down to the one above the root, the nearest first."""
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)
    if top is None:
        return ()
    rules = _rules_at(top, ".git/info", ("exclude",))
    levels: tuple[Level, ...] = () if rules is None else (Level(rules),)
    folder = top
    for name in root.relative_to(top).parts:
        rules = _rules_at(folder, "", IGNORE_FILES)
        levels = levels if rules is None else (Level(rules), *levels)
        raw = os.fsencode(name)
        if is_ignored(levels, raw, True):
            return ()
        levels = tuple(Level(level.rules, level.lead + raw + b"/") for level in levels)
        folder /= name
    return levels


def _rules_at(top: Path, folder: str, names: Sequence[str]) -> Rules | None:
    try:
        with held(os.open(top, FOLDER_FLAGS)) as top_fd, held(open_below(top_fd, folder)) as folder_fd:
            return _rules_of(folder_fd, names)
    except OSError:
        return None
