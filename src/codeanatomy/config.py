"""Load the settings, and record which layer each value came from.

There are four layers, and later ones win: the defaults in this module and in the catalogue, the nearest
`codeanatomy.toml` or `[tool.codeanatomy]` of `pyproject.toml` in this folder or its parents, the environment,
and flags. All of them are flattened to dotted keys, so a setting has one name everywhere:

    codeanatomy.toml         [tables.cpg_nodes.write]
                             target_file_size = "64MB"
    environment              CODEANATOMY_TABLES__CPG_NODES__WRITE__TARGET_FILE_SIZE=64MB
    flag                     --set tables.cpg_nodes.write.target_file_size=64MB

>>> settings = load_settings(flags=("runtime.cores=2",), env={}, start=None)
>>> settings.runtime.cores, settings.source("runtime.cores"), settings.source("runtime.master")
(2, 'flag', 'default')

Keys are `runtime.<field>` of RuntimeProfile, `extract.<field>` of ExtractOptions, `refresh.<field>` of
RefreshOptions, `delta.<field>` of DeltaOptions, `observe.<field>` of ObserveOptions, `entry_points` a list
of rules (`catalog.entry_points`), and
`tables.<table>.<write|schema|gate|upkeep>.<field>` of the policies in `catalog.spec`. An unknown table,
field, column or feature is an error that lists what exists.

Tests: `tests/unit/test_config.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field, inspect, structs

from codeanatomy import catalog
from codeanatomy.catalog.entry_points import Rule
from codeanatomy.catalog.readers import READER_FEATURES, without_vectors
from codeanatomy.catalog.settings import DeltaOptions, ExtractOptions, ObserveOptions, RefreshOptions
from codeanatomy.catalog.spec import Table
from codeanatomy.errors import CatalogError, ConfigError, UnknownName, UsageError

ENV_PREFIX = "CODEANATOMY_"
# Variables with this prefix that are not settings: they are read before the settings are.
CACHE_VARIABLE = "CODEANATOMY_CACHE"
SETTINGS_VARIABLE = "CODEANATOMY_IVY_SETTINGS"
SCIP_VARIABLE = "CODEANATOMY_SCIP_PYTHON"
LAKE_VARIABLE = "CODEANATOMY_LAKE"
ENV_RESERVED = (CACHE_VARIABLE, SETTINGS_VARIABLE, SCIP_VARIABLE, LAKE_VARIABLE)
POLICIES = ("write", "schema", "gate", "upkeep")
SECTIONS = {
    "runtime": "runtime.<field>",
    "extract": "extract.<field>",
    "refresh": "refresh.<field>",
    "delta": "delta.<field>",
    "observe": "observe.<field>",
    "tables": "tables.<table>.<write|schema|gate|upkeep>.<field>",
    "entry_points": "[[entry_points]] in a file, with the fields of a rule",
}
SIZE_UNITS = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3}
# Keys whose values are credentials in one of the usual stores; never printed.
SECRET = re.compile(r"key|secret|token|passw|passphrase|credential|\bsas\b", re.IGNORECASE)
# Of these, values are never recorded.
STORAGE = ("runtime.storage_options.", "runtime.log_store_options.")
# Credentials inside a value: a password in Java options or in a URL.
SECRET_INSIDE = re.compile(rf"({SECRET.pattern})\S*=|://[^/\s]*@", re.IGNORECASE)

Engine = Literal["spark", "local"]
LogLevel = Literal["off", "fatal", "error", "warn", "info"]
Source = Literal["default", "file", "environment", "flag"]
# Layers of settings, the later wins.
SOURCE_TEXTS: dict[Source, str] = {
    "default": "default",
    "file": "a file",
    "environment": "the environment",
    "flag": "a flag",
}
# Settings that name a Spark master.
MASTERS = ("runtime.master", "runtime.spark.spark.master")
# Forms of a master: in one process, or the address of a cluster.
MASTER = re.compile(r"local|local\[([1-9]\d*|\*)(, *\d+)?\]|local-cluster\[[\d, ]+\]|yarn|(?!sc:)\w+://.+")
Kind = TypeVar("Kind", bound=Struct)
Count = Annotated[int, Meta(ge=1)]
# Size in the JVM's syntax; the unit is required, because a plain number would mean bytes.
Memory = Annotated[str, Meta(pattern="^[1-9][0-9]*[kmgtKMGT]$")]


class RuntimeProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """Engine of builds, and configuration of the Spark session; its hash is the runtime identity."""

    # Where builds run: on Spark, or on processes of this machine without a JVM. The rows are the same.
    engine: Engine = "spark"
    # Any Spark master: local[*], spark://host:7077, yarn, k8s://...
    master: str = "local[*]"
    # Number of cores; None means all that the master offers.
    cores: Count | None = None
    driver_memory: Memory = "4g"
    executor_memory: Memory = "4g"
    # Archive of `codeanatomy environment` that the executors of a cluster unpack: a path or a URI.
    environment: str | None = None
    # Upper bound; adaptive query execution merges small partitions.
    shuffle_partitions: Count = 16
    # Further Spark settings, by full name.
    spark: dict[str, str] = field(default_factory=dict)
    # Settings with the prefix spark.databricks.delta.
    delta: dict[str, str] = field(default_factory=dict)
    # Settings with the prefix spark.hadoop. (file systems and their credentials).
    storage_options: dict[str, str] = field(default_factory=dict)
    # Settings with the prefix spark.delta.logStore., such as "s3a.impl".
    log_store_options: dict[str, str] = field(default_factory=dict)
    # Refuse URIs outside of the local file system.
    require_local_paths: bool = False
    # Local sources and lakes have the same paths on all hosts of a cluster, as on a shared file system.
    shared_sources: bool = False
    # Lowest level that Spark logs to stderr.
    log_level: LogLevel = "off"

    def __repr__(self) -> str:
        shown = (f"{key}={mask_secret(key, value)!r}" for key, value in _flatten(_fields(self)).items())
        return f"RuntimeProfile({', '.join(shown)})"

    @property
    def session_master(self) -> str:
        """The master that a session is started on: `local[*]` with a number of cores is `local[cores]`."""
        master = self.master
        if master == "local[*]" and self.cores is not None:
            master = f"local[{self.cores}]"
        return self.spark.get("spark.master", master)

    @property
    def identity(self) -> str:
        """Hash of all fields, stable across processes."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:32]


