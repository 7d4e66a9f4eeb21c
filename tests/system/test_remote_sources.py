"""Sources on a real S3 server: builds have the rows of local folders and archives with the same files."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow.fs
import pytest

from codeanatomy.config import CACHE_VARIABLE
from codeanatomy.delta.object_store import object_store
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.checks.compare import compare_lakes
from support.commands import run_process
from support.folders import CASES
from support.minio import REGION, Minio, option_flags, running_minio, upload

BUCKET = "s3a://sources"
# Files that are no sources, ignored, in folders of tools, or of another encoding.
MORE = {
    ".gitignore": b"/out/\n",
    ".git/info/exclude": b"*_private.py\n",
    "LICENSE": b"MIT\n",
    "data.json": b"{}",
    "depot/empty.py": b"",
    "depot/broken.py": b"def (:\n",
    "depot/latin.py": b"# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n",
    "depot/a%20b.py": b"A = 1\n",
    "depot/\xc3\xbcbung #1.py".encode("latin-1").decode("utf-8"): b"B = 1\n",
    "out/made.py": b"pass\n",
    "some_private.py": b"pass\n",
    "tool": b"#!/usr/bin/env python3\nprint('tool')\n",
    "venv/pyvenv.cfg": b"",
    "venv/lib/a.py": b"pass\n",
}


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    with running_minio(tmp_path_factory.mktemp("minio"), ("sources", "lakes")) as server:
        yield server


@pytest.fixture(autouse=True)
def opened(minio: Minio, monkeypatch: pytest.MonkeyPatch) -> None:
    minio.open_here(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A local folder with all kinds of files."""
    root = tmp_path / "depot"
    shutil.copytree(CASES / "ask" / "depot", root, ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in MORE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def upload_archive(folder: Path, archive: Path, uri: str) -> str:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, "depot-1.0")
    object_store(uri.rpartition("/")[0]).put(archive.name, archive)
    return uri


def raw_files(minio: Minio) -> pyarrow.fs.S3FileSystem:
    """A client that also writes names which ours refuses, and objects that are folders."""
    return pyarrow.fs.S3FileSystem(
        access_key=minio.access_key,
        secret_key=minio.secret_key,
        endpoint_override=minio.endpoint.removeprefix("http://"),
        scheme="http",
        region=REGION,
    )


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_process(*arguments, cwd=folder)


def built(folder: Path, lake: str, *sources: str, flags: tuple[str, ...] = (), engine: str = "local") -> str:
    done = run(folder, *flags, "build", *sources, "--lake", lake, "--engine", engine)
    assert done.returncode == 0, done.stderr
    return lake if "://" in lake else str(folder / lake)


def assert_same_rows(here: str, there: str) -> None:
    compared = compare_lakes(here, there)
    assert (compared.total, compared.differences) == (0, ())
    assert compared.rows["cpg_nodes"] > 100


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_folder_and_an_archive_have_the_rows_of_local_ones(
    minio: Minio, folder: Path, tmp_path: Path, engine: str
) -> None:
    # Copies of an earlier test would do, and nothing would be fetched.
    name = f"{engine}-{uuid4().hex}"
    below = f"{BUCKET}/{name}"
    stored = upload(folder, f"{below}/depot")
    archive = tmp_path / "depot-1.0.tar.gz"
    packed = upload_archive(folder, archive, f"{below}/{archive.name}")
    # As other programs do for folders.
    raw_files(minio).create_dir(f"sources/{name}/depot/folder/empty")
    # An executor elsewhere has another cache.
    cache = tmp_path / "executor"
    flags = (*minio.flags, "--set", f"runtime.spark.spark.executorEnv.{CACHE_VARIABLE}={cache}")
    there = built(tmp_path, "there", f"folder={stored}", f"archive={packed}", flags=flags, engine=engine)
    here = built(tmp_path, "here", f"folder={folder}", f"archive={archive}")
    assert_same_rows(there, here)
    roots = {name: row.repo_root for name, row in Snapshot.open(there).repositories.items()}
    assert roots == {"folder": stored, "archive": packed}
    copies = [path for path in cache.glob("sources/*/*") if path.name != ".lock"]
    assert len(copies) > 5 if engine == "spark" else not copies


