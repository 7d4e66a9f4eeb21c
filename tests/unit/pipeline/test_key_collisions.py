"""Definitions that share a key: a build fails with both owners, and publishes nothing.

Hashes of 96 bits do not collide in a test, so `same_key` gives one definition the key of another. All that
computes keys runs in the process of the test.
"""

from __future__ import annotations

import doctest
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

import pytest

from codeanatomy import file_ids, node_ids
from codeanatomy.arrow import pack_rows
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import KeyCollision
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.node_ids import definition_key, key_of
from codeanatomy.pipeline import key_collisions
from codeanatomy.pipeline.key_collisions import (
    KEYED_KINDS,
    KeyOwner,
    owner_rows,
    refuse_equal,
    unpack_owners,
)
from support import light_builds
from support.light_builds import SameProcess, clean_lake, refreshed

Definition: TypeAlias = tuple[str, str, str]
SameKey: TypeAlias = Callable[[Definition, Definition], None]


@pytest.fixture
def same_key(monkeypatch: pytest.MonkeyPatch) -> SameKey:
    """Give a definition the key of another one."""
    keys: dict[Definition, str] = {}

    def key(repo_id: str, path: str, qualified: str = "") -> str:
        return keys.get((repo_id, path, qualified)) or definition_key(repo_id, path, qualified)

    def replace(one: Definition, other: Definition) -> None:
        keys[one] = definition_key(*other)

    for module in (node_ids, file_ids):
        monkeypatch.setattr(module, "definition_key", key)
    monkeypatch.setattr(light_builds, "KEPT", SameProcess())
    return replace


def write(folder: Path, files: Mapping[str, str | None]) -> Path:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            place.unlink()
        else:
            place.write_text(dedent(text))
    return folder


def published(lake: Path) -> list[str]:
    return [row.run_id for row in read_manifest(str(lake)) if row.status == "succeeded"]


ONE = """\
    class A:
        def f(self):
            return [x for x in self.y]

    def g(): ...
    h = lambda: 0
    """
# Definitions with the key of another one, of the same file and of another.
IN_A_FILE = {"A.f.<listcomp>#0": "g", "<lambda>#0": "A", "A.f": ""}
IN_TWO_FILES = {"A": "A.f.<listcomp>#0", "<lambda>#0": "g", "<genexpr>#0": "<lambda>#0"}


def test_definitions_of_a_file(tmp_path: Path, same_key: SameKey) -> None:
    for one, other in IN_A_FILE.items():
        same_key(("app", "a.py", one), ("app", "a.py", other))
    source = write(tmp_path / "app", {"a.py": ONE})
    with pytest.raises(KeyCollision) as raised:
        clean_lake(tmp_path / "lake", {"app": source})
    for one, other in IN_A_FILE.items():
        key = definition_key("app", "a.py", other)
        owners = ", ".join(f"{each or 'the module'} of a.py in app" for each in sorted((one, other)))
        assert f"key {key} is shared by {owners}" in raised.value.message
    assert published(tmp_path / "lake") == []
    assert "is shared by" in (read_manifest(str(tmp_path / "lake"))[-1].error or "")


def test_definitions_of_two_files(tmp_path: Path, same_key: SameKey) -> None:
    for one, other in IN_TWO_FILES.items():
        same_key(("app", "b.py", one), ("app", "a.py", other))
    other_text = "class A: ...\nk = lambda: 0\nc = (x for x in k)\n"
    source = write(tmp_path / "app", {"a.py": ONE, "b.py": other_text})
    with pytest.raises(KeyCollision) as raised:
        clean_lake(tmp_path / "lake", {"app": source})
    for one, other in IN_TWO_FILES.items():
        assert f"{other} of a.py in app, {one} of b.py in app" in raised.value.message
    assert published(tmp_path / "lake") == []


def test_two_repositories_of_a_run(tmp_path: Path, same_key: SameKey) -> None:
    same_key(("two", "b.py", "f"), ("one", "a.py", "A.f"))
    one = write(tmp_path / "one", {"a.py": ONE})
    two = write(tmp_path / "two", {"b.py": "def f(): ...\n"})
    with pytest.raises(KeyCollision, match=r"shared by A\.f of a\.py in one, f of b\.py in two"):
        clean_lake(tmp_path / "lake", {"one": one, "two": two})
    assert published(tmp_path / "lake") == []


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    one = write(folder / "one", {"a.py": ONE, "b.py": "x = 1\n"})
    two = write(folder / "two", {"c.py": "def f(): ...\n"})
    clean_lake(folder / "lake", {"one": one, "two": two})
    return folder


@pytest.fixture
def lake(base: Path, tmp_path: Path) -> Path:
    """A lake of two repositories, with the sources of one beside it."""
    for name in ("lake", "one"):
        shutil.copytree(base / name, tmp_path / name)
    return tmp_path / "lake"


