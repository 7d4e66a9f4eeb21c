"""List the releases of real packages in their order: edits that their authors made.

    for version, source in history("flask"):       # ("2.2.0", <cache>/corpus/flask-2.2.0), ...
        write_tree(folder, read_tree(source))

They are wheels of Python alone, pinned by version and hash, and fetched and kept as `corpus` does it.
Tests: `tests/unit/pipeline/test_edits.py`.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from codeanatomy.errors import UnknownName
from support import corpus

PINS = """
flask==2.2.0 --hash=sha256:10dc2bae7a9b6ab59111d6dbece2e08fb0015d2e88d296c40323cc0c7aac2c2e
flask==2.2.5 --hash=sha256:58107ed83443e86067e41eff4631b058178191a355886f8e479e347fa1285fdf
flask==2.3.0 --hash=sha256:99a4889167c86fe57c4036825ebc77dc5dc3241bf0d80ea80ca941587d0d6a52
flask==2.3.3 --hash=sha256:f69fcd559dc907ed196ab9df0e48471709175e696d6e698dd4dbe940f96ce66b
flask==3.0.0 --hash=sha256:21128f47e4e3b9d597a3e8521a329bf56909b690fcc3fa3e477725aa81367638
flask==3.0.3 --hash=sha256:34e815dfaa43340d1d15a5c3a02b8476004037eb4840b34910c6e21679d288f3
flask==3.1.0 --hash=sha256:d667207822eb83f1c4b50949b1623c8fc8d51f2341d65f72e1a1815397551136
flask==3.1.3 --hash=sha256:f4bcbefc124291925f1a26446da31a5178f9483862233b23c0c96a20701f670c
requests==2.28.0 --hash=sha256:bc7861137fbce630f17b03d3ad02ad0bf978c844f3536d0edda6499dafce2b6f
requests==2.28.2 --hash=sha256:64299f4909223da747622c030b781c0d7811e359c37124b4bd368fb8c6518baa
requests==2.29.0 --hash=sha256:e8f3c9be120d3333921d213eef078af392fba3933ab7ed2d1cba3b56f2568c3b
requests==2.31.0 --hash=sha256:58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f
requests==2.32.2 --hash=sha256:fc06670dd0ed212426dfeb94fc1b983d917c4f9847c863f313c9dfaaffb7c23c
requests==2.32.3 --hash=sha256:70761cfe03c773ceb22aa2f671b4757976145175cdfca038c02654d061d6dcc6
requests==2.32.5 --hash=sha256:2462f94637a34fd532264295e186976db0f5d453d1cdd31473c85a6a161affb6
requests==2.34.2 --hash=sha256:2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0
"""


def history(name: str) -> list[tuple[str, Path]]:
    """Return the releases of a package, the oldest first, each with the folder of its unpacked sources."""
    pins: dict[str, list[tuple[str, str]]] = {}
    for line, package, version in re.findall(r"^(([\w-]+)==(\S+) .+)$", PINS, re.MULTILINE):
        pins.setdefault(package, []).append((version, line))
    if name not in pins:
        raise UnknownName("history", name, pins)
    return [
        (version, corpus._fetched(f"{name}-{version}", partial(_unpacked, line)))
        for version, line in pins[name]
    ]


def _unpacked(requirement: str, work: Path) -> None:
    corpus.unpack(corpus._wheel(work, requirement), work / "unpacked")