class EntryRules(Struct, frozen=True):
    """The section `entry_points`: a list."""

    rules: tuple[Rule, ...]


class Settings(Struct, frozen=True):
    """The effective settings, and the layer of each key that was set."""

    runtime: RuntimeProfile
    extract: ExtractOptions
    refresh: RefreshOptions
    delta: DeltaOptions
    observe: ObserveOptions
    tables: tuple[Table, ...]
    # Rules of the user.
    entry_points: tuple[Rule, ...]
    sources: Mapping[str, Source]

    def source(self, key: str) -> Source:
        """Return the layer that a key's value came from."""
        return self.sources.get(key, "default")

    def rows(self) -> Iterator[tuple[str, object, Source]]:
        """Iterate over keys, effective values and sources; maps entry by entry, secrets masked."""
        policies = {t.name: {part: _fields(getattr(t, part)) for part in POLICIES} for t in self.tables}
        plain = {name: _plain(getattr(self, name)) for name in SECTIONS if name != "tables"}
        for key, value in _flatten({**plain, "tables": policies}).items():
            # A table's policy has no secrets, even if the table's name looks like one.
            yield key, value if key.startswith("tables.") else mask_secret(key, value), self.source(key)

    def changed(self) -> dict[str, str]:
        """Return the settings that a layer has set, as text; without credentials and storage options."""
        return {
            key: "***" if key.startswith(STORAGE) else str(value)
            for key, value, source in self.rows()
            if source != "default"
        }


