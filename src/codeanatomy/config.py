"""Settings: what a user may change, and where each value came from.

Four layers, the later wins: the defaults in this file and in the catalogue, `codeanatomy.toml` or
`[tool.codeanatomy]` of `pyproject.toml` (found by walking up), the environment, and flags. All of
them are flattened to dotted keys, so a setting has one name everywhere:

    codeanatomy.toml         [tables.cpg_nodes.write]
                             target_file_size = "64MB"
    environment              CODEANATOMY_TABLES__CPG_NODES__WRITE__TARGET_FILE_SIZE=64MB
    flag                     --set tables.cpg_nodes.write.target_file_size=64MB

>>> settings = load_settings(flags=("runtime.cores=2",), env={}, start=None)
>>> settings.runtime.cores, settings.source("runtime.cores"), settings.source("runtime.master")
(2, 'flag', 'default')

Keys are `runtime.<field>` of RuntimeProfile and `tables.<table>.<write|schema|gate>.<field>` of the
policies in `catalog.spec`. An unknown table, field, column or feature is an error that lists what
exists. Tests: `tests/test_config.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field, structs

from codeanatomy import catalog
from codeanatomy.catalog.check import check_catalog
from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.errors import CatalogError, ConfigError, UnknownName

ENV_PREFIX = "CODEANATOMY_"
# Variables with our prefix that are no settings: they are read before any setting is.
ENV_RESERVED = ("CODEANATOMY_CACHE", "CODEANATOMY_IVY_SETTINGS")
POLICIES = ("write", "schema", "gate")
SIZE_UNITS = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3}
# Options whose values are credentials in one of the usual stores; never shown.
SECRET = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)

LogLevel = Literal["off", "fatal", "error", "warn", "info"]
Source = Literal["default", "file", "environment", "flag"]


class RuntimeProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that makes the engine what it is; its hash is the runtime identity."""

    # Any Spark master: local[*], spark://host:7077, yarn, k8s://...
    master: str = "local[*]"
    # Cores to use; none means all that the master offers.
    cores: int | None = None
    driver_memory: str = "4g"
    executor_memory: str = "4g"
    # Upper bound; adaptive execution merges small partitions.
    shuffle_partitions: int = 16
    # Further Spark settings by their full name.
    spark: dict[str, str] = field(default_factory=dict)
    # Settings below spark.databricks.delta.
    delta: dict[str, str] = field(default_factory=dict)
    # Settings below spark.hadoop. (file systems and their credentials).
    storage_options: dict[str, str] = field(default_factory=dict)
    # Settings below spark.delta.logStore. such as "s3a.impl".
    log_store_options: dict[str, str] = field(default_factory=dict)
    # Refuse any URI that is not on the local file system.
    require_local_paths: bool = False
    # What Spark may write to stderr.
    log_level: LogLevel = "off"

    @property
    def identity(self) -> str:
        """Hash of all fields, the same in every process."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:32]


class Settings(Struct, frozen=True):
    """The effective settings, and for each key that was set, which layer set it."""

    runtime: RuntimeProfile
    tables: tuple[Table, ...]
    sources: Mapping[str, Source]

    def source(self, key: str) -> Source:
        """The layer a key's value came from; setting a map's entry sets the map."""
        inside = (found for name, found in self.sources.items() if name.startswith(f"{key}."))
        return self.sources.get(key) or next(inside, "default")

    def rows(self) -> Iterator[tuple[str, object, Source]]:
        """Every key with its effective value and source; secrets are masked."""
        for name in structs.asdict(self.runtime):
            key = f"runtime.{name}"
            yield key, _masked(getattr(self.runtime, name)), self.source(key)
        for table in self.tables:
            for policy in POLICIES:
                for name, value in _tree(getattr(table, policy)).items():
                    key = f"tables.{table.name}.{policy}.{name}"
                    yield key, value, self.source(key)


def load_settings(
    flags: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    start: Path | None = Path(),
) -> Settings:
    """Merge the layers and check the result; `start=None` looks at no file."""
    layers: tuple[tuple[Source, dict[str, object]], ...] = (
        ("file", _flatten(_read_file(start)) if start is not None else {}),
        ("environment", dict(_env_pairs(os.environ if env is None else env))),
        ("flag", dict(_flag_pairs(flags))),
    )
    values: dict[str, object] = {}
    sources: dict[str, Source] = {}
    for source, layer in layers:
        values.update(layer)
        sources.update(dict.fromkeys(layer, source))
    runtime = _runtime({key: value for key, value in values.items() if key.startswith("runtime.")})
    tables = tuple(_override(table, values) for table in catalog.TABLES)
    _refuse_unknown(values)
    try:
        check_catalog(tables)
    except CatalogError as problem:
        raise ConfigError(
            f"a table setting does not fit: {problem.message}", "see `codeanatomy table NAME`"
        ) from problem
    return Settings(runtime=runtime, tables=tables, sources=sources)


def parse_size(text: str) -> int:
    """Bytes of '64MB', '1 GB' or '1048576'.

    >>> parse_size("64MB"), parse_size("1048576")
    (67108864, 1048576)
    """
    match = re.fullmatch(r"\s*(\d+)\s*([KMG]?B)?\s*", text, re.IGNORECASE)
    if match is None or int(match[1]) == 0:
        raise ConfigError(f"{text!r} is not a size", "write it like 64MB, 1GB or 1048576")
    return int(match[1]) * SIZE_UNITS[(match[2] or "B").upper()]


def _read_file(start: Path) -> dict[str, Any]:
    """The nearest settings file at or above `start`."""
    for folder in (start.resolve(), *start.resolve().parents):
        own, project = folder / "codeanatomy.toml", folder / "pyproject.toml"
        if own.is_file():
            return _parse_toml(own)
        if project.is_file() and (tool := _parse_toml(project).get("tool", {}).get("codeanatomy")):
            return dict(tool)
    return {}


def _parse_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as problem:
        raise ConfigError(f"cannot read {path}: {problem}", "mend or remove the file") from problem


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in tree.items():
        key = f"{prefix}{name}"
        flat.update(_flatten(value, f"{key}.") if isinstance(value, dict) else {key: value})
    return flat


def _env_pairs(env: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """CODEANATOMY_A__B=x as ("a.b", "x"); map entries (storage options) keep to files and flags."""
    for name in sorted(env):
        if name.startswith(ENV_PREFIX) and name not in ENV_RESERVED:
            yield name[len(ENV_PREFIX) :].lower().replace("__", "."), env[name]


def _flag_pairs(flags: Iterable[str]) -> Iterator[tuple[str, object]]:
    for flag in flags:
        key, equals, value = flag.partition("=")
        if not equals:
            raise ConfigError(f"--set {flag} has no value", "write --set KEY=VALUE")
        yield key.strip(), value


def _runtime(values: Mapping[str, object]) -> RuntimeProfile:
    default = RuntimeProfile()
    nested: dict[str, Any] = {}
    for key, value in values.items():
        _, name, *rest = key.split(".")
        if name not in structs.asdict(default):
            raise UnknownName("setting", key, (f"runtime.{known}" for known in structs.asdict(default)))
        if rest:
            nested.setdefault(name, {})[".".join(rest)] = str(value)
        else:
            nested[name] = value
    return _convert(nested, RuntimeProfile, "runtime")


def _override(table: Table, values: Mapping[str, object]) -> Table:
    """The table with its policies as the settings want them."""
    for policy in POLICIES:
        prefix = f"tables.{table.name}.{policy}."
        changes = {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}
        if changes:
            current = getattr(table, policy)
            tree: dict[str, Any] = _tree(current)
            for name, value in changes.items():
                _put(tree, name, value, prefix)
            table = structs.replace(table, **{policy: _convert(tree, type(current), prefix[:-1])})
    return table


def _put(tree: dict[str, Any], name: str, value: object, prefix: str) -> None:
    """Set a dotted field of a policy, turning text into what the field holds."""
    head, _, rest = name.partition(".")
    if head not in tree:
        raise UnknownName("setting", f"{prefix}{name}", (f"{prefix}{known}" for known in tree))
    if rest:
        _put(tree[head], rest, value, f"{prefix}{head}.")
    elif head.endswith("_size") and isinstance(value, str):
        tree[head] = parse_size(value)
    elif isinstance(tree[head], list) and isinstance(value, str):
        tree[head] = [part.strip() for part in value.split(",") if part.strip()]
    else:
        tree[head] = value


def _tree(value: object) -> Any:
    """A policy as plain data with every field, defaults included."""
    if isinstance(value, Struct):
        return {name: _tree(part) for name, part in structs.asdict(value).items()}
    return [_tree(part) for part in value] if isinstance(value, tuple) else value


def _convert(tree: Mapping[str, Any], kind: type[Any], where: str) -> Any:
    features = tree.get("enable_features", ())
    known: tuple[str, ...] = FeatureName.__args__  # type: ignore[attr-defined]
    for feature in features:
        if feature not in known:
            raise UnknownName("feature", str(feature), known)
    try:
        return msgspec.convert(tree, kind, strict=False)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{where}: {problem}", "see `codeanatomy config show --with-sources`") from problem


def _refuse_unknown(values: Mapping[str, object]) -> None:
    for key in values:
        section, _, rest = key.partition(".")
        if section == "runtime":
            continue
        if section != "tables":
            raise UnknownName("setting", key, ("runtime.<field>", "tables.<table>.<policy>.<field>"))
        name, _, rest = rest.partition(".")
        catalog.table(name)
        policy = rest.partition(".")[0]
        if policy not in POLICIES:
            raise UnknownName("setting", key, (f"tables.{name}.{known}" for known in POLICIES))


def _masked(value: object) -> object:
    if isinstance(value, dict):
        return {key: "***" if SECRET.search(key) else shown for key, shown in value.items()}
    return value
