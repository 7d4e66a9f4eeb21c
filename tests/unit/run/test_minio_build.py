"""A small build into a real S3 server, and a question about it; `tests/system` has more of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.commands import LOCAL_BUILDS
from support.minio import running_minio

MONEY = "def gross(net):\n    return net * 1.2\n"
CART = "from money import gross\n\n\ndef total(items):\n    return sum(gross(item) for item in items)\n"


def test_a_build_and_a_question(tmp_path: Path) -> None:
    source = tmp_path / "shop"
    source.mkdir()
    (source / "money.py").write_text(MONEY)
    (source / "cart.py").write_text(CART)
    # Keys of the machine must not be needed, and not be used.
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CODEANATOMY_LAKE"))
    } | LOCAL_BUILDS
    with running_minio(tmp_path / "minio", ("lakes",), build=False) as server:

        def run(*arguments: str) -> str:
            command = [
                sys.executable,
                "-m",
                "codeanatomy",
                *server.flags,
                *arguments,
                "--lake",
                "s3a://lakes/shop",
            ]
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False)
            assert done.returncode == 0, done.stderr
            assert server.secret_key not in done.stdout + done.stderr
            return done.stdout

        run("build", "shop")
        rows = json.loads(run("callers", "money.gross", "--format", "json"))["rows"]
        stored = sorted(path.name for path in (tmp_path / "minio" / "data" / "lakes" / "shop").iterdir())
    assert [row["symbol"] for row in rows] == ["cart.total"]
    assert {"extract", "graph", "meta"} <= set(stored)
