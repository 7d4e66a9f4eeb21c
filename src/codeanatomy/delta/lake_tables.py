"""Hold the context of reads and writes without Spark: lake root, table contracts, event recorder.

    tables = LakeTables("/data/lake")
    tables.location("cpg_nodes")            # /data/lake/graph/cpg_nodes

`delta.store` adds a Spark session. Tests: `tests/spark/test_session.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.events import Recorder, discard
from codeanatomy.delta.store_policy import FAMILIES
from codeanatomy.errors import RemotePathRefused, UsageError

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


@dataclass(frozen=True)
class LakeTables:
    """The context of a read or write without Spark."""

    # Path or URI of the lake.
    root: str
    tables: tuple[Table, ...] = catalog.TABLES
    record: Recorder = discard
    require_local_paths: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", normalize_root(str(self.root), self.require_local_paths))

    def table(self, name: str) -> Table:
        """Return the contract of a table, with the policies of the settings."""
        return catalog.table(name, self.tables)

    def location(self, name: str) -> str:
        """Return the path or URI of a table."""
        return f"{self.root}/{self.table(name).path}"


def normalize_root(root: str, require_local_paths: bool) -> str:
    """Make a local root absolute, strip a trailing slash, and refuse a remote root if `require_local_paths`.

    >>> normalize_root("s3a://bucket/lake/", require_local_paths=False)
    's3a://bucket/lake'
    """
    if not root:
        raise UsageError("the path of the lake is empty", "give a folder or a URI")
    # Delta addresses tables as delta.`path` and does not escape the path itself.
    if "`" in root or "\n" in root:
        raise UsageError(
            f"{root!r} cannot be the path of a lake", "use a path without backticks and line breaks"
        )
    scheme = SCHEME.match(root)
    if scheme is None:
        path = Path(root).absolute()
        if path.is_file():
            raise UsageError(f"{root} is a file, not a folder", "give a folder for the lake")
        return str(path)
    if "//" in root.partition("://")[2].rstrip("/"):
        raise UsageError(f"{root} has an empty part between two slashes", "write the URI with single slashes")
    if scheme[1].lower() in FAMILIES and not urlsplit(root).netloc:
        raise UsageError(f"{root} names no bucket", f"write it like {scheme[1]}://bucket/lake")
    if require_local_paths and scheme[1].lower() != "file":
        raise RemotePathRefused(
            f"{root} is remote, but runtime.require_local_paths is true",
            "use a local folder, or set runtime.require_local_paths=false",
        )
    return root.rstrip("/")
