"""Generate definition keys of as many definitions as several thousand repositories have; count collisions.

    make bench-keys                    # 50 million keys
    make bench-keys COUNT=1000000

Names are made by counters, 50 definitions to a module, 200 modules to a repository. Processes write keys to
files by their first four bits; each of these 16 files is sorted by itself, so memory holds a sixteenth of the
keys. Pairs that agree in their first bits only are counted, too: a good hash has as many as chance predicts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import sha256
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from codeanatomy.ids import frame
from codeanatomy.node_ids import KEY_BYTES, definition_key

COUNT = 50_000_000
# Definitions that a process does at a time.
CHUNK = 500_000
BUCKETS = 16
CLASSES, METHODS = 6, 7
HANDLERS = [f"Handler{number}" for number in range(CLASSES)]
QUALIFIED = (
    "",
    "main",
    *HANDLERS,
    *(f"{name}.method_{number}" for name in HANDLERS for number in range(METHODS)),
)
PER_MODULE = len(QUALIFIED)
PER_REPOSITORY = 200
KEY = np.dtype([("first", ">u8"), ("rest", ">u4")])
# Bits whose chance agreement is counted, besides all 96.
PREFIX_BITS = (40, 48, 64)
BILLION = 10**9


def module_name(module: int) -> tuple[str, str]:
    """Return repository and path of a module."""
    repository, number = divmod(module, PER_REPOSITORY)
    return f"project-{repository:05}", f"src/package_{number // 20}/part_{number % 20}/module.py"


def framed_names(first: int, count: int) -> Iterator[bytes]:
    """Yield the bytes that are hashed, of definitions from number `first` on."""
    tails = [frame(name) for name in QUALIFIED]
    modules = range(first // PER_MODULE, (first + count) // PER_MODULE + 1)
    heads = (frame(*module_name(module)) for module in modules)
    start = first % PER_MODULE
    return islice((head + tail for head in heads for tail in tails), start, start + count)


def write_keys(folder: Path, first: int, count: int) -> None:
    """Append the keys of definitions from number `first` on to the files of their buckets."""
    # As `definition_key`, without base64.
    raw = b"".join([sha256(framed).digest()[:KEY_BYTES] for framed in framed_names(first, count)])
    keys = np.frombuffer(raw, KEY)
    buckets = keys["first"] >> np.uint64(60)
    for bucket in range(BUCKETS):
        # One write per file and chunk: appends of two processes do not mix.
        with (folder / str(bucket)).open("ab", buffering=0) as file:
            file.write(keys[buckets == bucket].tobytes())


def equal_pairs(path: Path) -> dict[int, int]:
    """Return how many pairs of keys in a file agree in all bits, and in their first ones."""
    keys = np.fromfile(path, KEY)
    first = keys["first"].astype(np.uint64)
    order = np.argsort(first)
    first, rest = first[order], keys["rest"].astype(np.uint64)[order]
    pairs = {bits: _pairs(first >> np.uint64(64 - bits)) for bits in PREFIX_BITS}
    is_same = first[1:] == first[:-1]
    near = np.zeros(len(first), bool)
    near[1:] |= is_same
    near[:-1] |= is_same
    whole = sorted(zip(first[near].tolist(), rest[near].tolist(), strict=True))
    runs = np.array([0, *(one != two for one, two in pairwise(whole))]).cumsum()
    return {**pairs, 8 * KEY_BYTES: _pairs(runs[: len(whole)])}


def _pairs(ordered: np.ndarray) -> int:
    """Return the number of equal pairs in sorted numbers."""
    ends = np.flatnonzero(np.concatenate([ordered[1:] != ordered[:-1], [True]])) if len(ordered) else ordered
    sizes = np.diff(np.concatenate([[-1], ends]))
    return int((sizes * (sizes - 1) // 2).sum())


def expected(count: int, bits: int) -> float:
    """Return the expected number of equal pairs, which for small numbers is the chance of any."""
    return count * (count - 1) / float(2 ** (bits + 1))


def check_names() -> None:
    """Raise AssertionError if the keys are not those of different definitions, as ids have them."""
    assert len({module_name(module) for module in range(2 * PER_REPOSITORY)}) == 2 * PER_REPOSITORY
    assert len(set(QUALIFIED)) == PER_MODULE
    for number, framed in enumerate(framed_names(7, 3 * PER_MODULE), start=7):
        module, own = divmod(number, PER_MODULE)
        key = urlsafe_b64encode(sha256(framed).digest()[:KEY_BYTES]).decode()
        assert key == definition_key(*module_name(module), QUALIFIED[own])


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    check_names()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="keys-") as folder, ProcessPoolExecutor(os.cpu_count()) as pool:
        starts = range(0, count, CHUNK)
        sizes = (min(CHUNK, count - start) for start in starts)
        list(pool.map(partial(write_keys, Path(folder)), starts, sizes))
        made = time.perf_counter()
        files = sorted(Path(folder).iterdir())
        assert sum(file.stat().st_size for file in files) == KEY_BYTES * count
        totals: dict[int, int] = dict.fromkeys((*PREFIX_BITS, 8 * KEY_BYTES), 0)
        for found in map(equal_pairs, files):
            totals = {bits: pairs + found[bits] for bits, pairs in totals.items()}
    print(f"{count:,} keys: {made - began:.1f} s to make, {time.perf_counter() - made:.1f} s to sort")
    print(f"{'bits':>6} {'equal pairs':>12} {'expected':>12} {'expected for a billion':>24}")
    for bits, pairs in totals.items():
        print(f"{bits:>6} {pairs:>12,} {expected(count, bits):>12.3g} {expected(BILLION, bits):>24.3g}")
    if totals[8 * KEY_BYTES]:
        raise SystemExit("keys collide")


if __name__ == "__main__":
    main()
