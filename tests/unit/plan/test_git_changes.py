"""Scans since a commit: which files are read, and that the lines are those of a full scan."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import UsageError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan.changes import FILES, GitBaseline
from codeanatomy.progress import Progress
from codeanatomy.run.build import prepare
from codeanatomy.sources import reading
from codeanatomy.sources.digest import FileStates, file_states
from codeanatomy.sources.listing import Entry, list_folder
from support.light_builds import clean_lake, order, refreshed

OPTIONS = ExtractOptions()
FIRST = "pkg/first.py"
SECOND = "pkg/second.py"
TOOL = "tool"
SOURCES = {
    FIRST: "A = 1\n",
    SECOND: "B = 2\n",
    "pkg/first.pyi": "A: int\n",
    "main.py": "from pkg.first import A\n",
    TOOL: "#!/usr/bin/env python3\n",
    "LICENSE": "Do as you like.\n",
    ".gitignore": "made.py\n",
}
# A file that git takes to be unchanged is older than its index.
LONG_AGO = 1_700_000_000_123_456_789


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work tree of one commit; no test changes it."""
    folder = tmp_path_factory.mktemp("committed") / "app"
    for path, text in SOURCES.items():
        write(folder, path, text, at=LONG_AGO)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def lake(committed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of all of it, and of a part; no test changes it."""
    folder = tmp_path_factory.mktemp("built") / "lake"
    clean_lake(folder, {"app": committed, "part": committed / "pkg"})
    return folder


@pytest.fixture
def tree(committed: Path, tmp_path: Path) -> Path:
    """A copy of the work tree with the times of its files, to be changed."""
    return shutil.copytree(committed, tmp_path / "work" / "app")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose bytes are read."""
    found: list[str] = []
    read = reading._read_file

    def noted(root: str, root_fd: int, limit: int, entry: Entry) -> tuple[bytes, int]:
        found.append(entry.path)
        return read(root, root_fd, limit, entry)

    monkeypatch.setattr(reading, "_read_file", noted)
    return found


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=check, capture_output=True, text=True)
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all", ".")
    git(folder, "commit", "--quiet", "--message", "More")


