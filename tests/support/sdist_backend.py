"""Stand in for setuptools, as a build backend that builds nothing, while pip downloads an sdist.

pip saves a source distribution only once its backend has returned its name and version, and setuptools runs
code of the package to find them. They are in the archive already, in `PKG-INFO`. `corpus` puts a copy of this
file where pip finds it as `setuptools.build_meta`.

Tests: `tests/unit/test_corpus.py`.
"""

from __future__ import annotations

import email
import shutil
from pathlib import Path


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    """The hook of PEP 517, which pip calls in the folder of the unpacked archive."""
    metadata = email.message_from_bytes(Path("PKG-INFO").read_bytes())
    folder = Path(metadata_directory, f"{metadata['Name']}-{metadata['Version']}.dist-info")
    folder.mkdir()
    shutil.copyfile("PKG-INFO", folder / "METADATA")
    return folder.name
