"""Two hosts build into one lake on an S3 server at once: one publishes, the other waits or is refused.

RACE_ROUNDS=20 pytest -m system tests/system/test_races.py        # 200 without the variable
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest

from codeanatomy.delta import store_policy
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.spark.jars import cache_folder
from support import racer
from support.folders import TESTS, write_sources
from support.light_builds import clean_lake
from support.minio import Minio, running_minio
from support.published_rows import counted, current

pytestmark = pytest.mark.system

ROUNDS = int(os.environ.get("RACE_ROUNDS", "200"))
# Rounds on one lake: a test must end within 15 minutes, also on a busy machine.
LAKE_ROUNDS = 10
NAMES = ("left", "right")
USER = "from work import f\n\n\nclass Shop:\n    def sell(self):\n        return f(1)\n"


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    with running_minio(tmp_path_factory.mktemp("minio"), ("lakes",)) as server:
        yield server


class Racer:
    """A host: a process with its own cache and repository."""

    def __init__(self, name: str, lake: str, minio: Minio, folder: Path) -> None:
        self.name = name
        self.sources = write_sources(folder / name, {"shop.py": USER})
        # What the lake has of the repository.
        self.text = ""
        cache = folder / f"cache-{name}"
        cache.mkdir()
        (cache / "jars").symlink_to(cache_folder() / "jars")
        self._process = subprocess.Popen(
            [sys.executable, racer.__file__, name, lake, str(self.sources), *minio.flags[1::2]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CODEANATOMY_CACHE": str(cache), "PYTHONPATH": str(TESTS)},
        )

    def start(self, text: str, *, wait: bool) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"text": text, "wait": wait}) + "\n")
        self._process.stdin.flush()

    def result(self, text: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"{self.name} ended with code {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        if answer["run_id"]:
            self.text = text
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()


def text_of(name: str, number: int) -> str:
    return f"def f(x):\n    return g(x) + {number}\n\n\ndef g(y):\n    return {name!r}, y\n"


@pytest.mark.parametrize("lake_number", range(-(-ROUNDS // LAKE_ROUNDS)))
def test_of_two_hosts_one_publishes_at_a_time(
    minio: Minio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake_number: int
) -> None:
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "cache"))
    lake, chance = f"s3a://lakes/race-{lake_number}", random.Random(lake_number)
    register_policy(lake, StorePolicy(minio.storage_options))
    published: list[str] = []
    refusals = waits = 0
    with ExitStack() as stack:
        racers = [stack.enter_context(Racer(name, lake, minio, tmp_path)) for name in NAMES]
        for number in range(min(LAKE_ROUNDS, ROUNDS)):
            texts = {each.name: text_of(each.name, number) for each in racers}
            for each in racers:
                each.start(texts[each.name], wait=chance.random() < 0.5)
            answers = [each.result(texts[each.name]) for each in racers]
            new = [answer["run_id"] for answer in answers if answer["run_id"]]
            assert new
            published += new
            for answer, other in zip(answers, reversed(racers), strict=True):
                if answer["refused"]:
                    assert f"(host host-{other.name}, process " in answer["refused"]
                    assert f"building {other.name}" in answer["refused"]
            refusals += sum(answer["refused"] is not None for answer in answers)
            waits += sum(answer["waited"] for answer in answers)
            built = {each.name: each for each in racers if each.text}
            copies = {
                name: write_sources(
                    tmp_path / f"copy-{number}" / name, {"shop.py": USER, "work.py": each.text}
                )
                for name, each in built.items()
            }
            clean = tmp_path / f"clean-{number}"
            clean_lake(clean, copies)
            assert current(lake) == current(clean)
            assert counted(lake) == []
    assert sorted(published) == sorted(run.run_id for run in recorded_runs(lake))
    # They did race.
    assert refusals + waits >= LAKE_ROUNDS // 4 or ROUNDS < LAKE_ROUNDS
