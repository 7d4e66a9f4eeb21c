"""50 visitors read pages while refreshes publish: every page shows one run.

Each version of the sources writes its number into names and texts of several files, so that a page made of
two runs would show two numbers. The number of a run is read from the lake itself.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx

from codeanatomy.query.lake import Lake
from support.browser import running_explorer
from support.light_builds import clean_lake, refreshed

VISITORS = 50
VERSIONS = 12
PAGES = (
    "/r/app/s/app.core.work",
    "/r/app/s/app.core.Base",
    "/r/app/f/app/core.py",
    "/r/app/f/app/users.py",
    "/api/suggest?q=mark_",
    "/r/app/picture/calls?symbol=app.core.work",
)
RUN = re.compile(r'data-run="([^"]+)"|"run":"([^"]+)"')
NUMBER = re.compile(r"mark_(\d+)")


def write_version(source: Path, number: int) -> None:
    (source / "app").mkdir(parents=True, exist_ok=True)
    (source / "app" / "__init__.py").write_text("")
    (source / "app" / "core.py").write_text(
        f'class Base:\n    """Text mark_{number}."""\n\n\n'
        f'def work(mark_{number}):\n    """Text mark_{number}."""\n    return mark_{number}\n'
    )
    (source / "app" / "users.py").write_text(
        f"from app.core import Base, work\n\n\nclass mark_{number}(Base):\n    pass\n\n\n"
        f"def user_mark_{number}():\n    return work({number})\n"
    )


def test_pages_show_one_run_while_refreshes_publish(tmp_path: Path) -> None:
    source, lake = tmp_path / "source", tmp_path / "lake"
    write_version(source, 0)
    clean_lake(lake, {"app": source})
    expected = {Lake.open(lake).snapshot.run_id: "0"}
    seen: Counter[tuple[str, str, str]] = Counter()
    problems: list[str] = []
    stop = threading.Event()

    def visit(server: str, start: int) -> None:
        with httpx.Client(base_url=server, timeout=60) as client:
            at = start
            while not stop.is_set():
                address = PAGES[at % len(PAGES)]
                at += 1
                answer = client.get(address)
                if answer.status_code != 200:
                    problems.append(f"{address}: {answer.status_code} {answer.text[:300]}")
                    continue
                runs = {run for pair in RUN.findall(answer.text) for run in pair if run}
                numbers = set(NUMBER.findall(answer.text))
                if len(runs) != 1 or len(numbers) != 1:
                    problems.append(f"{address}: runs {runs}, versions {numbers}")
                    continue
                seen[address, runs.pop(), numbers.pop()] += 1

    with running_explorer(lake) as server, ThreadPoolExecutor(VISITORS) as pool:
        visitors = [pool.submit(visit, server, start) for start in range(VISITORS)]
        try:
            for number in range(1, VERSIONS):
                write_version(source, number)
                assert refreshed(lake, {"app": source}).status == "succeeded"
                expected[Lake.open(lake).snapshot.run_id] = str(number)
        finally:
            stop.set()
        for visitor in visitors:
            visitor.result()
    assert problems == []
    assert {(run, number) for _, run, number in seen} <= set(expected.items())
    assert len({run for _, run, _ in seen}) > VERSIONS // 2
    assert {address for address, _, _ in seen} == set(PAGES)
