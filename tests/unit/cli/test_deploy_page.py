"""Every command in docs/deploy.md exists, with its options and settings."""

from __future__ import annotations

import re
import shlex
from importlib import import_module

import click
import pytest

from codeanatomy.cli.main import Commands, cli
from codeanatomy.config import load_settings
from codeanatomy.spark.jars import JARS
from codeanatomy.spark.settings import DELTA_CATALOG, DELTA_EXTENSION
from support.folders import ROOT

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
LINES = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
COMMANDS = [line for line in LINES if line.startswith("codeanatomy ")]
SUBMITTED = [line for line in LINES if "spark-submit " in line]
DELTA = {"spark.sql.extensions": DELTA_EXTENSION, "spark.sql.catalog.spark_catalog": DELTA_CATALOG}


def test_the_page_has_commands() -> None:
    assert {line.split("build")[0] for line in COMMANDS if " build " in line}
    for name in ("setup --with s3", "doctor --lake", "environment --output", "maintain"):
        assert any(name in line for line in COMMANDS), name


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_exists(line: str) -> None:
    with cli.make_context("codeanatomy", shlex.split(line)[1:]) as context:
        settings = load_settings(context.params["flags"], env={}, start=None)
        assert settings.sources.keys() >= {flag.partition("=")[0] for flag in context.params["flags"]}
        assert isinstance(cli, Commands)
        name, *arguments = [*context._protected_args, *context.args]
        command = cli.get_command(context, name)
        assert isinstance(command, click.Command)
        # Paths of the page need not exist.
        arguments = [each for each in arguments if each not in (".", "repositories.txt", "--repos-file")]
        command.make_context(name, arguments, parent=context, resilient_parsing=True)


def test_imports_of_the_page_exist() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    imports = [line for block in blocks for line in block.splitlines() if line.startswith("from ")]
    assert {"from codeanatomy import build", "from codeanatomy import Lake"} <= {*imports}
    for line in imports:
        _, module, _, name = line.split()
        assert hasattr(import_module(module), name), line


@pytest.mark.parametrize("line", SUBMITTED)
def test_a_job_of_the_page_has_the_settings_of_delta_and_a_script_that_exists(line: str) -> None:
    parts = shlex.split(line.partition("spark-submit ")[2])
    named = [parts[number + 1].partition("=") for number, part in enumerate(parts) if part == "--conf"]
    settings = {name: value for name, _, value in named}
    assert settings.items() >= DELTA.items()
    assert JARS[0].coordinate in parts
    scripts = [part for part in parts if part.endswith(".py")]
    assert scripts or "spark-internal" in parts
    assert all((ROOT / script).is_file() for script in scripts)


def test_the_page_has_a_job_and_a_server() -> None:
    assert len(SUBMITTED) == 2


def test_settings_of_the_page_exist() -> None:
    named = set(re.findall(r"`(runtime\.[a-z_.]+)", PAGE))
    known = {key for key, _, _ in load_settings(env={}, start=None).rows()}
    maps = ("runtime.spark", "runtime.storage_options", "runtime.delta", "runtime.log_store_options")
    assert [name for name in sorted(named) if name not in known and not name.startswith(maps)] == []
