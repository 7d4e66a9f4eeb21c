"""The jars are fetched, verified and kept. A folder served as an Ivy repository stands for the network."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from codeanatomy.errors import EnvironmentProblem
from codeanatomy.spark import jars as jars_module
from codeanatomy.spark.jars import (
    CONNECTOR_OF_SCHEME,
    CONNECTORS,
    JARS,
    Jar,
    cache_folder,
    connector_jars,
    ensure_jars,
    invalid_jars,
    require_connector,
    use_store,
)
from codeanatomy.spark.java import Java, find_java

SETTINGS = """<ivysettings>
  <settings defaultResolver="only"/>
  <resolvers><ibiblio name="only" m2compatible="true" root="{root}"/></resolvers>
</ivysettings>"""
POM = """<project><modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</project>"""


@pytest.fixture(scope="module")
def java() -> Java:
    return find_java()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ivy settings in force for the test; the repository is the folder `repository` beside them."""
    path = tmp_path / "settings.xml"
    path.write_text(SETTINGS.format(root=(tmp_path / "repository").as_uri() + "/"))
    monkeypatch.setenv("CODEANATOMY_IVY_SETTINGS", str(path))
    return path


@pytest.fixture
def published(tmp_path: Path, settings: Path) -> tuple[Jar, ...]:
    """Two small jars in the repository."""
    return tuple(publish(settings.parent, name, f"bytes of {name}".encode()) for name in ("one", "two"))


@pytest.fixture
def copied(tmp_path: Path, published: tuple[Jar, ...]) -> tuple[Path, ...]:
    """The two jars in the cache, copied by hand: fetching them starts a JVM."""
    folder = tmp_path / "jars"
    folder.mkdir()
    for jar in published:
        (folder / jar.name).write_bytes(f"bytes of {jar.artifact}".encode())
    return ensure_jars(tmp_path, Java(tmp_path / "no-java", 17, ""), published)


def publish(folder: Path, artifact: str, content: bytes) -> Jar:
    jar = Jar("org.example", artifact, "1.0", hashlib.sha256(content).hexdigest())
    home = folder / "repository" / "org" / "example" / artifact / "1.0"
    home.mkdir(parents=True)
    (home / jar.name).write_bytes(content)
    pom = POM.format(group=jar.group, artifact=artifact, version=jar.version)
    (home / f"{artifact}-1.0.pom").write_text(pom)
    return jar