def write(folder: Path, path: str, text: str, at: int | None = None) -> None:
    """A file; its time is now, or at so many nanoseconds."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    if at is not None:
        os.utime(file, ns=(at, at))


def full(folder: Path) -> FileStates:
    return file_states(list_folder(folder, OPTIONS), OPTIONS)


def since(lake: Path, folder: Path, name: str = "main", repo_id: str = "app") -> FileStates:
    return GitBaseline(str(lake), name).file_states(repo_id, list_folder(folder, OPTIONS), OPTIONS)


def test_what_git_has_not_seen_change_is_not_opened(lake: Path, tree: Path, opened: list[str]) -> None:
    lines = since(lake, tree)
    assert opened == []
    assert lines == full(tree)
    assert sorted(opened) == ["main.py", FIRST, "pkg/first.pyi", SECOND, TOOL]


def edited(tree: Path) -> None:
    write(tree, FIRST, "A = 2\n")


def staged(tree: Path) -> None:
    write(tree, FIRST, "A = 2\n", at=LONG_AGO)
    git(tree, "add", FIRST)


def staged_and_taken_back(tree: Path) -> None:
    staged(tree)
    write(tree, FIRST, "A = 1\n", at=LONG_AGO)


def committed_since(tree: Path) -> None:
    write(tree, FIRST, "A = 2\n", at=LONG_AGO + 10**9)
    commit(tree)


def committed_thrice(tree: Path) -> None:
    committed_since(tree)
    write(tree, SECOND, "B = 3\n", at=LONG_AGO + 10**9)
    commit(tree)
    write(tree, FIRST, "A = 3\n", at=LONG_AGO + 2 * 10**9)
    commit(tree)


def committed_and_edited(tree: Path) -> None:
    committed_since(tree)
    write(tree, SECOND, "B = 3\n")


def untracked(tree: Path) -> None:
    write(tree, "pkg/new.py", "C = 3\n")


def ignored(tree: Path) -> None:
    write(tree, "pkg/made.py", "C = 3\n")


def no_longer_ignored(tree: Path) -> None:
    ignored(tree)
    (tree / ".gitignore").unlink()


def deleted(tree: Path) -> None:
    (tree / FIRST).unlink()


def deleted_for_git(tree: Path) -> None:
    git(tree, "rm", "--quiet", FIRST)
    git(tree, "commit", "--quiet", "--message", "Less")


def renamed(tree: Path) -> None:
    git(tree, "mv", FIRST, "pkg/other.py")


def renamed_and_committed(tree: Path) -> None:
    renamed(tree)
    commit(tree)


def touched(tree: Path) -> None:
    os.utime(tree / FIRST)


def assumed_unchanged(tree: Path) -> None:
    git(tree, "update-index", "--assume-unchanged", FIRST)
    edited(tree)


def out_of_the_work_tree(tree: Path) -> None:
    git(tree, "update-index", "--skip-worktree", FIRST)


def to_be_added(tree: Path) -> None:
    untracked(tree)
    git(tree, "add", "--intent-to-add", "pkg/new.py")


def in_conflict(tree: Path) -> None:
    git(tree, "checkout", "--quiet", "-b", "side")
    committed_since(tree)
    git(tree, "checkout", "--quiet", "main")
    write(tree, FIRST, "A = 3\n")
    commit(tree)
    git(tree, "merge", "--quiet", "side", check=False)
    assert "<<<" in (tree / FIRST).read_text(encoding="utf-8")


def linked(tree: Path) -> None:
    (tree / FIRST).unlink()
    (tree / FIRST).symlink_to("second.py")


def called_otherwise(tree: Path) -> None:
    write(tree, TOOL, "#!/bin/sh\n")


def copied(tree: Path) -> None:
    """A file with a new content and the very time and size of another."""
    shutil.copy2(tree / SECOND, tree / "pkg/copy.py")


def a_submodule(tree: Path) -> None:
    """A repository in a repository: its files are not in the index of ours."""
    write(tree, "pkg/inner/first.py", "A = 1\n")
    git(tree / "pkg/inner", "init", "--quiet")
    commit(tree / "pkg/inner")
    git(tree, "-c", "advice.addEmbeddedRepo=false", "add", "pkg/inner")


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (edited, {FIRST}),
        (staged, {FIRST}),
        (staged_and_taken_back, {FIRST}),
        (committed_since, {FIRST}),
        (committed_thrice, {FIRST, SECOND}),
        (committed_and_edited, {FIRST, SECOND}),
        (untracked, {"pkg/new.py"}),
        (ignored, set()),
        (no_longer_ignored, {"pkg/made.py"}),
        (deleted, set()),
        (deleted_for_git, set()),
        (renamed, {"pkg/other.py"}),
        (renamed_and_committed, {"pkg/other.py"}),
        (touched, {FIRST}),
        (assumed_unchanged, {FIRST}),
        (out_of_the_work_tree, {FIRST}),
        (to_be_added, {"pkg/new.py"}),
        (in_conflict, {FIRST}),
        (linked, set()),
        (called_otherwise, set()),
        (copied, {"pkg/copy.py"}),
        (a_submodule, {"pkg/inner/first.py"}),
    ],
)
def test_a_change_is_read_and_nothing_else(
    lake: Path, tree: Path, opened: list[str], change: Callable[[Path], None], read: set[str]
) -> None:
    first = git(tree, "rev-parse", "main").strip()
    change(tree)
    lines = since(lake, tree, first)
    assert set(opened) == read
    assert lines == full(tree)


def test_a_file_as_old_as_the_index_is_read(lake: Path, tree: Path, opened: list[str]) -> None:
    """An edit in the moment in which the index was written leaves size and time as they are."""
    write(tree, FIRST, "A = 2\n", at=LONG_AGO)
    index = tree / ".git/index"
    os.utime(index, ns=(LONG_AGO + 1, LONG_AGO + 1))
    assert since(lake, tree) != full(tree)
    opened.clear()
    os.utime(index, ns=(LONG_AGO, LONG_AGO))
    lines = since(lake, tree)
    assert FIRST in opened
    assert lines == full(tree)


def test_an_edit_that_leaves_size_and_time_is_missed(lake: Path, tree: Path, opened: list[str]) -> None:
    """As it says: by its size alone it would be found."""
    write(tree, FIRST, "A = 2\n", at=LONG_AGO)
    lines = since(lake, tree)
    assert opened == []
    assert {path for path, line in full(tree).items() if lines[path] != line} == {FIRST}
    opened.clear()
    write(tree, FIRST, "A = 22\n", at=LONG_AGO)
    assert since(lake, tree)[FIRST][1] == 7
    assert opened == [FIRST]


def test_a_nanosecond_is_another_time(lake: Path, tree: Path, opened: list[str]) -> None:
    write(tree, FIRST, "A = 2\n", at=LONG_AGO + 1)
    assert since(lake, tree) == full(tree)
    assert opened[0] == FIRST


def test_an_edit_that_the_lake_has_and_that_was_taken_back(tree: Path, tmp_path: Path) -> None:
    """The promise is broken: another size is noticed, the same is not."""
    write(tree, FIRST, "A = 11\n")
    write(tree, SECOND, "B = 3\n")
    clean_lake(tmp_path / "lake", {"app": tree})
    write(tree, FIRST, "A = 1\n", at=LONG_AGO)
    write(tree, SECOND, "B = 2\n", at=LONG_AGO)
    lines = since(tmp_path / "lake", tree)
    assert {path for path, line in full(tree).items() if lines[path] != line} == {SECOND}


def test_a_part_of_a_work_tree(lake: Path, tree: Path, opened: list[str]) -> None:
    part = tree / "pkg"
    assert since(lake, part, repo_id="part") == full(part)
    assert sorted(opened) == ["first.py", "first.pyi", "second.py"]
    opened.clear()
    edited(tree)
    write(tree, "main.py", "pass\n")
    lines = since(lake, part, repo_id="part")
    assert opened == ["first.py"]
    assert lines == full(part)


def test_a_part_that_the_commit_does_not_have(lake: Path, tree: Path, opened: list[str]) -> None:
    write(tree, "new/first.py", "A = 1\n")
    commit(tree)
    assert since(lake, tree / "new", "HEAD~1", "part") == full(tree / "new")
    assert opened == ["first.py"] * 2


def test_a_second_work_tree_has_an_index_of_its_own(lake: Path, tree: Path, opened: list[str]) -> None:
    second = tree.parent / "second"
    git(tree, "worktree", "add", "--quiet", str(second))
    for path in SOURCES:
        os.utime(second / path, ns=(LONG_AGO, LONG_AGO))
    git(second, "update-index", "--refresh")
    edited(second)
    lines = since(lake, second)
    assert opened == [FIRST]
    assert lines == full(second)


def test_a_name_that_is_no_text_is_read(tmp_path: Path, opened: list[str]) -> None:
    """When its namesake is gone, it has the path that was the namesake's."""
    tree = tmp_path / "app"
    tree.mkdir()
    raw = os.fsdecode(b"caf\xe9.py")
    write(tree, raw, "A = 1\n", at=LONG_AGO)
    write(tree, "caf\\xe9.py", "A = 2\n", at=LONG_AGO)
    git(tree, "init", "--quiet", "--initial-branch=main")
    commit(tree)
    clean_lake(tmp_path / "lake", {"app": tree})
    (tree / "caf\\xe9.py").unlink()
    opened.clear()
    lines = since(tmp_path / "lake", tree)
    assert opened == ["caf\\xe9.py"]
    assert lines == full(tree)


