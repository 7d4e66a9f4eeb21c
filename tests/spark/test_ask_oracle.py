"""Answers on a lake that Spark built from a large package."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oracles.answer_comparison import Compared, disagreements
from oracles.ask_oracle import Sources
from support import corpus
from support.spark_builds import built


@pytest.mark.system
def test_answers_on_django_are_what_the_sources_say(spark: SparkSession, tmp_path: Path) -> None:
    folder = corpus.package("django")
    assert built(spark, tmp_path / "lake", {"django": folder}, until=None).status == "succeeded"
    compared = Compared(tmp_path / "lake", "django", Sources(folder))
    assert list(disagreements(compared, compared.drawn(300))) == []
