"""The command line: results on stdout, notes on stderr, documented exit codes, grouped help, and no import of
Spark where it is not needed."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
import pytest
from msgspec.structs import replace

from codeanatomy import __version__, catalog
from codeanatomy.catalog.describe import describe_table, nested_columns, size_text
from codeanatomy.catalog.spec import MB, DeltaFeatureGate, DeltaSchemaPolicy, Table, contract_json
from codeanatomy.cli import build as building
from codeanatomy.cli import doctor
from codeanatomy.cli import main as cli
from codeanatomy.cli import reference as catalogue
from codeanatomy.cli.doctor import Check, Status
from codeanatomy.errors import CatalogError, CommitConflict, EnvironmentProblem, GateError, UsageError

Run = Callable[..., subprocess.CompletedProcess[str]]

ESCAPE = "\x1b"
ENGINES = ("pyspark", "py4j", "delta", "pyarrow", "pandas", "numpy")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without settings, and none in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("CODEANATOMY_"):
            monkeypatch.delenv(name)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, as `main` does: with its exit code, stdout and stderr."""

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["codeanatomy", *args])
        capfd.readouterr()
        try:
            cli.run_command()
            code = 0
        except SystemExit as ending:
            code = int(ending.code or 0)
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(args, code, out, err)

    return call


def process(*args: str, module: str = "codeanatomy", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", module, *args],
        env=_env(env),
        capture_output=True,
        text=True,
        check=False,
    )


def _env(env: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env}