def test_a_refresh_has_the_rows_of_a_clean_local_build(minio: Minio, folder: Path, tmp_path: Path) -> None:
    stored = upload(folder, f"{BUCKET}/refreshed")
    lake = built(tmp_path, "s3a://lakes/refreshed", f"depot={stored}", flags=minio.flags)
    unchanged = run(tmp_path, *minio.flags, "build", f"depot={stored}", "--lake", lake)
    assert "unchanged since run" in unchanged.stderr
    status = run(tmp_path, *minio.flags, "status", "--lake", lake)
    assert "unchanged" in status.stdout
    (folder / "depot" / "edited.py").write_text("def edited() -> int:\n    return 1\n")
    (folder / "tool").unlink()
    upload(folder, stored)
    object_store(stored).delete("tool")
    status = run(tmp_path, *minio.flags, "status", "--lake", lake)
    assert "changed" in status.stdout.replace("unchanged", "")
    built(tmp_path, lake, f"depot={stored}", flags=minio.flags)
    assert Snapshot.open(lake).repositories["depot"].mode == "incremental"
    assert_same_rows(lake, built(tmp_path, "clean", f"depot={folder}"))
    cleaned = run(tmp_path, *minio.flags, "verify", "--lake", lake)
    assert cleaned.returncode == 0, cleaned.stderr


def test_hostile_names_are_skipped_or_refused(minio: Minio, tmp_path: Path) -> None:
    uri, files = f"{BUCKET}/hostile", raw_files(minio)
    for name in ("good.py", "back\\slash.py", "C:drive.py"):
        with files.open_output_stream(f"sources/hostile/{name}") as stream:
            stream.write(b"A = 1\n")
    lake = built(tmp_path, "lake", f"hostile={uri}", flags=minio.flags)
    rows = Snapshot.open(lake).rows("repo_files_v1", ("path", "skipped_reason")).to_pylist()
    assert {row["path"]: row["skipped_reason"] for row in rows} == {
        "(unsafe)/C%3adrive.py": "unsafe_path",
        "(unsafe)/back/slash.py": "unsafe_path",
        "good.py": None,
    }
    with files.open_output_stream("sources/hostile/control\x01.py") as stream:
        stream.write(b"A = 1\n")
    done = run(tmp_path, *minio.flags, "build", f"hostile={uri}", "--lake", "lake")
    assert done.returncode == 2
    assert "has a name that no file can have" in done.stderr
    assert "\x01" not in done.stderr


@pytest.mark.parametrize(
    ("source", "changed", "message"),
    [
        ("s3a://missing/depot", {}, "there is no bucket missing"),
        (f"{BUCKET}/nothing", {}, f"there is no object at {BUCKET}/nothing, and none below it"),
        (f"{BUCKET}/text/notes.txt", {}, f"{BUCKET}/text/notes.txt is neither a folder nor an archive"),
        (f"{BUCKET}/text", {"fs.s3a.access.key": "unknown-user"}, "InvalidAccessKeyId"),
        (f"{BUCKET}/text", {"fs.s3a.secret.key": "wrong-secret"}, "SignatureDoesNotMatch"),
        (f"{BUCKET}/text", {"fs.s3a.endpoint": "http://127.0.0.1:9"}, "no server listens at 127.0.0.1:9"),
    ],
)
def test_sources_that_cannot_be_opened(
    minio: Minio, tmp_path: Path, source: str, changed: dict[str, str], message: str
) -> None:
    object_store(f"{BUCKET}/text").put("notes.txt", b"no archive")
    options = {**minio.storage_options, **changed}
    done = run(tmp_path, *option_flags(options), "build", f"depot={source}", "--lake", "lake")
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert options["fs.s3a.secret.key"] not in done.stdout + done.stderr
    assert not (tmp_path / "lake").exists()


def test_a_cluster_is_not_asked_to_read_files_of_the_driver(
    minio: Minio, folder: Path, tmp_path: Path
) -> None:
    arguments = ("build", str(folder), "--lake", "s3a://lakes/none", "--engine", "spark")
    done = run(tmp_path, *minio.flags, *arguments, "--master", "spark://127.0.0.1:9")
    assert done.returncode == 2
    assert f"the executors of spark://127.0.0.1:9 cannot read {folder}" in done.stderr
    assert "runtime.shared_sources=true" in done.stderr
