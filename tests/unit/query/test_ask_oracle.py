"""Answers about real packages, held against a plain reading of their sources and the call graph command."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles.answer_comparison import Compared, disagreements
from oracles.ask_oracle import Sources
from support import corpus


@pytest.mark.system
def test_answers_on_flask_are_what_the_sources_say(ask_lake: Path) -> None:
    compared = Compared(ask_lake, "flask", Sources(corpus.package("flask")))
    symbols = compared.drawn(200)
    assert len({symbol.qualname for symbol in symbols}) == 200
    assert sum(sum(compared.sources.uses[symbol.qualname].values()) for symbol in symbols) > 500
    assert list(disagreements(compared, symbols, some=8)) == []
