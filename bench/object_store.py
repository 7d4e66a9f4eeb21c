"""Measure a lake in a local folder, at a `file:` URI and on an S3 server: builds, a question and a restore.

    PYTHONPATH=tests python bench/object_store.py PATH/OF/A/PACKAGE SYMBOL      # callers of the symbol
    ... --engine spark                                                          # builds with Spark (local[2])

The server is MinIO (`make minio`), behind a proxy of this process that counts requests; it also adds some
milliseconds to each. `unchanged` is a build without an edit, `cold` a question with an empty cache of files,
`warm` the same again, `restore` that of the first run. All are whole processes of the command line.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.spark.jars import cache_folder
from support.flaky_proxy import Proxy, flaky_proxy
from support.minio import Minio, option_flags, running_minio

STEPS = ("build", "refresh", "unchanged", "cold", "warm", "restore")
EDIT = "\n\ndef added_by_the_benchmark(value):\n    return value.encode()\n"


class Runner:
    """Runs commands on one lake, and counts their requests."""

    def __init__(self, lake: str, flags: tuple[str, ...], proxy: Proxy, work: Path) -> None:
        self.lake, self.flags, self.proxy = lake, flags, proxy
        self.cache = work / "cache"
        # The jars are large, and of no interest here.
        self.cache.mkdir()
        for name in ("jars", "archives"):
            if (cache_folder() / name).exists():
                (self.cache / name).symlink_to(cache_folder() / name)

    def run(self, *arguments: str) -> tuple[float, Counter[str]]:
        """Run a command; return its seconds, and its requests by method."""
        before, began = len(self.proxy.requests), time.monotonic()
        self.output(*arguments)
        return time.monotonic() - began, Counter(each.method for each in self.proxy.requests[before:])

    def output(self, *arguments: str) -> str:
        """Run a command; return what it prints."""
        command = [sys.executable, "-m", "codeanatomy", *self.flags, *arguments, "--lake", self.lake]
        env = {**os.environ, "CODEANATOMY_CACHE": str(self.cache)}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        return done.stdout

    def forget(self) -> None:
        """Empty the cache of fetched files."""
        shutil.rmtree(self.cache / "files", ignore_errors=True)


def measure(runner: Runner, source: Path, symbol: str, engine: str) -> dict[str, tuple[float, Counter[str]]]:
    """Return seconds and requests of each step."""
    build = ("build", f"package={source}", "--types", "off", "--engine", engine)
    figures = {"build": runner.run(*build)}
    edited = max(source.rglob("*.py"))
    before = edited.read_text()
    edited.write_text(before + EDIT)
    figures["refresh"] = runner.run(*build)
    figures["unchanged"] = runner.run(*build)
    runner.forget()
    figures["cold"] = runner.run("callers", symbol)
    figures["warm"] = runner.run("callers", symbol)
    edited.write_text(before)
    first = json.loads(runner.output("runs", "--format", "json"))["rows"][-1]["run_id"]
    figures["restore"] = runner.run("restore", "--run", first)
    return figures


def listed(requests: Counter[str]) -> str:
    """Return requests by method as text."""
    return ", ".join(f"{count} {name}" for name, count in sorted(requests.items())) or "-"


def lakes(folder: Path, server: Minio, proxy: Proxy) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the places with their lakes and flags."""
    options = {**server.storage_options, "fs.s3a.endpoint": proxy.endpoint}
    return {
        "folder": (str(folder / "folder"), ()),
        "file: URI": ((folder / "uri").as_uri(), ()),
        "MinIO": ("s3a://lakes/lake", option_flags(options)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("symbol")
    parser.add_argument("--engine", default="local")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as temporary:
        folder = Path(temporary)
        source = folder / "source"
        shutil.copytree(given.source, source)
        with (
            running_minio(folder / "minio", ("lakes",)) as server,
            flaky_proxy(server.port, lambda request: None) as proxy,
        ):
            print("| place | " + " | ".join(f"{step} s | requests" for step in STEPS) + " |")
            print("|---" * (1 + 2 * len(STEPS)) + "|")
            places = lakes(folder, server, proxy)
            for number, (place, (lake, flags)) in enumerate(places.items()):
                work = folder / str(number)
                work.mkdir()
                figures = measure(Runner(lake, flags, proxy, work), source, given.symbol, given.engine)
                cells = (f"{figures[step][0]:.2f} | {listed(figures[step][1])}" for step in STEPS)
                print(f"| {place} | {' | '.join(cells)} |", flush=True)
            options = {**server.storage_options, "fs.s3a.endpoint": proxy.endpoint}
            register_policy("s3a://lakes/lake", StorePolicy(options))
            first, *others = (Snapshot.open(lake) for lake, _ in places.values())
            for other in others:
                assert not compare_lakes(first, other, first.repositories).total, other.root


if __name__ == "__main__":
    main()
