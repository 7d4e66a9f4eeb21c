"""The engine of a build: from the settings alone, or from a caller's session; never with a credential."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from codeanatomy.config import RuntimeProfile
from codeanatomy.lake import engine_facts as module
from codeanatomy.lake.engine_facts import EngineFacts, engine_facts, engine_text

VERSIONS = (version("pyspark"), version("delta-spark"))


def test_the_session_that_a_build_starts() -> None:
    assert engine_facts(RuntimeProfile()) == EngineFacts("spark", "local[*]", "own", *VERSIONS)
    assert engine_facts(RuntimeProfile(cores=2)).master == "local[2]"
    assert engine_facts(RuntimeProfile(cores=2, master="spark://host:7077")).master == "spark://host:7077"
    named = RuntimeProfile(spark={"spark.master": "local[3]"})
    assert engine_facts(named).master == "local[3]"


def test_local_processes_have_no_session() -> None:
    facts = engine_facts(RuntimeProfile(engine="local", master="spark://host:7077"))
    assert facts == EngineFacts("local")
    assert engine_text(facts) == "local processes"


@pytest.mark.parametrize("master", ["sc://host:15002/;token=hush", "spark://me:hush@host:7077"])
def test_credentials_of_a_master_are_masked(master: str) -> None:
    given = EngineFacts("spark", master, "connect", "4.2.0", "4.4.0")
    for facts in (engine_facts(RuntimeProfile(), given), engine_facts(RuntimeProfile(master=master))):
        assert facts.master == "***"
        assert "hush" not in engine_text(facts)


def test_a_given_session_brings_its_own_facts() -> None:
    given = EngineFacts("spark", "yarn", "given", "4.2.0", None)
    assert engine_facts(RuntimeProfile(engine="local"), given) == given
    assert engine_text(given) == "spark on yarn (a given session), Spark 4.2.0"
    connect = EngineFacts("spark", None, "connect", "4.2.0", "4.4.0")
    assert engine_text(connect) == "spark on an unknown master (Spark Connect), Spark 4.2.0, Delta 4.4.0"


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_installed_version", lambda _: None)
    assert engine_text(engine_facts(RuntimeProfile())) == "spark on local[*]"
