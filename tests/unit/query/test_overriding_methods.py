"""What calls or names an overriding method is not listed with the overridden one, but noted."""

from __future__ import annotations

import pytest

from codeanatomy.query.lake import Lake
from support.edits import write_tree
from support.light_builds import clean_lake

KEYS = """
class Key:
    def __init__(self): self.bits = 0
    def sign(self): ...
    def name(self): ...

class Rsa(Key):
    def __init__(self): self.bits = 1
    def sign(self): return 1

class Short(Rsa):
    def sign(self): return 2

def one(): return Rsa().sign()
def two(): return Short().sign()
def three(): return Key().sign()
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    work = tmp_path_factory.mktemp("overriding")
    write_tree(work / "source", {"keys.py": KEYS.encode()})
    clean_lake(work / "lake", {"app": work / "source"})
    return Lake.open(str(work / "lake"))


def test_callers_of_overriding_methods_are_noted(lake: Lake) -> None:
    found = lake.callers("keys.Key.sign")
    assert [row["symbol"] for row in found] == ["keys.three"]
    assert found.notes == ("not listed: 2 callers of the 2 methods that override it, such as keys.Rsa.sign",)
    assert not found.unknown
    assert lake.callers("keys.Rsa.sign").notes == (
        "not listed: 1 caller of the method that overrides it, keys.Short.sign",
    )
    assert lake.callers("keys.Short.sign").notes == ()
    assert lake.callers("keys.Key.__init__").notes == ()


def test_references_to_overriding_methods_are_noted(lake: Lake) -> None:
    assert lake.refs("keys.Key.sign").notes == (
        "not listed: references to the 2 methods that override it, such as keys.Rsa.sign",
    )
    assert lake.refs("keys.Key.name").notes == ()
    assert lake.refs("keys.Key").notes == ()
