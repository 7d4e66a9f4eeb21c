"""List the files of a source: a folder or an archive.

    list_source(Path("requests-2.34.2.tar.gz"), options).kind     # tar

Tests: `tests/unit/sources/test_listing.py`, `tests/unit/sources/test_archives.py`.
"""

from __future__ import annotations

import stat
from pathlib import Path

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import UsageError
from codeanatomy.sources.archives import list_archive
from codeanatomy.sources.listing import Listing, list_folder


def list_source(path: Path, options: ExtractOptions) -> Listing:
    """List the entries of a folder or an archive."""
    try:
        root = path.resolve(strict=True)
        mode = root.stat().st_mode
    # A RuntimeError is a loop of links.
    except (OSError, RuntimeError, ValueError) as problem:
        raise UsageError(f"{path} cannot be opened: {problem}", "name a folder or an archive") from problem
    if stat.S_ISDIR(mode):
        return list_folder(root, options)
    if stat.S_ISREG(mode):
        return list_archive(root, options)
    raise UsageError(f"{path} is neither a folder nor an archive", "name a folder, a wheel or an sdist")