def test_a_refresh_compares_new_definitions_with_the_lake(
    tmp_path: Path, lake: Path, same_key: SameKey
) -> None:
    before = published(lake)
    shown = {
        ("one", "a.py", "A.f.<listcomp>#0"): "a.A.f.<listcomp> of a.py in one",
        ("two", "c.py", "f"): "c.f of c.py in two",
        ("two", "c.py", ""): "c of c.py in two",
    }
    for number, stored in enumerate(shown):
        same_key(("one", "b.py", f"new_{number}"), stored)
    source = write(tmp_path / "one", {"b.py": "def new_0(): ...\ndef new_1(): ...\nclass new_2: ...\n"})
    with pytest.raises(KeyCollision) as raised:
        refreshed(lake, {"one": source})
    for number, stored in enumerate(shown.values()):
        assert f"new_{number} of b.py in one" in raised.value.message
        assert stored in raised.value.message
    assert published(lake) == before
    # Under another name it is built.
    write(source, {"b.py": "def newer(): ...\n"})
    assert refreshed(lake, {"one": source}).run_id not in before


def test_a_definition_that_is_gone_owns_no_key(tmp_path: Path, lake: Path, same_key: SameKey) -> None:
    same_key(("one", "b.py", "new"), ("one", "a.py", "g"))
    source = write(
        tmp_path / "one", {"a.py": ONE.replace("def g()", "def gone()"), "b.py": "def new(): ...\n"}
    )
    before = published(lake)
    refreshed(lake, {"one": source})
    assert len(published(lake)) == len(before) + 1


def test_files_with_one_id_are_not_read(tmp_path: Path, lake: Path, same_key: SameKey) -> None:
    for stored in (("one", "a.py", ""), ("two", "c.py", "")):
        same_key(("one", "d.py", ""), stored)
        source = write(tmp_path / "one", {"d.py": "y = 1\n"})
        repo_id, path, _ = stored
        with pytest.raises(KeyCollision, match=r"the module of d\.py in one") as raised:
            refreshed(lake, {"one": source})
        assert f"the module of {path} in {repo_id}" in raised.value.message
    same_key(("three", "x.py", ""), ("three", "y.py", ""))
    three = write(tmp_path / "three", {"x.py": "", "y.py": ""})
    with pytest.raises(KeyCollision, match=r"the module of x\.py in three, the module of y\.py in three"):
        clean_lake(tmp_path / "new", {"three": three})


def test_edits_without_new_definitions_look_nothing_up(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[set[str]] = []
    lookup = key_collisions._stored_owners
    monkeypatch.setattr(
        key_collisions,
        "_stored_owners",
        lambda run, keys, condition: wanted.append(set(keys)) or lookup(run, keys, condition),
    )
    source = write(tmp_path / "one", {"a.py": f"# moved\n\n{dedent(ONE)}"})
    refreshed(lake, {"one": source})
    assert wanted == [set()]
    write(source, {"b.py": "def new(): ...\n"})
    refreshed(lake, {"one": source})
    assert wanted[1:] == [{definition_key("one", "b.py", "new")}]


def test_every_definition_has_a_node_with_its_key(tmp_path: Path) -> None:
    """Files without a symbol table, too: `return` outside of a function parses and does not compile."""
    texts = {"b.py": f"{dedent(ONE)}\nreturn [z for z in h]\n", "c.py": ONE, "e.py": "def broken(:\n"}
    source = write(tmp_path / "one", texts)
    clean_lake(tmp_path / "lake", {"one": source})
    nodes = light_table(str(tmp_path / "lake"), "cpg_nodes", ["node_kind", "node_id", "file_id"]).to_pylist()
    in_files = {key_of(row["node_id"]) for row in nodes if row["file_id"] is not None}
    keyed = {key_of(row["node_id"]) for row in nodes if row["node_kind"] in KEYED_KINDS}
    assert keyed == in_files
    for path, qualified in {"b.py": "<listcomp>#0", "c.py": "A.f.<listcomp>#0", "e.py": ""}.items():
        assert definition_key("one", path, qualified) in keyed


def test_packed_keys_are_those_that_were_packed() -> None:
    keys = {"": "k" * 16, "A.f": "l" * 16, "\ud800": "m" * 16}
    packed = pack_rows(owner_rows("r", [("a.py", keys), ("b.py", {}), ("c.py", {"g": "n" * 16})]))
    owners = list(unpack_owners(packed))
    assert [owner.key for owner in owners] == [*keys.values(), "n" * 16]
    assert [(owner.repo_id, owner.path) for owner in owners] == [("r", "a.py")] * 3 + [("r", "c.py")]
    assert list(unpack_owners(pack_rows(owner_rows("r", [("a.py", {})])))) == []
    assert list(unpack_owners(pack_rows(owner_rows("r", [])))) == []


def test_one_definition_may_be_listed_twice() -> None:
    owner = KeyOwner("k", "r", "a.py", "f")
    refuse_equal([owner, owner, KeyOwner("l", "r", "a.py", "g")])


def test_some_of_many_collisions_are_shown() -> None:
    owners = [KeyOwner(f"k{key}", "r", path, "") for key in range(5) for path in ("a.py", "b.py")]
    with pytest.raises(KeyCollision, match=r"key k0 .*key k1 .*key k2 .*; and 2 more\n"):
        refuse_equal(owners)


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(key_collisions).failed == 0
