"""How long pages of the explorer take on the lake of django: search, symbols, source; first paint; memory.

    PYTHONPATH=tests python bench/explorer.py --lake DIR          # a lake with django in it
    make bench-explorer                                           # builds it first

A server process is started on the lake; requests are sent one after another over one connection. Before the
measured ones each kind of page is opened a few times. Symbols and files are drawn by a seed, each is opened
once, so that no page is answered from a cache of itself. Searches are beginnings of names, three to eight
letters. First paint is what chromium measures in a new tab. Printed is Markdown for FIGURES.md; exit code 1
if a limit is missed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import httpx2 as httpx

from codeanatomy.query.engines.statements import Query, nodes
from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer.links import file_link, symbol_link
from support import corpus
from support.browser import open_tab, running_browser, running_explorer
from support.light_builds import clean_lake

SEED = 26
WARM = 5
REPOSITORY = "django"
# Milliseconds at the 95th percentile.
LIMITS = {"search": 100, "symbol": 300, "source": 300, "first paint": 1000}


def drawn(lake: Lake, count: int) -> dict[str, list[str]]:
    """Return the addresses that are opened, by kind of page."""
    choose = random.Random(SEED)
    symbols = Query(
        "SELECT n.qualname, n.name FROM n WHERE n.name NOT LIKE '<%'",
        {"n": nodes(("FUNCTION", "CLASS"), REPOSITORY)},
        order=("qualname",),
    )
    files = Query("SELECT f.path FROM f", {"f": nodes(("FILE",), REPOSITORY)}, order=("path",))
    names = choose.sample(lake.reader.rows(symbols), count * 2)
    paths = choose.sample([path for (path,) in lake.reader.rows(files)], count)
    searches = [name[: choose.randint(3, 8)] for _, name in names]
    pages = names[:count]
    return {
        "search": [f"/api/suggest?q={text}" for text in searches],
        "symbol": [symbol_link(REPOSITORY, symbol) for symbol, _ in pages],
        "source": [file_link(REPOSITORY, path) for path in paths],
        "calls picture": [f"/r/{REPOSITORY}/picture/calls?symbol={symbol}" for symbol, _ in pages],
    }


def milliseconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def opened(client: httpx.Client, address: str) -> None:
    """Open a page, and fail if it is not answered; an ambiguous name has a page, too."""
    answer = client.get(address)
    if answer.status_code not in (200, 300):
        raise SystemExit(f"{address}: {answer.status_code}")


def memory_mb(server: str) -> float:
    """Return the resident memory of the process that listens at an address."""
    port = int(server.rpartition(":")[2])
    table = Path("/proc/net/tcp").read_text().splitlines()[1:]
    inode = next(row.split()[9] for row in table if row.split()[1].endswith(f":{port:04X}"))
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if f"socket:[{inode}]" == str(link.readlink()):
                status = (link.parents[1] / "status").read_text()
                return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024
        except OSError:
            continue
    raise SystemExit("the server is gone")


def paints(server: str, addresses: Iterable[str]) -> list[float]:
    """Return chromium's first contentful paint of pages, each in a new tab."""
    entries = "performance.getEntriesByName('first-contentful-paint').map(each => each.startTime)"
    times = []
    with running_browser() as browser:
        for address in addresses:
            with open_tab(browser, server) as tab:
                tab.open(address)
                times += tab.page.evaluate(entries)
    return times


def measure(lake: Path, count: int) -> bool:
    """Print the table, and return whether all limits are kept."""
    addresses = drawn(Lake.open(lake), count)
    rows: dict[str, list[float]] = {}
    with running_explorer(lake) as server, httpx.Client(base_url=server, timeout=60) as client:
        first = milliseconds(lambda: opened(client, "/api/suggest?q=first"))
        for kind, pages in addresses.items():
            for address in pages[:WARM]:
                opened(client, address)
            rows[kind] = [milliseconds(partial(opened, client, address)) for address in pages[WARM:]]
        rows["first paint"] = paints(server, [*addresses["symbol"][:10], *addresses["source"][:10]])
        memory = memory_mb(server)
    print("| page | n | p50 ms | p95 ms | most | at most |\n|---|---|---|---|---|---|")
    kept = True
    for kind, times in rows.items():
        p95, limit = quantiles(times, n=20)[-1], LIMITS.get(kind)
        kept = kept and (limit is None or p95 <= limit)
        print(
            f"| {kind} | {len(times)} | {median(times):.0f} | {p95:.0f} | {max(times):.0f} | {limit or '-'} |"
        )
    print(f"\nFirst search, which builds its index: {first:.0f} ms. Memory of the server: {memory:.0f} MB.")
    return kept


def main() -> None:
    """Measure a lake, or build one first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lake", type=Path)
    parser.add_argument("--count", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lake = chosen.lake or Path(folder) / "lake"
        if chosen.lake is None:
            clean_lake(lake, {REPOSITORY: corpus.package(REPOSITORY)})
        sys.exit(0 if measure(lake, chosen.count) else 1)


if __name__ == "__main__":
    main()
