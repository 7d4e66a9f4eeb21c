r"""List the Python files of a folder in an object store, given its objects; nothing is fetched here.

    objects = [StoredObject("pkg/api.py", 812, 1763400000000000000, '"9c1e"'), StoredObject("LICENSE", ...)]
    heads_needed(objects)                          # {"LICENSE": 256}: bytes to read of some objects
    listing = list_objects(uri, copies, objects, {"LICENSE": b"MIT License..."}, options)
    listing.entries[0].location                    # "3f0c.../pkg/api.py": name of its copy, key of the object

The entries are those of a local folder with the same files (`sources.listing`), including ignore files and
`.git/info/exclude`; there are no links. Ignore files above the folder do not apply. Files are read from
copies on this machine (`plan.stored_sources` fetches them). The name of a copy is a hash of the object's key,
size and entity tag, so an object that was replaced has another copy:

>>> names = [copy_name("pkg/api.py", 812, tag) for tag in ("9c1e", "77ab", "9c1e")]
>>> names[0] == names[2] != names[1]
True

Keys may be forged. Names that lead out of the folder, or could on some system, are entries with the reason
unsafe_path, as in an archive, and are never fetched (the client of most stores refuses to list `..`, and then
the source is refused). A folder may be an object of its own, of no bytes, that cannot be read: that is no
entry.

Tests: `tests/unit/sources/test_stored_objects.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.archives import display_unsafe_name, safe_path
from codeanatomy.sources.listing import (
    HEAD_BYTES,
    IGNORE_BYTES,
    IGNORE_FILES,
    JUNK_FOLDER,
    Entry,
    IgnoreLevel,
    Listing,
    encode_location,
    read_rules,
    sorted_by_path,
    walk_folders,
)

# Hex digits of the name of a copy.
DIGITS = 40
GIT_INFO, GIT_EXCLUDE = ".git/info", "exclude"


class StoredObject(Struct, frozen=True):
    """An object below the folder of a source."""

    # Relative to the folder.
    key: str
    size_bytes: int
    mtime_ns: int
    # Entity tag: differs for another content.
    tag: str

    @property
    def copy(self) -> str:
        """Name of its copy."""
        return copy_name(self.key, self.size_bytes, self.tag)


def copy_name(key: str, size_bytes: int, tag: str) -> str:
    """Return the name of the copy of an object."""
    text = f"{key}\0{size_bytes}\0{tag}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:DIGITS]


def heads_needed(objects: Sequence[StoredObject]) -> dict[str, int]:
    """Return how many bytes of which objects decide what is listed: ignore files, and files without a dot."""
    needed = {}
    for each in objects:
        *folders, name = each.key.split("/")
        if any(JUNK_FOLDER.fullmatch(folder) for folder in folders) or safe_path(each.key) != each.key:
            continue
        if name in IGNORE_FILES:
            needed[each.key] = IGNORE_BYTES
        elif "." not in name:
            needed[each.key] = HEAD_BYTES
    exclude = f"{GIT_INFO}/{GIT_EXCLUDE}"
    return {**needed, **{each.key: IGNORE_BYTES for each in objects if each.key == exclude}}


def list_objects(
    uri: str,
    copies: str,
    objects: Sequence[StoredObject],
    heads: Mapping[str, bytes],
    options: ExtractOptions,
) -> Listing:
    """List the objects of a folder.

    `copies` is the folder of the copies on this machine, `heads` has the first bytes of the objects of
    `heads_needed`, except those that cannot be read.
    """
    unreadable = heads_needed(objects).keys() - heads.keys()
    present = [each for each in objects if each.key and each.key not in unreadable]
    tree = _StoredTree([each for each in present if safe_path(each.key) == each.key], heads)
    with tree.open(GIT_INFO) as git_info:
        rules = read_rules(git_info, [GIT_EXCLUDE] if f"{GIT_INFO}/{GIT_EXCLUDE}" in heads else [])
    entries = walk_folders(tree, options, () if rules is None else (IgnoreLevel(rules),))
    unsafe = [
        Entry(display_unsafe_name(each.key), encode_location(each.key), None, None, False, "unsafe_path")
        for each in present
        if safe_path(each.key) != each.key
    ]
    return Listing(encode_location(copies), "copies", sorted_by_path([*entries, *unsafe]), uri)


class _Facts(Struct, frozen=True):
    """Size and modification time, under the names that the system uses."""

    st_size: int
    st_mtime_ns: int


class _StoredItem(Struct, frozen=True):
    """An object in a folder, or a folder, which is the common start of keys."""

    name: str
    file: StoredObject | None

    def is_symlink(self) -> bool:
        return False

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        return self.file is None

    def is_file(self, *, follow_symlinks: bool) -> bool:
        return self.file is not None

    def stat(self, *, follow_symlinks: bool) -> _Facts:
        if self.file is None:
            raise IsADirectoryError(self.name)
        return _Facts(self.file.size_bytes, self.file.mtime_ns)


class _StoredFolder(Struct, frozen=True):
    """A folder with its items, and the heads of all objects."""

    prefix: str
    contents: Sequence[_StoredItem]
    heads: Mapping[str, bytes]

    def items(self) -> Sequence[_StoredItem]:
        return self.contents

    def read_head(self, name: str, size: int) -> bytes:
        return self.heads.get(self.prefix + name, b"")[:size]


class _StoredTree:
    """The folders of a store, derived from the keys of its objects."""

    def __init__(self, objects: Sequence[StoredObject], heads: Mapping[str, bytes]) -> None:
        self.heads = heads
        self.objects = {each.key: each for each in objects}
        # By path of a folder.
        self.items: dict[str, list[_StoredItem]] = {"": []}
        for each in objects:
            folder, _, name = each.key.rpartition("/")
            self._enter(folder)
            self.items[folder].append(_StoredItem(name, each))

    def _enter(self, folder: str) -> None:
        """Add a folder and those above it, unless they are known."""
        if folder in self.items:
            return
        above, _, name = folder.rpartition("/")
        self._enter(above)
        self.items[folder] = []
        self.items[above].append(_StoredItem(name, None))

    @contextmanager
    def open(self, path: str) -> Iterator[_StoredFolder]:
        yield _StoredFolder(f"{path}/" if path else "", self.items.get(path, ()), self.heads)

    def location(self, path: str) -> str:
        stored = self.objects.get(path)
        return path if stored is None else f"{stored.copy}/{path}"