def test_a_name_that_reads_like_the_index_of_git(lake: Path, tree: Path, opened: list[str]) -> None:
    stamp = "  ctime: 1:1\n  mtime: 1:1\n  dev: 1\tino: 1\n  uid: 0\tgid: 0\n  size: 6\tflags: 0\n"
    name = f"{stamp}100644 00 0\tmain.py"
    write(tree, name, "A = 1\n", at=LONG_AGO)
    git(tree, "add", ".")
    lines = since(lake, tree)
    # All that come after it in the index are known.
    assert opened == [name]
    assert lines == full(tree)


def test_what_was_never_built_is_read(lake: Path, tree: Path, tmp_path: Path, opened: list[str]) -> None:
    lines = full(tree)
    all_files = list(opened)
    for where, repo_id in ((lake, "other"), (tmp_path / "no lake", "app")):
        opened.clear()
        assert since(where, tree, repo_id=repo_id) == lines
        assert opened == all_files
    assert not (tmp_path / "no lake").exists()


def test_what_a_damaged_lake_has_lost_is_read(
    lake: Path, tree: Path, tmp_path: Path, opened: list[str]
) -> None:
    damaged = shutil.copytree(lake, tmp_path / "lake")
    names = {Path(file.path).name for file in Snapshot.open(str(damaged)).files(FILES)}
    lost = [path for path in damaged.rglob("*.parquet") if path.name in names]
    assert lost
    for path in lost:
        path.unlink()
    assert since(damaged, tree) == full(tree)
    assert len(opened) == 10


