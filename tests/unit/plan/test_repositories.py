"""Names of repositories, and the commit a work tree is at."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.plan.build_request import ScipChoice, scip_choice
from codeanatomy.plan.repositories import Repository, parse_repositories
from codeanatomy.sources.git import checked_out_commit
from codeanatomy.sources.listing import Listing


def test_names_come_from_the_path_or_the_user(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    assert parse_repositories([str(tmp_path / "demo")]) == [Repository("demo", tmp_path / "demo")]
    assert parse_repositories([str(tmp_path / "demo")], "other") == [Repository("other", tmp_path / "demo")]
    assert parse_repositories([f"org/demo@1={tmp_path}"]) == [Repository("org/demo@1", tmp_path)]
    assert [
        each.repo_id for each in parse_repositories(["a-1.0-py3-none-any.whl", "b-2.tar.gz", "c.zip"])
    ] == [
        "a-1.0-py3-none-any",
        "b-2",
        "c",
    ]


def test_the_current_folder_has_the_name_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert parse_repositories(["."])[0].repo_id == "here"


def test_a_folder_may_have_an_equals_sign_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b").mkdir()
    with pytest.raises(UsageError, match="does not give a name"):
        parse_repositories(["a=b"])
    assert parse_repositories(["x=a=b"]) == [Repository("x", Path("a=b"))]


def test_a_file_names_sources_relative_to_itself(tmp_path: Path) -> None:
    listed = tmp_path / "repos.txt"
    listed.write_text("# ours\n\none=a/b\n  two=c  \n")
    assert parse_repositories([], None, listed) == [
        Repository("one", tmp_path / "a/b"),
        Repository("two", tmp_path / "c"),
    ]
    with pytest.raises(UsageError, match="cannot read"):
        parse_repositories([], None, tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("sources", "repo_id", "said"),
    [
        ([], None, "nothing to build"),
        # Not the current folder.
        ([""], None, "a source is empty"),
        (["a", " "], None, "a source is empty"),
        (["a", "b"], "x", "names one repository"),
        (["x=a", "x=b"], None, "several sources are named x"),
        (["a"], "no spaces", "cannot be the name"),
        (["a"], "a/../b", "cannot be the name"),
        (["/"], None, "does not give a name"),
    ],
)
def test_what_makes_no_sense_is_refused(sources: list[str], repo_id: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_repositories(sources, repo_id)


def git_commit(folder: Path) -> str | None:
    return checked_out_commit(Listing(str(folder), "folder", ()))


def test_the_commit_is_what_git_says(tmp_path: Path) -> None:
    assert git_commit(tmp_path) is None

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "--quiet")
    assert git_commit(tmp_path) is None
    git("commit", "--quiet", "--allow-empty", "--message", "one")
    (tmp_path / "below").mkdir()
    assert git_commit(tmp_path / "below") == git("rev-parse", "HEAD")
    git("pack-refs", "--all")
    assert git_commit(tmp_path) == git("rev-parse", "HEAD")
    git("checkout", "--quiet", "--detach")
    assert git_commit(tmp_path) == git("rev-parse", "HEAD")


def test_a_hostile_head_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "secret").write_text("a" * 40)
    for head in ("ref: ../secret", "ref: /etc/passwd", "ref: refs/heads/a\0b", "not a commit", ""):
        (tmp_path / ".git" / "HEAD").write_text(head)
        assert git_commit(tmp_path) is None
    (tmp_path / ".git" / "HEAD").unlink()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert git_commit(tmp_path) is None


def test_a_second_work_tree_is_not_at_the_commit_of_the_folder_above(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("a" * 40)
    below = tmp_path / "module"
    below.mkdir()
    assert git_commit(below) == "a" * 40
    (below / ".git").write_text("gitdir: elsewhere")
    assert git_commit(below) is None
    assert checked_out_commit(Listing(str(tmp_path / "a.zip"), "zip", ())) is None


def test_scip_indexes_belong_to_repositories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.scip").touch()
    one, two = Repository("one", Path("1")), Repository("two", Path("2"))
    assert scip_choice((), [one]) == ScipChoice()
    assert scip_choice(("auto",), [one]) == ScipChoice(auto=True)
    assert scip_choice(("a.scip",), [one]) == ScipChoice(given={"one": Path("a.scip")})
    assert scip_choice(("two=a.scip", "auto"), [one, two]) == ScipChoice(
        auto=True, given={"two": Path("a.scip")}
    )
    with pytest.raises(UsageError, match="does not name its repository"):
        scip_choice(("a.scip",), [one, two])
    with pytest.raises(UnknownName, match="'three'"):
        scip_choice(("three=a.scip",), [one, two])
    with pytest.raises(UsageError, match="no SCIP index at b"):
        scip_choice(("b.scip",), [one])
