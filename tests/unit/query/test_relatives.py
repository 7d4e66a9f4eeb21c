"""Members, bases, overrides and parameters, compared with the classes themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.lake import Lake
from codeanatomy.query.symbols import resolve
from codeanatomy.query.walks.relatives import relatives


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return Lake.open(ask_lake).reader


def symbols(reader: LightReader, name: str, group: str) -> list[str]:
    return [each.symbol for each in relatives(reader, resolve(reader, name)).get(group, [])]


def test_members_are_those_of_the_class(reader: LightReader) -> None:
    members = symbols(reader, "flask.app.Flask", "members")
    assert {"flask.app.Flask.make_response", "flask.app.Flask.default_config"} <= set(members)
    assert len(members) == len(set(members))
    # Its methods call super(), for which the compiler adds a variable.
    assert "flask.app.Flask.__class__" not in members
    lines = [each.line for each in relatives(reader, resolve(reader, "flask.app.Flask"))["members"]]
    assert lines == sorted(lines, key=lambda line: line or 0)


def test_members_of_modules_and_packages(reader: LightReader) -> None:
    module = symbols(reader, "flask.app", "members")
    assert {"flask.app.Flask", "flask.app._make_timedelta"} <= set(module)
    assert not any(name.endswith(".annotations") for name in module)
    assert "flask.json.provider" in symbols(reader, "flask.json", "members")


def test_bases_and_subclasses_are_inverse(reader: LightReader) -> None:
    assert symbols(reader, "flask.app.Flask", "bases") == ["flask.sansio.app.App"]
    assert "flask.app.Flask" in symbols(reader, "flask.sansio.app.App", "subclasses")


def test_overrides_are_inverse(reader: LightReader) -> None:
    name = "flask.json.provider.DefaultJSONProvider.dumps"
    (base,) = symbols(reader, name, "overrides")
    assert base == "flask.json.provider.JSONProvider.dumps"
    assert name in symbols(reader, base, "overridden by")


def test_parameters_are_in_their_order(reader: LightReader) -> None:
    names = [name.rpartition(".")[2] for name in symbols(reader, "flask.helpers.send_file", "parameters")]
    assert names[:3] == ["path_or_file", "mimetype", "as_attachment"]


def test_external_names_have_none(reader: LightReader) -> None:
    assert relatives(reader, resolve(reader, "builtins.len", "flask")) == {}
