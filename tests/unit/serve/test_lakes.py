"""Open snapshots: the newest run, older ones, and a run that is published meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.errors import UnknownName
from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.serve.explorer import lakes
from codeanatomy.serve.explorer.lakes import OpenLakes
from support.light_builds import clean_lake, refreshed


def test_a_new_run_is_opened_and_the_old_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lakes, "CHECK_SECONDS", 0.0)
    source = tmp_path / "app"
    source.mkdir()
    (source / "a.py").write_text("def first():\n    return 1\n")
    clean_lake(tmp_path / "lake", {"app": source})
    opened = OpenLakes(str(tmp_path / "lake"))
    old = opened.newest()
    assert opened.newest() is old
    assert opened.search_index(old).suggest("first")
    (source / "a.py").write_text("def second():\n    return 1\n")
    refreshed(tmp_path / "lake", {"app": source})
    new = opened.newest()
    assert new.snapshot.run_id != old.snapshot.run_id
    assert opened.at(old.snapshot.run_id) is old
    assert opened.at("latest") is opened.at(None) is new
    assert [each.name for each in opened.search_index(new).suggest("second")] == ["second"]
    assert opened.search_index(old).suggest("second") == []
    with pytest.raises(UnknownName):
        opened.at("nonsense")


def test_few_snapshots_stay_open(ask_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lakes, "KEPT", 1)
    opened = OpenLakes(str(ask_lake))
    newest = opened.newest()
    (first, _) = recorded_runs(str(ask_lake))
    older = opened.at(first.run_id)
    assert older.snapshot.run_id != newest.snapshot.run_id
    assert opened.at(first.run_id) is older
    assert opened.at(newest.snapshot.run_id) is not newest