def load_settings(
    flags: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    start: Path | None = Path(),
) -> Settings:
    """Merge the layers and check the result; `start=None` reads no file."""
    layers: tuple[tuple[Source, dict[str, object]], ...] = (
        ("file", {} if start is None else _file_pairs(start)),
        ("environment", dict(_env_pairs(os.environ if env is None else env))),
        ("flag", dict(_flag_pairs(flags))),
    )
    values: dict[str, object] = {}
    sources: dict[str, Source] = {}
    for source, layer in layers:
        values.update(layer)
        sources.update(dict.fromkeys(layer, source))
    _refuse_unknown(values)
    _refuse_broken_text(values)
    runtime = _runtime({key: value for key, value in values.items() if key.startswith("runtime.")})
    extract = _section("extract", ExtractOptions(), values)
    refresh = _section("refresh", RefreshOptions(), values)
    delta = _section("delta", DeltaOptions(), values)
    observe = _section("observe", ObserveOptions(), values)
    tables = _tables({key: value for key, value in values.items() if key.startswith("tables.")}, sources)
    if delta.readers == "all":
        tables = _for_all_readers(tables)
    return Settings(runtime, extract, refresh, delta, observe, tables, _entry_points(values), sources)


def _entry_points(values: Mapping[str, object]) -> tuple[Rule, ...]:
    """Check the rules for entry points."""
    value = values.get("entry_points", [])
    try:
        listed = msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError as problem:
        raise ConfigError(
            f"entry_points: {problem}", "write a list of rules as JSON, or in a file"
        ) from problem
    return _convert({"rules": listed}, EntryRules, "entry_points").rules