@contextmanager
def silent_server() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_fetched_once_then_reused_without_java(
    tmp_path: Path, java: Java, published: tuple[Jar, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ensure_jars(tmp_path, java, published)
    assert [path.read_bytes() for path in paths] == [b"bytes of one", b"bytes of two"]
    assert sorted(entry.name for entry in (tmp_path / "jars").iterdir()) == [
        ".lock",
        "one-1.0.jar",
        "two-1.0.jar",
        "verified.json",
    ]
    monkeypatch.setattr(jars_module, "_hash", None)
    no_java = Java(tmp_path / "no-java", 17, "")
    assert ensure_jars(tmp_path, no_java, published) == paths


def test_a_damaged_jar_is_noticed_and_fetched_again(
    tmp_path: Path, java: Java, published: tuple[Jar, ...], copied: tuple[Path, ...]
) -> None:
    first = copied[0]
    for damage in (b"", b"bytes of onE", b"bytes of one and more"):
        first.write_bytes(damage)
        os.utime(first, ns=(1, 1))
        assert invalid_jars(first.parent, published) == published[:1]
    ensure_jars(tmp_path, java, published)
    assert first.read_bytes() == b"bytes of one"
    assert invalid_jars(first.parent, published) == ()


def test_jars_copied_by_hand_are_taken(tmp_path: Path, copied: tuple[Path, ...]) -> None:
    assert copied == (tmp_path / "jars" / "one-1.0.jar", tmp_path / "jars" / "two-1.0.jar")


@pytest.mark.usefixtures("copied")
def test_a_changed_pin_refuses_the_old_jar(tmp_path: Path, java: Java) -> None:
    repinned = Jar("org.example", "one", "1.0", "0" * 64)
    with pytest.raises(EnvironmentProblem, match="instead of 0000"):
        ensure_jars(tmp_path, java, (repinned,))


def test_a_wrong_hash_is_refused_and_nothing_is_kept(
    tmp_path: Path, java: Java, published: tuple[Jar, ...]
) -> None:
    wrong = Jar("org.example", "one", "1.0", "f" * 64)
    with pytest.raises(EnvironmentProblem) as problem:
        ensure_jars(tmp_path, java, (wrong,))
    assert "org.example:one:1.0 has SHA-256" in problem.value.message
    assert "copy the correct one-1.0.jar" in problem.value.hint
    assert [entry.name for entry in (tmp_path / "jars").iterdir()] == [".lock"]


def test_an_unreachable_repository_is_one_clear_message(tmp_path: Path, java: Java, settings: Path) -> None:
    settings.write_text(SETTINGS.format(root="http://127.0.0.1:9/"))
    with pytest.raises(EnvironmentProblem) as problem:
        ensure_jars(tmp_path, java)
    first = JARS[0]
    assert problem.value.message == (
        f"{first.group}:{first.artifact}:{first.version} could not be fetched (Connection refused)"
    )
    for step in ("proxy", "CODEANATOMY_IVY_SETTINGS", f"copy {first.name} into {tmp_path / 'jars'}"):
        assert step in problem.value.hint


@pytest.mark.system
def test_a_repository_that_never_answers_is_given_up(
    tmp_path: Path, java: Java, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars_module, "STALL_SECONDS", 2.0)
    with silent_server() as port:
        settings.write_text(SETTINGS.format(root=f"http://127.0.0.1:{port}/"))
        with pytest.raises(EnvironmentProblem, match="no answer within 2 s"):
            ensure_jars(tmp_path, java)


def test_missing_settings_are_one_clear_message(
    tmp_path: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEANATOMY_IVY_SETTINGS", str(tmp_path / "none.xml"))
    with pytest.raises(EnvironmentProblem, match=r"none\.xml"):
        ensure_jars(tmp_path, java)


def test_processes_at_once_fetch_once(tmp_path: Path, published: tuple[Jar, ...]) -> None:
    script = (
        "import sys, msgspec; from pathlib import Path\n"
        "from codeanatomy.spark import jars; from codeanatomy.spark.java import find_java\n"
        "real = jars._run_ivy\n"
        "jars._run_ivy = lambda *args: (print('fetched'), real(*args))[1]\n"
        "pins = msgspec.json.decode(sys.argv[2], type=tuple[jars.Jar, ...])\n"
        "jars.ensure_jars(Path(sys.argv[1]), find_java(), pins)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path), msgspec.json.encode(published).decode()]
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(subprocess.run, command, capture_output=True, text=True) for _ in range(4)]
    done = [run.result() for run in runs]
    assert [run.returncode for run in done] == [0] * 4, [run.stderr for run in done]
    assert "".join(run.stdout for run in done) == "fetched\n"
    assert invalid_jars(tmp_path / "jars", published) == ()


def test_what_a_killed_fetch_left_is_cleared(tmp_path: Path, java: Java, published: tuple[Jar, ...]) -> None:
    left = tmp_path / "jars" / ".fetch-killed"
    left.mkdir(parents=True)
    (left / "one-1.0.jar.part").write_bytes(b"byt")
    ensure_jars(tmp_path, java, published)
    assert not left.exists()


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CODEANATOMY_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / "home" / ".cache" / "codeanatomy"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "codeanatomy"
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    assert (tmp_path / "own").is_dir()


def test_a_cache_that_cannot_be_made_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, java: Java
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentProblem, match="cannot be used") as problem:
        cache_folder()
    assert "CODEANATOMY_CACHE" in problem.value.hint
    with pytest.raises(EnvironmentProblem, match="cannot be used"):
        ensure_jars(tmp_path / "file" / "cache", java)


@pytest.mark.usefixtures("copied")
def test_sets_of_jars_are_verified_independently(
    tmp_path: Path, java: Java, published: tuple[Jar, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, two) = published
    (tmp_path / "jars" / "verified.json").unlink()
    ensure_jars(tmp_path, java, (one,))
    ensure_jars(tmp_path, java, (two,))
    # Neither hash is computed again.
    monkeypatch.setattr(jars_module, "_hash", None)
    assert len(ensure_jars(tmp_path, java, (one,)) + ensure_jars(tmp_path, java, (two,))) == 2


def test_a_connector_is_used_if_a_lake_needs_it_and_it_is_there(
    tmp_path: Path, published: tuple[Jar, ...], copied: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path))
    monkeypatch.setattr(jars_module, "CONNECTORS", {"s3": published})
    monkeypatch.setattr(jars_module, "_IN_USE", set())
    require_connector("/data/lake")
    kept = copied[1].rename(tmp_path / "kept")
    with pytest.raises(EnvironmentProblem) as problem:
        require_connector("s3a://bucket/lake")
    assert problem.value.hint == "codeanatomy setup --with s3"
    use_store("S3A://bucket/lake")
    assert connector_jars(tmp_path) == ()
    kept.rename(copied[1])
    assert connector_jars(tmp_path) == copied
    require_connector("s3a://bucket/lake")
    copied[0].write_bytes(b"damaged")
    assert connector_jars(tmp_path) == ()
    with pytest.raises(EnvironmentProblem, match="missing or damaged"):
        require_connector("s3a://bucket/lake")


def test_other_lakes_need_no_connector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars_module, "_IN_USE", set())
    for uri in ("/data/lake", "file:/data/lake", "hdfs://name/lake", "gs://bucket/lake"):
        use_store(uri)
        require_connector(uri)
    assert connector_jars(tmp_path) == ()


def test_connectors_are_pinned() -> None:
    assert set(CONNECTOR_OF_SCHEME.values()) == set(CONNECTORS)
    for jar in (jar for jars in CONNECTORS.values() for jar in jars):
        assert len(jar.sha256) == 64
    hadoop = next(iter((jars_module.pyspark_folder() / "jars").glob("hadoop-client-api-*.jar")))
    version = hadoop.stem.removeprefix("hadoop-client-api-")
    assert {jar.version for jar in CONNECTORS["s3"] if jar.group == "org.apache.hadoop"} == {version}