def refused(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one message of a command that failed."""
    assert done.returncode == code
    assert not done.stdout
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
    return done.stderr


# Tables


def test_tables_lists_every_table_once_in_order(run: Run) -> None:
    done = run("tables")
    header, *lines = done.stdout.splitlines()
    assert header.split() == [
        "table",
        "stage",
        "columns",
        "partition",
        "cluster",
        "file",
        "size",
        "one",
        "row",
    ]
    assert [line.split()[0] for line in lines] == list(catalog.names())
    assert all(line.endswith(table.doc) for line, table in zip(lines, catalog.TABLES, strict=True))
    assert (done.returncode, done.stderr) == (0, "")


def test_tables_as_json(run: Run) -> None:
    rows = msgspec.json.decode(run("tables", "--format", "json").stdout)
    assert [row["name"] for row in rows] == list(catalog.names())
    nodes = next(row for row in rows if row["name"] == "cpg_nodes")
    assert nodes["columns"] == list(catalog.table("cpg_nodes").column_names)
    assert nodes["ordering"] == list(catalog.table("cpg_nodes").ordering)


def test_one_table_shows_columns_keys_and_constraints(run: Run) -> None:
    table = catalog.table("repo_files_v1")
    lines = run("table", table.name).stdout.splitlines()
    assert lines[0] == f"{table.name}: {table.doc}"
    shown = [line.split()[0] for line in lines if line]
    assert all(column.name in shown for column, _ in nested_columns(table.columns))
    for fact in describe_table(table).values():
        assert any(line.endswith(fact) for line in lines)
    for rule in table.constraints:
        assert any(line.startswith(f"constraint {rule.name} ") and rule.expression in line for line in lines)


@pytest.mark.parametrize("name", catalog.names())
def test_a_table_as_json_is_its_contract(run: Run, name: str) -> None:
    shown = run("table", name, "--format", "json").stdout
    assert msgspec.json.decode(shown, type=Table) == catalog.table(name)
    assert msgspec.json.decode(shown) == msgspec.json.decode(contract_json(catalog.table(name)))


def test_a_table_shows_the_policy_in_force(run: Run) -> None:
    flag = "--set=tables.cpg_nodes.write.target_file_size=1000"
    assert "1000 B, zstd" in run(flag, "table", "cpg_nodes").stdout
    shown = msgspec.json.decode(run(flag, "table", "cpg_nodes", "--format=json").stdout, type=Table)
    assert shown.write.target_file_size == 1000


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 B"), (1536, "1536 B"), (512 * 1024, "512 KB"), (64 * MB, "64 MB"), (2048 * MB, "2 GB")],
)
def test_sizes_are_exact(size: int, text: str) -> None:
    assert size_text(size) == text


def test_gate_and_column_mapping_are_shown() -> None:
    plain = catalog.table("cpg_nodes")
    gate = DeltaFeatureGate(min_writer_version=7, required_writer_features=("rowTracking",))
    table = replace(plain, gate=gate, schema=DeltaSchemaPolicy(None, "id"))
    facts = describe_table(table)
    assert facts["gate"] == "writer >= 7, rowTracking"
    assert (facts["schema mode"], facts["column mapping"]) == ("refuse any change", "id")
    assert not {"gate", "column mapping"} & describe_table(plain).keys()


# Settings


def test_config_show_lists_where_values_come_from(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "codeanatomy.toml").write_text("[runtime]\ncores = 2\nlog_level = 'warn'\n")
    monkeypatch.setenv("CODEANATOMY_RUNTIME__LOG_LEVEL", "info")
    flag = "--set=tables.cpg_nodes.write.zorder_by=path"
    done = run(flag, "config", "show", "--with-sources")
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert rows["runtime.cores"] == ["2", "file"]
    assert rows["runtime.log_level"] == ["info", "environment"]
    assert rows["runtime.master"] == ["local[*]", "default"]
    assert rows["tables.cpg_nodes.write.zorder_by"] == ['["path"]', "flag"]
    assert [key for key in rows if key.startswith("tables.")] == ["tables.cpg_nodes.write.zorder_by"]
    assert re.fullmatch(r"runtime identity [0-9a-f]{32}\n", done.stderr)
    as_json = msgspec.json.decode(run(flag, "config", "show", "--with-sources", "--format=json").stdout)
    assert {row["key"]: row["source"] for row in as_json} == {
        key: cells[-1] for key, cells in rows.items() if key != "key"
    }


def test_config_show_without_sources_has_none(run: Run) -> None:
    assert run("config", "show").stdout.splitlines()[0].split() == ["key", "value"]
    assert all(row.keys() == {"key", "value"} for row in _settings(run))


def test_config_show_all_has_every_policy_of_every_table(run: Run) -> None:
    keys = {row["key"] for row in _settings(run, "--all")}
    for name in catalog.names():
        assert f"tables.{name}.write.writer.compression" in keys
        assert f"tables.{name}.gate.min_reader_version" in keys


def _settings(run: Run, *args: str) -> list[dict[str, object]]:
    shown: list[dict[str, object]] = msgspec.json.decode(run("config", "show", "--format=json", *args).stdout)
    return shown


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("args", [(), ("--with-sources",), ("--all",)])
def test_secrets_are_in_no_output(run: Run, tmp_path: Path, form: str, args: tuple[str, ...]) -> None:
    (tmp_path / "codeanatomy.toml").write_text('[runtime.storage_options]\n"fs.s3a.access.key" = "hush-1"\n')
    flag = "--set=runtime.spark.spark.hadoop.fs.s3a.secret.key=hush-2"
    done = run(flag, "config", "show", f"--format={form}", *args)
    assert done.returncode == 0
    assert "hush" not in done.stdout + done.stderr
    assert done.stdout.count("***") == 2
    # Not even when the settings are refused.
    broken = run(
        flag, "--set=runtime.storage_options.x.password=hush-3", "--set=runtime.cores=0", "config", "show"
    )
    assert "hush" not in refused(broken, 2)


def test_flags_of_a_build_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = building._settings(())
    assert (plain.observe.trace, plain.observe.log_level) == ("off", "off")
    assert (plain.runtime.engine, plain.delta.readers) == ("spark", None)
    settings = building._settings((), "spark", "local[2]", "modern", "console", "json")
    assert (settings.runtime.engine, settings.runtime.master) == ("spark", "local[2]")
    assert (settings.delta.readers, settings.observe.trace) == ("modern", "console")
    # --log-format turns the log on, unless another level was set.
    assert (settings.observe.log_format, settings.observe.log_level) == ("json", "info")
    monkeypatch.setenv("CODEANATOMY_OBSERVE__LOG_LEVEL", "error")
    assert building._settings((), log_format="json").observe.log_level == "error"


@pytest.mark.parametrize(
    "value", ["[bold]x[/bold]", "[/]", "[red]", "\u00e9\u6f22\U0001f40d", ":snake:", "[link=x]y"]
)
def test_no_value_is_read_as_markup(run: Run, value: str) -> None:
    flag = f"--set=runtime.spark.spark.app.name={value}"
    assert f"runtime.spark.spark.app.name  {value}" in run(flag, "config", "show").stdout
    assert {"key": "runtime.spark.spark.app.name", "value": value} in _settings_with(run, flag)


def _settings_with(run: Run, flag: str) -> list[dict[str, object]]:
    shown: list[dict[str, object]] = msgspec.json.decode(run(flag, "config", "show", "--format=json").stdout)
    return shown


@pytest.mark.parametrize("value", [f"{ESCAPE}[31mred", "two\nlines", "\r", "\x9b31m", "\u202ereversed"])
def test_no_value_commands_the_terminal(run: Run, value: str) -> None:
    done = run(f"--set=runtime.spark.spark.app.name={value}", "config", "show")
    line = next(line for line in done.stdout.split("\n") if "app.name" in line)
    assert line.split("  ")[-1] == value.encode("unicode_escape").decode()


# Errors


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("table", "cpg_node"), "did you mean cpg_nodes?"),
        (("table", "[red]"), "unknown table '[red]'"),
        (("table", f"{ESCAPE}[31m"), r"unknown table '\x1b[31m'"),
        (("--set=runtime.core=2", "tables"), "did you mean runtime.cores?"),
        (("--set=runtime.cores=0", "tables"), "runtime.cores: Expected `int` >= 1"),
        (("--set=nonsense", "tables"), "write --set KEY=VALUE"),
        (("--set=tables.cpg_nodes.write.zorder_by=nope", "config", "show"), "known: "),
        (("frob",), "No such command 'frob'"),
        (("caller", "x"), "No such command 'caller'. Did you mean callers or"),
        (("unusd",), "Did you mean unused"),
        (("tables", "--format", "xml"), "'xml' is not one of"),
        (("table",), "Missing argument 'NAME'"),
        ((), "Usage: codeanatomy"),
    ],
)
def test_wrong_usage_is_a_message_on_stderr(run: Run, args: tuple[str, ...], message: str) -> None:
    assert message in refused(run(*args), 2)


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (UsageError("a", "b"), 2),
        (EnvironmentProblem("a", "b"), 4),
        (PermissionError(13, "Permission denied", "/x"), 4),
        (CommitConflict("a", "b"), 5),
        (GateError("a", "b"), 6),
        (CatalogError("a", "b"), 70),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
    ],
)
def test_the_class_of_an_error_is_its_exit_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, problem: BaseException, code: int
) -> None:
    _fail_with(monkeypatch, problem)
    refused(run("tables"), code)


def test_a_bug_is_not_a_finding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, ZeroDivisionError("oops"))
    done = run("tables")
    assert (done.returncode, done.stdout) == (70, "")
    assert "ZeroDivisionError: oops" in done.stderr
    assert done.stderr.endswith("please report it with the lines above\n")


def _fail_with(monkeypatch: pytest.MonkeyPatch, problem: BaseException) -> None:
    def fail(flags: tuple[str, ...]) -> None:
        raise problem

    monkeypatch.setattr(catalogue, "load_settings", fail)


# Help, version, pages


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"codeanatomy, version {__version__}\n"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_the_commands_and_exit_codes(run: Run, flag: str) -> None:
    done = run(flag)
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    for part in ("0 done", "1 findings", "2 usage", "4 environment", "5 storage", "6 contract", "70 a bug"):
        assert part in text
    for name in cli.COMMANDS:
        assert len(re.findall(rf"^  {name} ", done.stdout, re.MULTILINE)) == 1
        assert run(name, flag).stdout.startswith(f"Usage: codeanatomy {name}")


def test_help_has_titled_groups(run: Run) -> None:
    lines = run("--help").stdout.splitlines()
    titles = [line.removesuffix(":") for line in lines if re.fullmatch(r"[A-Z]\w+:", line)]
    assert titles == ["Options", *cli.GROUPS]
    for title, group in cli.GROUPS.items():
        section = lines[lines.index(f"{title}:") + 1 :]
        section = section[: section.index("")] if "" in section else section
        assert [line.split()[0] for line in section if re.match(r"  \S", line)] == list(group)


def test_every_command_is_in_one_group() -> None:
    names = [name for group in cli.GROUPS.values() for name in group]
    assert len(names) == len(set(names)) == len(cli.COMMANDS)
    assert list(cli.GROUPS) == ["Build", "Ask", "Inspect", "Maintain", "Reference"]


def commands() -> dict[str, click.Command]:
    """All commands and subcommands, by their path."""
    context = click.Context(cli.cli, info_name="codeanatomy")
    known = {}
    for name in cli.COMMANDS:
        command = cli.cli.get_command(context, name)
        assert command is not None
        known[name] = command
        if isinstance(command, click.Group):
            known |= {f"{name} {below}": each for below, each in command.commands.items()}
    return known


def first_sentence(text: str) -> str:
    sentence = re.match(r".*?\.(?=\s|$)", " ".join(text.split()))
    assert sentence, text
    return sentence[0]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_commands_help(name: str) -> None:
    text = commands()[name].help or ""
    assert cli.COMMANDS[name].summary == first_sentence(text)
    # A sentence of its own: the paragraph below it may have more.
    assert text.split("\n\n")[0].startswith(cli.COMMANDS[name].summary.split(" ", maxsplit=1)[0])


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("path", ["", "config", "runs"])
def test_no_summary_is_cut(run: Run, monkeypatch: pytest.MonkeyPatch, path: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = run(*path.split(), "--help").stdout
    listed = text[text.index("\n\n", text.index("Options:")) :]
    assert "..." not in listed
    assert all(len(line) <= 80 for line in text.splitlines())
    below = [name for name in commands() if (" " in name) == bool(path) and name.startswith(path)]
    for name in below:
        assert first_sentence(commands()[name].help or "") in " ".join(listed.split())


@pytest.mark.parametrize("name", commands())
def test_every_option_has_a_help_text(name: str) -> None:
    options = [each for each in commands()[name].params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help] == []


def test_docs_are_written_once_and_checked(run: Run, tmp_path: Path) -> None:
    names = [
        "tables.md",
        "kinds.md",
        "views.md",
        "errors.md",
        "functions.md",
        "commands.md",
        "catalog.json",
        "schemas.json",
    ]
    stale = run("docs", "--check")
    assert (stale.returncode, stale.stdout.splitlines()) == (1, names)
    assert not (tmp_path / "docs").exists()
    assert run("docs").stdout.splitlines() == names
    fresh = run("docs", "--check")
    assert (fresh.returncode, fresh.stdout) == (0, "")
    assert run("docs").stdout == ""
    (tmp_path / "docs" / "errors.md").write_bytes(b"\xff")
    stale = run("docs", "--check")
    assert (stale.returncode, stale.stdout) == (1, "errors.md\n")


def test_docs_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in refused(run("docs", "--to", "file/below"), 4)


# Doctor


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("warn", 0), ("fail", 4)])
def test_the_doctor_fails_only_on_failures(
    run: Run, monkeypatch: pytest.MonkeyPatch, status: Status, code: int
) -> None:
    sizes: list[str] = []
    checks = (Check("java", "ok", "Java [17]"), Check("jars", status, "none", "codeanatomy setup"))
    monkeypatch.setattr(doctor, "examine", lambda memory: sizes.append(memory) or checks)
    done = run("--set=runtime.driver_memory=2g", "doctor")
    assert (done.returncode, sizes) == (code, ["2g"])
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["check", "status", "detail", "next"],
        ["java", "ok", "Java", "[17]"],
        ["jars", status, "none", "codeanatomy", "setup"],
    ]
    done = run("doctor", "--format=json")
    assert done.returncode == code
    assert msgspec.json.decode(done.stdout, type=tuple[Check, ...]) == checks


# As a process


def test_help_imports_no_command() -> None:
    script = (
        "import sys, codeanatomy.cli.main as c\n"
        "c.cli.main(['--help'], standalone_mode=False)\n"
        "known = {entry.module for entry in c.COMMANDS.values()}\n"
        "sys.exit(', '.join(name for name in known if f'codeanatomy.cli.{name}' in sys.modules) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=_env({}), capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""
    assert done.returncode == 0


def test_answers_without_spark_and_at_once() -> None:
    script = (
        "import sys, codeanatomy.cli.main as c\n"
        "for args in (['tables'], ['table', 'cpg_nodes'], ['config', 'show', '--all'], ['--help']):\n"
        "    c.cli.main(args, standalone_mode=False)\n"
        f"found = [name for name in {ENGINES} if name in sys.modules]\n"
        "sys.exit(f'imported: {found}' if found else 0)\n"
    )
    start = os.times()
    done = subprocess.run(
        [sys.executable, "-c", script], env=_env({}), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # A start with Spark in it takes several times as long; half a second is usual here.
    assert os.times().children_user - start.children_user < 5


@pytest.mark.parametrize("module", ["codeanatomy", "codeanatomy.cli.main"])
def test_a_process_has_the_same_answers(run: Run, module: str) -> None:
    for args in (("tables",), ("table", "cpg_nodes", "--format=json"), ("table", "cpg_node")):
        one, other = process(*args, module=module), run(*args)
        assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)


@pytest.mark.parametrize(
    "args",
    [("tables",), ("tables", "--format=json"), ("config", "show", "--all"), ("--help",), ("--version",)],
)
def test_a_closed_pipe_ends_a_command_silently(args: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "codeanatomy", *args],
            env=_env({}),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("env", "codes"),
    [
        ({"TERM": "xterm-256color"}, {"0", "1"}),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, {"0", "1"}),
        ({"TERM": "dumb"}, set()),
    ],
)
def test_a_terminal_gets_bold_headers_and_no_colour(env: dict[str, str], codes: set[str]) -> None:
    shown = _on_terminal(["-m", "codeanatomy", "config", "show"], env)
    assert "runtime.master" in shown
    assert set(re.findall(r"\x1b\[([0-9;]*)m", shown)) == codes


def test_a_terminal_gets_modest_colours_and_numbers_at_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "from codeanatomy.cli.printing import print_table\n"
        "print_table(('symbol', 'kind', 'confidence', 'status', 'rows'),\n"
        "    [('a', 'function', '1.0', 'succeeded', '1,204'), ('b', 'class', '0.4', 'failed', '7')])\n"
    )
    env = {"TERM": "xterm-256color"}
    shown = _on_terminal(["-c", script], env)
    header, first, second = shown.splitlines()
    colours = {"cyan": "36", "green": "32", "red": "31"}
    assert f"\x1b[{colours['cyan']}mfunction" in first
    assert f"\x1b[{colours['green']}m" in first
    assert f"\x1b[{colours['red']}mfailed" in second
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in (header, first, second)]
    assert plain == [
        "symbol  kind      confidence  status      rows",
        "a       function         1.0  succeeded  1,204",
        "b       class            0.4  failed         7",
    ]
    without = _on_terminal(["-c", script], {**env, "NO_COLOR": "1"})
    assert set(re.findall(r"\x1b\[([0-9;]*)m", without)) == {"0", "1"}
    piped = subprocess.run(
        [sys.executable, "-c", script], env=_env(env), capture_output=True, text=True, check=True
    )
    assert piped.stdout.splitlines() == [
        "symbol  kind      confidence  status     rows",
        "a       function  1.0         succeeded  1,204",
        "b       class     0.4         failed     7",
    ]


def test_a_pipe_gets_no_styles_even_with_a_terminal_type() -> None:
    assert ESCAPE not in process("tables", TERM="xterm-256color", COLORTERM="truecolor").stdout


def _on_terminal(args: list[str], env: dict[str, str]) -> str:
    inside, outside = pty.openpty()
    clean = {name: value for name, value in _env({}).items() if name != "NO_COLOR"}
    child = subprocess.Popen(
        [sys.executable, *args],
        env={**clean, "COLUMNS": "120", **env},
        stdin=outside,
        stdout=outside,
        stderr=outside,
    )
    os.close(outside)
    shown = b""
    try:
        while part := os.read(inside, 65536):
            shown += part
    except OSError:
        pass  # Linux raises EIO where others return an empty string.
    os.close(inside)
    assert child.wait() == 0
    return shown.decode()


def test_a_folder_that_is_gone_is_no_traceback(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os; os.rmdir(os.getcwd()); from codeanatomy.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "tables"],
        cwd=gone,
        env=_env({}),
        capture_output=True,
        text=True,
        check=False,
    )
    refused(done, 4)