def _for_all_readers(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return the tables without reader features; refuse those that only a setting can enable."""
    plain = without_vectors(tables)
    for table in plain:
        for name in sorted(set(READER_FEATURES).intersection(table.write.enable_features)):
            raise ConfigError(
                f"delta.readers is all, but tables.{table.name}.write.enable_features has {name}",
                "remove one of the two settings: not every reader opens such a table",
            )
    return plain


def _tables(values: Mapping[str, object], sources: Mapping[str, Source]) -> tuple[Table, ...]:
    """Apply the settings of tables to the catalogue and check the result; the catalogue itself is valid."""
    if not values:
        return catalog.TABLES
    # Imported here: most commands run with the tables of the catalogue.
    from codeanatomy.catalog.validation import check_catalog

    tables = tuple(_override(table, values) for table in catalog.TABLES)
    try:
        check_catalog(tables, layout_is_free=True)
    except CatalogError as problem:
        changed = ", ".join(f"{key} ({sources[key]})" for key in values)
        raise ConfigError(
            f"a table setting is not valid: {problem.message}", f"change one of these settings: {changed}"
        ) from problem
    return tables


def parse_size(text: str) -> int:
    """Parse a size such as '64MB', '1 GB' or '1048576' into bytes.

    >>> parse_size("64MB"), parse_size("1048576")
    (67108864, 1048576)
    """
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*([KMG]?B)?\s*", text, re.IGNORECASE)
    if match is None or int(match[1]) == 0:
        raise ConfigError(f"{text!r} is not a size", "write it like 64MB, 1GB or 1048576")
    return int(match[1]) * SIZE_UNITS[(match[2] or "B").upper()]


def _file_pairs(start: Path) -> dict[str, object]:
    return {key: value for key, value in _flatten(_read_file(start)).items() if value != {}}


def _read_file(start: Path) -> dict[str, Any]:
    """Read the nearest settings file in `start` or its parents."""
    for folder in (start.resolve(), *start.resolve().parents):
        own, project = folder / "codeanatomy.toml", folder / "pyproject.toml"
        if own.is_file():
            return _parse_toml(own)
        if project.is_file():
            tool = _parse_toml(project).get("tool")
            section = tool.get("codeanatomy") if isinstance(tool, dict) else None
            if isinstance(section, dict):
                return section
            if section is not None:
                raise ConfigError(f"tool.codeanatomy of {project} is not a table", "write [tool.codeanatomy]")
    return {}


def _parse_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as problem:
        raise ConfigError(f"cannot read {path}: {problem}", "correct or remove the file") from problem


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Return the leaves by dotted key; an empty map is a leaf."""
    flat: dict[str, object] = {}
    for name, value in tree.items():
        key = f"{prefix}{name}"
        flat.update(_flatten(value, f"{key}.") if isinstance(value, dict) and value else {key: value})
    return flat


def _env_pairs(env: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """Yield CODEANATOMY_A__B=x as ("a.b", "x"); map entries (storage options) need a file or a flag."""
    for name in sorted(env):
        if name.startswith(ENV_PREFIX) and name not in ENV_RESERVED:
            yield name[len(ENV_PREFIX) :].lower().replace("__", "."), env[name]


def _flag_pairs(flags: Iterable[str]) -> Iterator[tuple[str, object]]:
    for flag in flags:
        key, equals, value = flag.partition("=")
        if not equals:
            raise ConfigError(f"--set {flag} has no value", "write --set KEY=VALUE")
        # Quotes around a map key are TOML syntax; a flag does not need them, because the rest is one key.
        yield key.strip().replace('"', ""), value


def _runtime(values: Mapping[str, object]) -> RuntimeProfile:
    if not values:
        return RuntimeProfile()
    tree = _fields(RuntimeProfile())
    for key, value in values.items():
        name, _, entry = key.removeprefix("runtime.").partition(".")
        if name not in tree or (entry and not isinstance(tree[name], dict)):
            raise UnknownName("setting", key, (f"runtime.{known}" for known in tree))
        if entry:
            tree[name][entry] = _entry_text(key, value)
        elif isinstance(tree[name], dict):
            raise ConfigError(f"{key} is a map", f"set its entries, as in {key}.NAME")
        else:
            tree[name] = value
    return _convert(tree, RuntimeProfile, "runtime")


def _section(name: str, defaults: Kind, values: Mapping[str, object]) -> Kind:
    """Apply the values of a section without maps to its defaults."""
    prefix = f"{name}."
    changes = {key: value for key, value in values.items() if key.startswith(prefix)}
    if not changes:
        return defaults
    tree = _fields(defaults)
    for key, value in changes.items():
        _put(tree, key.removeprefix(prefix), value, prefix)
    return _convert(tree, type(defaults), name)


def _entry_text(key: str, value: object) -> str:
    """Format the value of a Spark setting, which is text; booleans are lower case."""
    if isinstance(value, list):
        raise ConfigError(f"{key} is a list", "write it as a string in the form that Spark expects")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _override(table: Table, values: Mapping[str, object]) -> Table:
    """Return the table with its policies changed by the settings."""
    for policy in POLICIES:
        prefix = f"tables.{table.name}.{policy}."
        changes = {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}
        if changes:
            current = getattr(table, policy)
            tree = _fields(current)
            for name, value in changes.items():
                _put(tree, name, value, prefix)
            table = structs.replace(table, **{policy: _convert(tree, type(current), prefix[:-1])})
    _refuse_unknown_columns(table)
    return table


def _put(tree: dict[str, Any], name: str, value: object, prefix: str) -> None:
    """Set a dotted field of a policy, converting text to the type of the field."""
    head, _, rest = name.partition(".")
    if head not in tree or (rest and not isinstance(tree[head], dict)):
        raise UnknownName("setting", f"{prefix}{name}", (f"{prefix}{known}" for known in tree))
    if rest:
        _put(tree[head], rest, value, f"{prefix}{head}.")
    elif head.endswith("_size"):
        tree[head] = parse_size(str(value))
    elif isinstance(tree[head], list) and isinstance(value, str):
        tree[head] = [part.strip() for part in value.split(",") if part.strip()]
    else:
        tree[head] = value


def _fields(struct: Struct) -> dict[str, Any]:
    """Convert a struct to builtin types, including fields with default values."""
    return {name: _plain(part) for name, part in structs.asdict(struct).items()}


def _plain(value: object) -> object:
    if isinstance(value, Struct):
        return _fields(value)
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _convert(tree: Mapping[str, Any], kind: type[Kind], where: str) -> Kind:
    _refuse_unknown_choice(tree, inspect.type_info(kind), where)
    try:
        return msgspec.convert(tree, kind, strict=False)
    except msgspec.ValidationError as problem:
        what, _, path = str(problem).partition(" - at `$")
        raise ConfigError(
            f"{where}{path.rstrip('`')}: {what}",
            "correct the value; docs/schemas.json has the type of every setting",
        ) from problem


def _refuse_unknown(values: Mapping[str, object]) -> None:
    """Refuse unknown sections, tables and policies; unknown fields are refused where they are set."""
    for key in values:
        section, _, rest = key.partition(".")
        if section not in SECTIONS:
            raise UnknownName("section of the settings", section, SECTIONS)
        if bool(rest) == (section == "entry_points"):
            raise ConfigError(f"{key} is a section, not a setting", f"write {SECTIONS[section]}")
        if section == "tables":
            name, _, rest = rest.partition(".")
            catalog.table(name)
            policy, _, rest = rest.partition(".")
            if policy not in POLICIES:
                raise UnknownName("setting", key, (f"tables.{name}.{each}" for each in POLICIES))
            if not rest:
                raise ConfigError(f"{key} is a section, not a setting", f"write {key}.<field>")


def _refuse_broken_text(values: Mapping[str, object]) -> None:
    """Refuse values that are not UTF-8: the environment and flags pass such bytes as lone surrogates."""
    for key, value in values.items():
        if any("\ud800" <= char <= "\udfff" for char in f"{key}{value}"):
            raise ConfigError(f"{key!r} is not UTF-8", "write the setting in UTF-8")


def _refuse_unknown_columns(table: Table) -> None:
    write, writer = table.write, table.write.writer
    blooms = (bloom.column for bloom in writer.bloom_filters)
    layout = (*write.partition_by, *write.zorder_by, *write.stats_columns, *table.upkeep.z_order_cols)
    for name in (*layout, *writer.dictionary_off, *blooms):
        table.column(name)


def _refuse_unknown_choice(value: object, kind: inspect.Type, where: str) -> None:
    """Raise UnknownName, which lists the choices, if a value is not one of a Literal's."""
    match kind:
        case inspect.StructType(fields=fields) if isinstance(value, dict):
            for part in fields:
                if part.name in value:
                    _refuse_unknown_choice(value[part.name], part.type, f"{where}.{part.name}")
        case inspect.VarTupleType(item_type=item) if isinstance(value, list):
            for each in value:
                _refuse_unknown_choice(each, item, where)
        case inspect.UnionType(types=(inspect.LiteralType(values=choices), inspect.NoneType())):
            _refuse_unknown_choice(value, inspect.LiteralType((*choices, "null")), where)
        case inspect.LiteralType(values=choices) if isinstance(value, str) and value not in choices:
            raise UnknownName(f"value of {where}", value, map(str, choices))
        case _:
            pass


def check_master(settings: Settings) -> None:
    """Raise UsageError if a master is named for a build on local processes, or is not of a known form.

    An engine that a later layer chooses, such as a flag, wins over the master of an earlier one, such as a
    file.
    """
    engine, master = settings.source("runtime.engine"), settings.runtime.session_master
    if settings.runtime.engine == "local":
        layers = [*SOURCE_TEXTS]
        for key in MASTERS:
            source = settings.source(key)
            if source != "default" and layers.index(source) >= layers.index(engine):
                raise UsageError(
                    f"--master is for builds on Spark ({key}, set by {SOURCE_TEXTS[source]}), and the engine "
                    f"of this one is local (runtime.engine, set by {SOURCE_TEXTS[engine]})",
                    "leave out --master, or add --engine spark",
                )
    elif master.startswith("sc://"):
        raise UsageError(
            "--master is not for Spark Connect",
            "build from Python: codeanatomy.build(sources, lake, spark=session), see docs/deploy.md",
        )
    elif MASTER.fullmatch(master) is None:
        raise UsageError(
            f"{str(mask_secret('runtime.master', master))!r} is no master of Spark",
            "write local[*], local[4], spark://host:7077, yarn or k8s://https://host:6443",
        )


def mask_secret(key: str, value: object) -> object:
    """Return the value of a setting, or `***` if it is or contains a credential."""
    secret = isinstance(value, str) and (SECRET.search(key) or SECRET_INSIDE.search(value))
    return "***" if secret else value
