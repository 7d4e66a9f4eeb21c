"""Pack archives in memory, damage them, and read the contents of a listing."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.listing import Listing
from codeanatomy.sources.reading import read_entries

DEFAULT = ExtractOptions()
WHEN = 1_600_000_000
Content = bytes | tarfile.TarInfo | zipfile.ZipInfo
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "gz": lambda raw: gzip.compress(raw, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def tar_bytes(members: Iterable[tuple[str, Content]], form: int = tarfile.PAX_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for name, content in members:
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                archive.addfile(content)
            elif isinstance(content, bytes):
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(content), WHEN
                archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def zip_bytes(
    members: Iterable[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED, attr: int = 0
) -> bytes:
    made = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w", method) as archive:
        warnings.simplefilter("ignore", UserWarning)
        for name, content in members:
            info = zipfile.ZipInfo("x", (2020, 9, 13, 12, 26, 40))
            # The constructor would normalize the name.
            info.filename = info.orig_filename = name
            info.external_attr, info.compress_type = attr << 16, method
            archive.writestr(info, content)
    return made.getvalue()


def stored(tmp_path: Path, raw: bytes, name: str = "archive") -> Path:
    path = tmp_path / name
    path.write_bytes(raw)
    return path


def contents(found: Listing, options: ExtractOptions = DEFAULT) -> dict[str, bytes | str]:
    """What is read of each entry: its bytes, or the reason why not."""
    return {
        reading.entry.path: reading.raw if reading.failure is None else reading.failure.reason  # type: ignore[misc]
        for reading in read_entries(found.kind, found.root, found.entries, options)
    }


def patched(raw: bytes, local: int, central: int, form: str, value: int) -> bytes:
    """A zip with a field changed in the first local header and the first line of the directory."""
    made = bytearray(raw)
    struct.pack_into(form, made, local, value)
    struct.pack_into(form, made, made.index(b"PK\x01\x02") + central, value)
    return bytes(made)
