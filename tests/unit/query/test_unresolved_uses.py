"""Answers that may lack rows, because uses of the name could not be resolved, say that it is unknown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codeanatomy.query.answers import Answer
from codeanatomy.query.lake import Lake
from support.edits import write_tree
from support.light_builds import clean_lake

MAIL = """
class Mail:
    SUBJECT = ""
    def __init__(self): self.weight = 1
    def send(self): return 1
    def store(self): return Mail().send()
    def _drop(self): return 2

def post(mail, letters):
    weight = mail.weight + len(mail.SUBJECT)
    letters._drop()
    return mail.send()

class Box:
    def empty(self): ...
    def weigh(self): ...
"""
CHAIN = """
from mail import Mail

def one(): return Mail().store()
def two(): return one()
def three(): return two()
def test_two(): two()
def test_three(): three()
def test_far(): test_three()
"""
APP = """
from django.conf import settings
from django.shortcuts import weigh as other
import django.boxes

def tidy(): settings.BOX.empty()
def look(): return django.boxes.weigh(), other.weigh(), settings.weigh()
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    work = tmp_path_factory.mktemp("unresolved")
    write_tree(
        work / "source", {"mail.py": MAIL.encode(), "test_chain.py": CHAIN.encode(), "app.py": APP.encode()}
    )
    clean_lake(work / "lake", {"app": work / "source"})
    return Lake.open(str(work / "lake"))


VERBS: dict[str, Callable[[Lake, str], Answer]] = {
    "callers": lambda lake, name: lake.callers(name),
    "refs": lambda lake, name: lake.refs(name),
    "impact": lambda lake, name: lake.impact(name),
}


@pytest.mark.parametrize("verb", VERBS)
def test_unresolved_uses_of_the_name_make_an_answer_unknown(verb: str, lake: Lake) -> None:
    found = VERBS[verb](lake, "mail.Mail.send")
    assert found.unknown
    assert found.notes[-1] == (
        "unknown whether this is all: 1 use of .send, such as mail.py:12, could not be resolved"
    )
    known = VERBS[verb](lake, "mail.Mail.store")
    assert not known.unknown
    assert not any("unknown" in note for note in known.notes)


def test_unresolved_calls_inside_make_the_callees_unknown(lake: Lake) -> None:
    found = lake.callees("mail.post")
    assert found.unknown
    what = "2 calls, such as in mail.py:11, could not be resolved, or not to all targets"
    assert found.notes == (f"unknown whether this is all: {what}",)
    deep = lake.callees("mail.Mail.store")
    assert (deep.unknown, deep.notes) == (False, ())
    assert {row["symbol"] for row in deep} == {"mail.Mail", "mail.Mail.__init__", "mail.Mail.send"}


def test_unresolved_attributes_make_references_to_a_variable_of_a_class_unknown(lake: Lake) -> None:
    for name in ("SUBJECT", "weight"):
        found = lake.refs(f"mail.Mail.{name}")
        assert found.unknown
        assert found.notes[-1] == (
            f"unknown whether this is all: 1 use of .{name}, such as mail.py:10, could not be resolved"
        )
    assert not lake.refs("mail.post.weight").unknown


def test_what_an_object_from_outside_holds_may_be_ours(lake: Lake) -> None:
    """But not what a module or an imported object has itself."""
    found = lake.callers("mail.Box.empty")
    assert found.unknown
    assert "1 use of .empty, such as app.py:6, could not be resolved" in found.notes[-1]
    assert not lake.callers("mail.Box.weigh").unknown


def test_a_path_that_is_not_known_is_unknown(lake: Lake) -> None:
    assert lake.path("mail.post", "mail.Mail.store").unknown
    assert not lake.path("mail.Mail.store", "mail.post").unknown


def test_what_is_unused_is_unknown_where_a_use_of_its_name_is_not_resolved(lake: Lake) -> None:
    assert lake.unused().unknown
    assert not lake.unused(kind="class").unknown


def test_impact_counts_what_is_beyond_its_depth_and_names_the_nearest_tests(lake: Lake) -> None:
    found = lake.impact("mail.Mail.store", depth=3)
    assert found.notes == (
        "tests that reach it: 1, the nearest: test_chain.test_two (depth 3)",
        "beyond depth 3: 2 more definitions, tests among them: 2; use --depth 5 to list them",
    )
    assert [row["depth"] for row in found] == sorted(row["depth"] for row in found)
    expected = (
        "tests that reach it: 3, the nearest: test_chain.test_two (depth 3), "
        "test_chain.test_three (depth 4), test_chain.test_far (depth 5)"
    )
    assert lake.impact("mail.Mail.store", depth=5).notes == (expected,)
