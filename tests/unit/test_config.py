"""Settings: the layers and their order, what is refused and how, secrets, and the runtime identity."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from codeanatomy import catalog
from codeanatomy.catalog.entry_points import Rule
from codeanatomy.catalog.settings import ObserveOptions
from codeanatomy.catalog.spec import MB, BloomFilter, Table
from codeanatomy.config import (
    SIZE_UNITS,
    RuntimeProfile,
    Settings,
    check_master,
    load_settings,
    parse_size,
)
from codeanatomy.errors import CodeAnatomyError, ConfigError, UnknownName, UsageError

NODES = "tables.cpg_nodes.write"
HUSH = "hush-hush"


def from_file(folder: Path, text: str, *flags: str, **env: str) -> Settings:
    (folder / "codeanatomy.toml").write_text(text, encoding="utf-8")
    return load_settings(flags, env, folder)


def from_flags(*flags: str) -> Settings:
    return load_settings(flags, {}, None)


def from_env(**env: str) -> Settings:
    return load_settings((), env, None)


def policy_of(settings: Settings, name: str = "cpg_nodes") -> Table:
    return next(table for table in settings.tables if table.name == name)


# Layers


def test_nothing_set_is_the_catalogue_and_the_default_profile() -> None:
    settings = load_settings((), {}, None)
    assert settings.runtime == RuntimeProfile()
    assert settings.tables == catalog.TABLES
    assert {source for _, _, source in settings.rows()} == {"default"}


@pytest.mark.parametrize(
    ("layers", "cores", "source"),
    [
        ((), None, "default"),
        (("file",), 2, "file"),
        (("environment",), 3, "environment"),
        (("flag",), 4, "flag"),
        (("file", "environment"), 3, "environment"),
        (("file", "flag"), 4, "flag"),
        (("environment", "flag"), 4, "flag"),
        (("file", "environment", "flag"), 4, "flag"),
    ],
)
def test_the_later_layer_wins(
    tmp_path: Path, layers: tuple[str, ...], cores: int | None, source: str
) -> None:
    if "file" in layers:
        (tmp_path / "codeanatomy.toml").write_text("[runtime]\ncores = 2\nshuffle_partitions = 8\n")
    env = {"CODEANATOMY_RUNTIME__CORES": "3"} if "environment" in layers else {}
    flags = ("runtime.cores=4",) if "flag" in layers else ()
    settings = load_settings(flags, env, tmp_path)
    assert (settings.runtime.cores, settings.source("runtime.cores")) == (cores, source)
    # A layer replaces only what it names.
    assert settings.runtime.shuffle_partitions == (8 if "file" in layers else 16)


def test_the_last_of_two_flags_wins() -> None:
    assert from_flags("runtime.cores=4", "runtime.cores=5").runtime.cores == 5


def test_a_table_policy_has_one_name_in_every_layer(tmp_path: Path) -> None:
    key = f"{NODES}.target_file_size"
    file = from_file(tmp_path, f'[{NODES}]\ntarget_file_size = "64MB"\n')
    env = from_env(CODEANATOMY_TABLES__CPG_NODES__WRITE__TARGET_FILE_SIZE="64MB")
    flag = from_flags(f"{key}=64MB")
    assert [s.source(key) for s in (file, env, flag)] == ["file", "environment", "flag"]
    for settings in (file, env, flag):
        before, after = catalog.table("cpg_nodes"), policy_of(settings)
        assert after == replace(before, write=replace(before.write, target_file_size=64 * MB))
        untouched = [table for table in settings.tables if table.name != "cpg_nodes"]
        assert untouched == [table for table in catalog.TABLES if table.name != "cpg_nodes"]


def test_what_a_run_tells_has_one_name_in_every_layer(tmp_path: Path) -> None:
    assert load_settings((), {}, None).observe == ObserveOptions(trace="off", endpoint="", log_level="off")
    file = "[observe]\ntrace = 'console'\nendpoint = 'http://collector:4318'\nlog_level = 'info'\n"
    settings = from_file(
        tmp_path, file, "observe.log_level=debug", "observe.endpoint=", CODEANATOMY_OBSERVE__LOG_FORMAT="json"
    )
    assert settings.observe == ObserveOptions("console", "", "debug", "json")
    rows = {key: source for key, _, source in settings.rows() if key.startswith("observe.")}
    assert rows == {
        "observe.trace": "file",
        "observe.endpoint": "flag",
        "observe.log_level": "flag",
        "observe.log_format": "environment",
        "observe.record_queries": "default",
    }


def test_the_environment_is_the_process_own_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEANATOMY_RUNTIME__CORES", "7")
    assert load_settings(start=None).runtime.cores == 7


@pytest.mark.parametrize("name", ["CODEANATOMY_CACHE", "CODEANATOMY_IVY_SETTINGS", "PATH", "CODEANATOMYX"])
def test_variables_that_are_no_settings_are_ignored(name: str) -> None:
    assert from_env(**{name: "/somewhere"}) == load_settings((), {}, None)


# Files


def test_the_nearest_file_above_is_read_and_it_alone(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "codeanatomy.toml").write_text("[runtime]\ncores = 2\nlog_level = 'warn'\n")
    assert load_settings((), {}, below).runtime.cores == 2
    (tmp_path / "a" / "codeanatomy.toml").write_text("[runtime]\ncores = 3\n")
    assert load_settings((), {}, below).runtime == RuntimeProfile(cores=3)


def test_pyproject_counts_only_with_our_section(tmp_path: Path) -> None:
    below = tmp_path / "a"
    below.mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.codeanatomy.runtime]\ncores = 2\n")
    (below / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert load_settings((), {}, below).runtime.cores == 2
    (below / "pyproject.toml").write_text("[tool.codeanatomy]\n")
    assert load_settings((), {}, below).runtime.cores is None


def test_our_own_file_wins_over_pyproject_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.codeanatomy.runtime]\ncores = 2\n")
    assert from_file(tmp_path, "[runtime]\ncores = 3\n").runtime.cores == 3


@pytest.mark.parametrize("text", ["", "# nothing\n", "[runtime]\n", "[runtime.spark]\n", "[tables]\n"])
def test_empty_sections_set_nothing(tmp_path: Path, text: str) -> None:
    assert from_file(tmp_path, text) == load_settings((), {}, None)


@pytest.mark.parametrize("content", [b"[runtime\n", b"a = 1\na = 2\n", b"[runtime]\nmaster = '\xff'\n"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "codeanatomy.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot read") as problem:
        load_settings((), {}, tmp_path)
    assert str(path) in problem.value.message


@pytest.mark.parametrize("text", ["[tool]\ncodeanatomy = 3\n", "[[tool.codeanatomy]]\n"])
def test_a_section_that_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match="is not a table"):
        load_settings((), {}, tmp_path)


def test_a_foreign_pyproject_may_be_odd(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = 3\n")
    assert load_settings((), {}, tmp_path).runtime == RuntimeProfile()


# Values


@given(st.integers(1, 10**6), st.sampled_from(sorted(SIZE_UNITS)), st.sampled_from(["", " ", "  "]))
def test_a_size_means_number_times_unit(number: int, unit: str, gap: str) -> None:
    expected = number * SIZE_UNITS[unit]
    for text in (f"{number}{gap}{unit}", f" {number}{gap}{unit.lower()} ", str(expected)):
        assert parse_size(text) == expected


@given(st.text())
def test_no_text_breaks_the_size_parser(text: str) -> None:
    with suppress(ConfigError):
        assert parse_size(text) > 0


@pytest.mark.parametrize("text", ["", "0", "0MB", "-5", "1.5GB", "64 M", "MB", "64TB", "lots", "9" * 5000])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize("value", ["0", "-5", "true", "1.5", "[]", '"lots"'])
def test_a_size_in_a_file_is_held_to_the_same(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match="is not a size"):
        from_file(tmp_path, f"[{NODES}]\ntarget_file_size = {value}\n")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("file_id", ("file_id",)),
        ("file_id, node_id", ("file_id", "node_id")),
        (" file_id ,,node_id, ", ("file_id", "node_id")),
        ("", ()),
    ],
)
def test_lists_are_written_with_commas(text: str, columns: tuple[str, ...]) -> None:
    assert policy_of(from_flags(f"{NODES}.zorder_by={text}")).write.zorder_by == columns


def test_a_file_has_lists_and_nested_structs(tmp_path: Path) -> None:
    settings = from_file(
        tmp_path,
        f"""
        [{NODES}]
        zorder_by = ["path", "file_id"]
        [{NODES}.writer]
        compression = "snappy"
        [[{NODES}.writer.bloom_filters]]
        column = "path"
        ndv = 1000
        """,
    )
    write = policy_of(settings).write
    assert write.zorder_by == ("path", "file_id")
    assert write.writer.bloom_filters == (BloomFilter("path", ndv=1000),)
    assert write.writer.compression == "snappy"
    assert settings.source(f"{NODES}.writer.compression") == "file"
    assert settings.source(f"{NODES}.writer.dictionary") == "default"


@pytest.mark.parametrize("text", ["null", "NULL"])
def test_null_takes_a_value_away(text: str) -> None:
    settings = from_flags(
        "runtime.cores=2", f"runtime.cores={text}", "tables.cpg_nodes.schema.schema_mode=null"
    )
    assert settings.runtime.cores is None
    assert policy_of(settings).schema.schema_mode is None


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("1", True), ("0", False)])
def test_truth_values_as_text(text: str, value: bool) -> None:
    assert from_env(CODEANATOMY_RUNTIME__REQUIRE_LOCAL_PATHS=text).runtime.require_local_paths is value


def test_a_value_may_hold_an_equals_sign() -> None:
    option = "-Dx=y"
    runtime = from_flags(f"runtime.spark.spark.driver.extraJavaOptions={option}").runtime
    assert runtime.spark == {"spark.driver.extraJavaOptions": option}


# Maps


@pytest.mark.parametrize(
    "text",
    [
        '[runtime.storage_options]\n"fs.s3a.endpoint" = "x"\n',
        '[runtime]\nstorage_options = { "fs.s3a.endpoint" = "x" }\n',
        '[runtime]\nstorage_options."fs.s3a.endpoint" = "x"\n',
        '[runtime.storage_options.fs.s3a]\nendpoint = "x"\n',
        '[runtime.storage_options."fs.s3a"]\nendpoint = "x"\n',
    ],
)
def test_a_map_entry_is_the_same_quoted_or_nested(tmp_path: Path, text: str) -> None:
    settings = from_file(tmp_path, text)
    assert settings.runtime.storage_options == {"fs.s3a.endpoint": "x"}
    assert ("runtime.storage_options.fs.s3a.endpoint", "x", "file") in list(settings.rows())


@pytest.mark.parametrize("key", ['runtime.delta."a.b"', "runtime.delta.a.b", ' runtime.delta."a".b '])
def test_a_flag_may_quote_like_toml(key: str) -> None:
    assert from_flags(f"{key}=x").runtime.delta == {"a.b": "x"}


def test_each_entry_of_a_map_has_its_own_source(tmp_path: Path) -> None:
    text = '[runtime.spark]\n"spark.a" = "1"\n"spark.b" = "2"\n'
    settings = from_file(tmp_path, text, "runtime.spark.spark.b=3")
    rows = {key: (value, source) for key, value, source in settings.rows() if "spark.spark" in key}
    assert rows == {"runtime.spark.spark.a": ("1", "file"), "runtime.spark.spark.b": ("3", "flag")}


def test_map_values_become_the_texts_spark_expects(tmp_path: Path) -> None:
    text = "[runtime.spark]\n'spark.a' = true\n'spark.b' = 3\n'spark.c' = 1.5\n"
    spark = from_file(tmp_path, text).runtime.spark
    assert spark == {"spark.a": "true", "spark.b": "3", "spark.c": "1.5"}


@pytest.mark.parametrize("text", ["spark = 'x'", "spark = 3", "[runtime.spark]\n'spark.a' = ['x']"])
def test_a_map_is_set_by_entries_of_text(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"runtime\.spark"):
        from_file(tmp_path, f"[runtime]\n{text}\n")


def test_a_map_and_its_entry_do_not_collide(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"runtime\.spark is a map"):
        from_file(tmp_path, "[runtime]\nspark = 'x'\n", "runtime.spark.spark.a=1")


# Secrets


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("storage_options.fs.s3a.access.key", HUSH),
        ("storage_options.fs.s3a.secret.key", HUSH),
        ("storage_options.fs.s3a.session.token", HUSH),
        ("storage_options.fs.azure.account.key.x.dfs.core.windows.net", HUSH),
        ("storage_options.fs.azure.sas.box.x.blob.core.windows.net", HUSH),
        ("storage_options.fs.azure.account.oauth2.client.SECRET", HUSH),
        ("spark.spark.hadoop.fs.s3a.access.key", HUSH),
        ("spark.spark.ssl.keyStorePassword", HUSH),
        ("spark.spark.driver.extraJavaOptions", f"-Dhttps.proxyHost=x -Dhttps.proxyPassword={HUSH}"),
        ("storage_options.fs.s3a.proxy.uri", f"http://me:{HUSH}@proxy:3128"),
        ("log_store_options.x.credential", HUSH),
        ("delta.some.password", HUSH),
    ],
)
def test_secrets_are_used_but_never_shown(entry: str, value: str) -> None:
    settings = from_flags(f"runtime.{entry}={value}")
    name, _, key = entry.partition(".")
    assert getattr(settings.runtime, name) == {key: value}
    assert (f"runtime.{entry}", "***", "flag") in list(settings.rows())
    for shown in (repr(settings.runtime), repr(settings), str(list(settings.rows()))):
        assert HUSH not in shown


@pytest.mark.parametrize("url", [f"https://me:{HUSH}@collector:4318", f"https://collector/?api-key={HUSH}"])
def test_credentials_of_a_collector_are_used_but_never_shown(url: str) -> None:
    settings = from_flags(f"observe.endpoint={url}")
    assert settings.observe.endpoint == url
    assert ("observe.endpoint", "***", "flag") in list(settings.rows())
    for shown in (repr(settings.observe), repr(settings), str(list(settings.rows()))):
        assert HUSH not in shown


def test_what_is_no_secret_is_shown() -> None:
    settings = from_flags("runtime.storage_options.fs.s3a.endpoint=https://store:9000")
    assert ("runtime.storage_options.fs.s3a.endpoint", "https://store:9000", "flag") in list(settings.rows())
    assert "https://store:9000" in repr(settings.runtime)
    assert "***" not in str(list(settings.rows()))


# What is refused


@pytest.mark.parametrize(
    ("flag", "message", "guess", "listed"),
    [
        ("tables.cpg_node.write.zorder_by=x", "unknown table 'cpg_node'", "cpg_nodes", "relations_v1"),
        (f"{NODES}.zorder_by=file_idd", "unknown column of cpg_nodes 'file_idd'", "file_id", "node_kind"),
        (f"{NODES}.partition_by=node_kin", "column of cpg_nodes 'node_kin'", "node_kind", "path"),
        (f"{NODES}.stats_columns=pat", "unknown column of cpg_nodes 'pat'", "path", "node_kind"),
        (f"{NODES}.writer.dictionary_off=nod_id", "column of cpg_nodes 'nod_id'", "node_id", "path"),
        (f"{NODES}.enable_features=row_track", "'row_track'", "row_tracking", "v2_checkpoints"),
        (f"{NODES}.stats_policy=explict", "'explict'", "explicit", "auto"),
        (f"{NODES}.writer.compression=zst", "'zst'", "zstd", "uncompressed"),
        ("tables.cpg_nodes.schema.schema_mode=merg", "'merg'", "merge", "null"),
        ("runtime.log_level=warning", "unknown value of runtime.log_level 'warning'", "warn", "fatal"),
        ("runtime.core=2", "unknown setting 'runtime.core'", "runtime.cores", "runtime.master"),
        ("runtime.cores.x=2", "unknown setting 'runtime.cores.x'", "runtime.cores", "runtime.spark"),
        (f"{NODES}.zorder=x", f"'{NODES}.zorder'", f"{NODES}.zorder_by", f"{NODES}.writer"),
        (f"{NODES}.zorder_by.x=1", f"'{NODES}.zorder_by.x'", f"{NODES}.zorder_by", f"{NODES}.writer"),
        (f"{NODES}.target_file_size.x=1", "target_file_size.x'", f"{NODES}.target_file_size", "zorder_by"),
        (f"{NODES}.writer.compressio=x", "compressio'", f"{NODES}.writer.compression", "dictionary_off"),
        ("tables.cpg_nodes.writ.x=1", "'tables.cpg_nodes.writ.x'", "tables.cpg_nodes.write", "gate"),
        ("tables.cpg_nodes=1", "'tables.cpg_nodes'", "tables.cpg_nodes.", "tables.cpg_nodes.schema"),
        ("runtme.cores=1", "unknown section of the settings 'runtme'", "runtime", "tables"),
        ("observe.trac=off", "unknown setting 'observe.trac'", "observe.trace", "observe.log_level"),
        ("observe.trace=oltp", "unknown value of observe.trace 'oltp'", "otlp", "console"),
        ("observe.log_level=warn", "unknown value of observe.log_level 'warn'", "warning", "debug"),
        ("observe.log_format=jsn", "unknown value of observe.log_format 'jsn'", "json", "text"),
        ("observe.endpoint.x=1", "unknown setting 'observe.endpoint.x'", "observe.endpoint", "observe.trace"),
    ],
)
def test_an_unknown_name_lists_what_exists(flag: str, message: str, guess: str, listed: str) -> None:
    with pytest.raises(UnknownName) as problem:
        from_flags(flag)
    assert message in problem.value.message
    assert problem.value.hint.startswith(f"did you mean {guess}")
    assert listed in problem.value.hint.partition("known: ")[2]


OURS = """
[[entry_points]]
framework = "ours"
kind = "task"
call = ["ours.job"]
"""


def test_rules_for_entry_points_are_a_list(tmp_path: Path) -> None:
    rule = Rule("ours", "task", call=("ours.job",))
    assert from_file(tmp_path, OURS).entry_points == (rule,)
    text = '[{"framework": "ours", "kind": "task", "call": ["ours.job"]}]'
    assert from_flags(f"entry_points={text}").entry_points == (rule,)
    assert from_flags().entry_points == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"framework": "ours", "kind": "task"}]', "has no condition"),
        ('[{"framework": "ours", "kind": "task", "base": ["a.B"]}]', "base needs a name"),
        ('[{"framework": "ours", "kind": "task", "call": ["a.b"], "name": ["x"]}]', "narrow"),
        ('[{"framework": "ours", "kind": "task", "written": ["b"], "path": ["x"]}]', "narrow"),
        ('[{"framework": "ours", "kind": "tusk", "name": ["x"]}]', "tusk"),
        ('[{"framework": "ours"}]', "kind"),
        ('[{"framework": "ours", "kind": "task", "nam": ["x"]}]', "nam"),
        ("[", "JSON|malformed|truncated"),
        ("3", "array"),
    ],
)
def test_rules_that_are_not_valid_are_refused(text: str, message: str) -> None:
    with pytest.raises(CodeAnatomyError, match=message):
        from_flags(f"entry_points={text}")


def test_unknown_names_in_a_file_are_refused_alike(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown column of cpg_nodes 'nope'") as problem:
        from_file(tmp_path, f'[{NODES}]\nzorder_by = ["nope"]\n')
    listed = problem.value.hint.partition("known: ")[2].split(", ")
    assert listed == sorted(catalog.table("cpg_nodes").column_names)
    with pytest.raises(UnknownName, match="unknown column of cpg_nodes 'nope'"):
        from_file(tmp_path, f'[[{NODES}.writer.bloom_filters]]\ncolumn = "nope"\n')


def test_a_misspelt_variable_is_refused() -> None:
    with pytest.raises(UnknownName, match="'runtime_cores'") as problem:
        from_env(CODEANATOMY_RUNTIME_CORES="2")
    known = "delta, entry_points, extract, observe, refresh, runtime, tables"
    assert problem.value.hint == f"did you mean runtime? known: {known}"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("runtime.cores = 'many'", "runtime.cores"),
        ("runtime.cores = -3", "runtime.cores"),
        ("runtime.cores = 0", "runtime.cores"),
        ("runtime.cores = true", "runtime.cores"),
        ("runtime.cores = 1.5", "runtime.cores"),
        ("runtime.cores = [1]", "runtime.cores"),
        ("runtime.shuffle_partitions = 0", "runtime.shuffle_partitions"),
        ("runtime.shuffle_partitions = 2000-01-01", "runtime.shuffle_partitions"),
        ("runtime.driver_memory = 'lots'", "runtime.driver_memory"),
        ("runtime.driver_memory = '0g'", "runtime.driver_memory"),
        ("runtime.driver_memory = '512'", "runtime.driver_memory"),
        ("runtime.driver_memory = 4", "runtime.driver_memory"),
        ("runtime.executor_memory = '1.5g'", "runtime.executor_memory"),
        ("runtime.master = 3", "runtime.master"),
        ("runtime.log_level = 3", "runtime.log_level"),
        ("runtime.require_local_paths = 'perhaps'", "runtime.require_local_paths"),
        ("observe.endpoint = 'collector:4318'", "observe.endpoint"),
        ("observe.endpoint = 'http://'", "observe.endpoint"),
        ("observe.trace = true", "observe.trace"),
        ("observe = 3", "observe"),
        ("runtime = 3", "runtime"),
        ("tables = 3", "tables"),
        (f"{NODES} = 3", NODES),
        (f"{NODES}.enable_features = 3", f"{NODES}.enable_features"),
        (f"{NODES}.zorder_by = 3", f"{NODES}.zorder_by"),
        (f"{NODES}.zorder_by = [3]", f"{NODES}.zorder_by[0]"),
        (f"{NODES}.writer = 3", f"{NODES}.writer"),
        (f"{NODES}.writer.bloom_filters = ['path']", f"{NODES}.writer.bloom_filters[0]"),
        (f"{NODES}.stats_max_columns = 'all'", f"{NODES}.stats_max_columns"),
        ("tables.cpg_nodes.gate.min_reader_version = 'x'", "tables.cpg_nodes.gate.min_reader_version"),
    ],
)
def test_a_value_of_the_wrong_form_is_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigError) as problem:
        from_file(tmp_path, f"{text}\n")
    assert problem.value.message.startswith((f"{named}:", f"{named} is "))
    assert problem.value.hint


@pytest.mark.parametrize("memory", ["1g", "512m", "4G", "1048576k", "1t"])
def test_memory_as_the_jvm_writes_it(memory: str) -> None:
    assert from_flags(f"runtime.driver_memory={memory}").runtime.driver_memory == memory


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ((f"{NODES}.stats_policy=explicit", f"{NODES}.stats_columns="), "explicit without stats_columns"),
        ((f"{NODES}.stats_max_columns=1",), "more than stats_max_columns 1"),
        ((f"{NODES}.zorder_by=path,path",), "names path twice"),
        (("tables.cpg_nodes.schema.column_mapping_mode=id",), "without the feature column_mapping"),
        (("tables.cpg_props_map.write.zorder_by=props",), "is not allowed there"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(flags: tuple[str, ...], why: str) -> None:
    with pytest.raises(ConfigError, match="a table setting is not valid") as problem:
        from_flags(*flags)
    assert why in problem.value.message
    # The command that would show the settings fails as well, so the message says what was set.
    for flag in flags:
        assert f"{flag.partition('=')[0]} (flag)" in problem.value.hint


def test_column_mapping_with_its_feature_is_fine() -> None:
    settings = from_flags(
        "tables.cpg_nodes.schema.column_mapping_mode=id", f"{NODES}.enable_features=column_mapping"
    )
    assert policy_of(settings).schema.column_mapping_mode == "id"


@pytest.mark.parametrize("flag", ["", "runtime.cores", "=", "=2", "runtime.=2", ".", "tables..write.x=1"])
def test_a_flag_of_no_sense_is_an_error_of_ours(flag: str) -> None:
    with pytest.raises(CodeAnatomyError) as problem:
        from_flags(flag)
    assert problem.value.exit_code == 2
    assert problem.value.hint


@pytest.mark.parametrize(
    "flag", ["runtime.master=\udcff", "runtime.spark.\udcff=1", f"{NODES}.zorder_by=\udcff"]
)
def test_bytes_that_are_no_utf8_are_refused(flag: str) -> None:
    with pytest.raises(ConfigError, match="is not UTF-8") as problem:
        from_flags(flag)
    str(problem.value).encode()


# The runtime identity

CHANGED: dict[str, object] = {
    "engine": "local",
    "master": "local[1]",
    "cores": 1,
    "driver_memory": "5g",
    "executor_memory": "5g",
    "environment": "env.tar.gz",
    "shuffle_partitions": 17,
    "spark": {"spark.a": "1"},
    "delta": {"a": "1"},
    "storage_options": {"a": "1"},
    "log_store_options": {"a": "1"},
    "require_local_paths": True,
    "shared_sources": True,
    "log_level": "warn",
}


@pytest.mark.parametrize("name", [part.name for part in fields(RuntimeProfile)])
def test_every_field_is_part_of_the_identity(name: str) -> None:
    assert replace(RuntimeProfile(), **{name: CHANGED[name]}).identity != RuntimeProfile().identity


def test_maps_do_not_blend_in_the_identity() -> None:
    names = ("spark", "delta", "storage_options", "log_store_options")
    assert len({RuntimeProfile(**{name: {"a": "1"}}).identity for name in names}) == len(names)


def test_the_identity_ignores_the_order_of_a_map() -> None:
    one = RuntimeProfile(spark={"spark.a": "1", "spark.b": "2"}, delta={"x": "1", "y": "2"})
    two = RuntimeProfile(spark={"spark.b": "2", "spark.a": "1"}, delta={"y": "2", "x": "1"})
    assert one.identity == two.identity
    assert len(one.identity) == 32


@pytest.mark.parametrize("seed", ["0", "1234"])
def test_the_identity_is_the_same_in_every_process(seed: str) -> None:
    profile = RuntimeProfile(cores=2, spark={"spark.b": "2", "spark.a": "1", "spark.c": "\u00e9"})
    script = (
        "import sys, msgspec; from codeanatomy.config import RuntimeProfile;"
        "sys.stdout.write(msgspec.json.decode(sys.argv[1], type=RuntimeProfile).identity)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, msgspec.json.encode(profile).decode()],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == profile.identity


LOCAL_ENV, LOCAL_FILE = {"CODEANATOMY_RUNTIME__ENGINE": "local"}, "engine = 'local'"


@pytest.mark.parametrize(
    ("content", "env", "flags", "refused"),
    [
        ("", LOCAL_ENV, ("runtime.master=yarn",), "runtime.master, set by a flag"),
        ("", LOCAL_ENV, ("runtime.spark.spark.master=yarn",), "runtime.spark.spark.master, set by a flag"),
        ("", {**LOCAL_ENV, "CODEANATOMY_RUNTIME__MASTER": "yarn"}, (), "runtime.master, set by the environ"),
        (f"{LOCAL_FILE}\nmaster = 'yarn'", {}, (), "runtime.master, set by a file"),
        (LOCAL_FILE, {"CODEANATOMY_RUNTIME__MASTER": "yarn"}, (), "set by the environment"),
        # The engine is chosen by a later layer than the master.
        ("master = 'yarn'", LOCAL_ENV, (), None),
        ("spark = {'spark.master' = 'yarn'}", {}, ("runtime.engine=local",), None),
        ("", {"CODEANATOMY_RUNTIME__MASTER": "yarn"}, ("runtime.engine=local",), None),
        (LOCAL_FILE, {}, ("runtime.engine=spark", "runtime.master=yarn"), None),
        (LOCAL_FILE, {}, (), None),
    ],
)
def test_a_master_that_local_processes_would_ignore_is_refused(
    tmp_path: Path, content: str, env: dict[str, str], flags: tuple[str, ...], refused: str | None
) -> None:
    (tmp_path / "codeanatomy.toml").write_text(f"[runtime]\n{content}\n")
    settings = load_settings(flags, env=env, start=tmp_path)
    if refused is None:
        check_master(settings)
        return
    with pytest.raises(UsageError) as caught:
        check_master(settings)
    assert refused in caught.value.message


def test_settings_that_were_set_are_recorded_without_values_of_storage_options(tmp_path: Path) -> None:
    text = "[runtime.storage_options]\n'fs.s3a.endpoint' = 'http://minio:9000'\n[runtime]\ncores = 2\n"
    settings = from_file(tmp_path, text, f"runtime.spark.my.token={HUSH}", "extract.partitions=5")
    assert settings.changed() == {
        "extract.partitions": "5",
        "runtime.cores": "2",
        "runtime.spark.my.token": "***",
        "runtime.storage_options.fs.s3a.endpoint": "***",
    }
    assert load_settings((), {}, None).changed() == {}