def test_without_an_index_all_is_read(lake: Path, tree: Path, opened: list[str]) -> None:
    (tree / ".git/index").unlink()
    assert since(lake, tree) == full(tree)
    assert len(opened) == 10


@pytest.mark.parametrize("name", ["nowhere", "", "--all", "main:pkg", "x" * 2000])
def test_what_is_no_commit_is_refused(lake: Path, committed: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"is not a commit|has no commit"):
        since(lake, committed, name)


def test_a_folder_outside_of_git_is_refused(lake: Path, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    for folder in (tmp_path / "bare", tree / ".git"):
        with pytest.raises(UsageError, match="is not in a git work tree") as refused:
            since(lake, folder)
        assert refused.value.hint == "run without --since"


def test_one_source_without_commits_is_refused_for_all(lake: Path, tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / "other.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.py", "A = 1\n")
    asked = order(lake, {"app": tree, "other": archive}, since="main")
    with pytest.raises(UsageError, match="other is an archive, which has no git commits"):
        prepare(asked, Progress(io.StringIO()))


def test_nothing_that_a_repository_brings_along_is_run(lake: Path, tree: Path, opened: list[str]) -> None:
    trap = tree.parent / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{tree.parent}/sprung'\ncat\n", encoding="utf-8")
    trap.chmod(0o755)
    for setting in (
        "alias.ls-files",
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "diff.trap.command",
        "diff.trap.textconv",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "pager.ls-files",
        "pager.ls-tree",
    ):
        git(tree, "config", setting, str(trap))
    write(tree, ".gitattributes", "*.py diff=trap filter=trap\n")
    (tree / ".git/hooks").mkdir(exist_ok=True)
    shutil.copy(trap, tree / ".git/hooks/post-index-change")
    edited(tree)
    touched(tree)
    index = (tree / ".git/index").read_bytes()
    lines = since(lake, tree)
    assert opened == [FIRST]
    assert lines == full(tree)
    assert not (tree.parent / "sprung").exists()
    assert (tree / ".git/index").read_bytes() == index


def test_a_build_since_a_commit_is_a_build(lake: Path, tree: Path, tmp_path: Path, opened: list[str]) -> None:
    """The first finds nothing to do, the second what changed; neither opens anything else."""
    copy = shutil.copytree(lake, tmp_path / "lake")
    before = Snapshot.open(str(copy)).run_id
    refreshed(copy, {"app": tree, "part": tree / "pkg"}, since="main")
    assert opened == []
    committed_and_edited(tree)
    refreshed(copy, {"app": tree}, since="HEAD~1")
    assert set(opened) == {FIRST, SECOND}
    after = Snapshot.open(str(copy))
    listed = prepare(order(copy, {"app": tree}), Progress(io.StringIO())).listed
    assert after.run_id != before
    assert after.repositories["app"].source_digest == listed.digests["app"]
