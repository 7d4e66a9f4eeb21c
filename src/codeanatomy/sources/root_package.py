"""Find the package that the root of a source is: `build path/to/pydantic` builds the package `pydantic`.

    path/to/pydantic/__init__.py, main.py     pydantic, pydantic.main
    app/__init__.py, models.py                no package, if its files write `import models`: a stray file
    pydantic-1.10.27.zip, with __init__.py    pydantic: a version is no part of the name
    my-tool/__init__.py                       no package: it cannot be imported

A root is a package if it has an `__init__.py`. Its name is that of the folder or archive; a name that the
user has given the repository (`core=path/to/pydantic`) counts where the files import it more often. Paths of
files stay relative to the root. Tests: `tests/unit/sources/test_root_package.py`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from keyword import iskeyword
from pathlib import PurePosixPath

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.listing import Listing, decode_location
from codeanatomy.sources.reading import read_entries

INITS = frozenset({"__init__.py", "__init__.pyi"})
ARCHIVE = re.compile(r"\.(whl|zip|tar|tgz|tar\.\w+)$", re.IGNORECASE)
VERSION = re.compile(r"[-@]v?\d.*$", re.DOTALL)
# The first part of what an absolute import names.
IMPORTED = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([^\W\d]\w*)", re.MULTILINE)


def root_package(listing: Listing, repo_id: str, options: ExtractOptions) -> str:
    """Return the import name of the package that the root of a listing is; empty if it is none."""
    read = [entry for entry in listing.entries if entry.skipped_reason is None]
    if not any(entry.path in INITS for entry in read):
        return ""
    source = listing.uri or decode_location(listing.root)
    names = [name for name in map(import_name, (source, repo_id)) if name]
    if not names:
        return ""
    imported: Counter[str] = Counter()
    for reading in read_entries(listing.kind, listing.root, read, options):
        imported.update(name.decode() for name in IMPORTED.findall(reading.raw or b"") if name.isascii())
    # Of equal counts, the folder's.
    package = max(names, key=lambda name: imported[name])
    beside = {PurePosixPath(entry.path).parts[0].partition(".")[0] for entry in read}
    others = beside - sys.stdlib_module_names - set(names)
    return "" if sum(imported[name] for name in others) > imported[package] else package


def import_name(source: str) -> str:
    """Return the name that a folder, an archive or a repository can be imported by; else empty.

    >>> [import_name(each) for each in ("/x/pydantic", "org/demo@1.2", "pydantic-1.10.tar.gz", "my-tool")]
    ['pydantic', 'demo', 'pydantic', '']
    """
    name = VERSION.sub("", ARCHIVE.sub("", source.rstrip("/").rpartition("/")[2]))
    return name if name.isidentifier() and not iskeyword(name) else ""
