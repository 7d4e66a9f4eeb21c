"""Derive the steps of a run from the catalogue, and compute their fingerprints.

>>> relate = steps_of(catalog.TABLES)[2]
>>> relate.name, relate.outputs, relate.adds_to, relate.after
('relate', ('relations_v1', 'relate_programs_v1'), ('diagnostics_norm_v1',), ('extract',))

A step is a stage; its outputs are the tables of the stage. Two executions of a step with the same fingerprint
give the same rows of a repository. A fingerprint covers:

    inputs      the fingerprints of the steps whose tables it reads; for the first step, the source
    rules       the code of its modules, the contracts of its tables, versions of ids, extractors and tools
    settings    those that can change rows (RESULT_SETTINGS), and no others

Spark's query plan is not included: for a step in Python it contains only MapInArrow, while the code contains
everything, and code can be hashed without starting a JVM. So a build without changes ends in a second. Table
versions are pinned and recorded, and not hashed: the same source has the same fingerprints in every lake.
Tests: `tests/unit/plan/test_steps.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct, json, to_builtins

import codeanatomy
from codeanatomy import catalog, node_ids
from codeanatomy.catalog.kinds import Profile
from codeanatomy.catalog.spec import Table
from codeanatomy.config import Settings
from codeanatomy.errors import UnknownName
from codeanatomy.extract.file_rows import FAILURES

EXTRACT, NORMALIZE, RELATE, GRAPH = "extract", "normalize", "relate", "graph"
# Prefix of the fingerprint of a step that the next build must repeat, because a table of it was restored.
RESTORED_PREFIX = "restored-"
# Stages that are steps of a build.
STAGES = (EXTRACT, NORMALIZE, RELATE, GRAPH)
# Modules that several steps use, besides their own package, and those that decide which files are redone. Of
# the pipeline, modules that cannot change rows are left out: the local process, refused keys, and why a file
# was redone.
SHARED_CODE = (
    "arrow.py",
    "costs.py",
    "catalog/tables/columns.py",
    "catalog/tables/extract.py",
    "catalog/kinds",
    "definitions.py",
    "delta/light_feed.py",
    "file_ids.py",
    "file_view.py",
    "ids.py",
    "lake/cursors.py",
    "node_ids.py",
    "plan/feeds.py",
    "spans.py",
    "syntax_tree.py",
    "pipeline/chunks.py",
    "pipeline/commits.py",
    "pipeline/context.py",
    "pipeline/executors/executor.py",
    "pipeline/executors/local_executor.py",
    "pipeline/executors/processes.py",
    "pipeline/executors/sorted_tables.py",
    "pipeline/executors/spark_executor.py",
    "pipeline/executors/spark_tables.py",
    "pipeline/passes.py",
    "pipeline/pieces.py",
    "pipeline/refreshes.py",
    "pipeline/sinks.py",
    "pipeline/stored_rows.py",
)
STEP_CODE = {
    EXTRACT: (
        "extract",
        "sources",
        "catalog/tables/extract_trees.py",
        "pipeline/first_pass.py",
        "pipeline/tool_rows.py",
        "pipeline/tools.py",
    ),
    NORMALIZE: ("normalize", "pipeline/first_pass.py"),
    RELATE: ("relate", "pipeline/first_pass.py", "pipeline/solve.py"),
    GRAPH: ("graph", "catalog/entry_points.py", "pipeline/second_pass.py"),
}
# Settings that can change rows, by step; extract.partitions, table layouts and the runtime cannot.
RESULT_SETTINGS = {
    EXTRACT: (
        "extract.exclude",
        "extract.file_seconds",
        "extract.include",
        "extract.max_archive_entries",
        "extract.max_archive_size",
        "extract.max_file_size",
        "extract.max_libcst_size",
        "extract.max_memory_size",
        "extract.max_value_chars",
        "extract.scip_seconds",
        "extract.types_seconds",
    ),
    GRAPH: ("build.profile", "entry_points"),
}


class Step(Struct, frozen=True):
    """A step of a run."""

    name: str
    # Tables of other steps that it reads.
    inputs: tuple[str, ...]
    # Tables it writes.
    outputs: tuple[str, ...]
    # Tables of other steps that it adds rows to.
    adds_to: tuple[str, ...]
    # Steps whose tables it reads.
    after: tuple[str, ...]


def steps_of(tables: Sequence[Table], until: str | None = None) -> list[Step]:
    """Return the steps of a build in topological order, up to and including `until`.

    >>> [step.name for step in steps_of(catalog.TABLES, "normalize")]
    ['extract', 'normalize']
    """
    order = dict.fromkeys(table.stage for table in catalog.derivation_order(tables) if table.stage in STAGES)
    known: list[str] = list(order)
    if until is not None and until not in known:
        raise UnknownName("stage", until, known)
    selected = known if until is None else known[: known.index(until) + 1]
    return [_step(name, tables) for name in selected]


def _step(name: str, tables: Sequence[Table]) -> Step:
    stage_of = {table.name: table.stage for table in tables}
    own = [table for table in tables if table.stage == name]
    inputs = sorted({each for table in own for each in table.inputs if stage_of[each] != name})
    adds_to = sorted({each for table in own for each in table.adds_to if stage_of[each] != name})
    # Failures of extractors are in a table of the meta stage.
    outputs = [table.name for table in own] + ([FAILURES] if name == EXTRACT else [])
    before = {stage_of[each] for each in inputs}
    return Step(
        name, tuple(inputs), tuple(outputs), tuple(adds_to), tuple(each for each in STAGES if each in before)
    )


class BuildInputs(Struct, frozen=True):
    """Settings and versions that rows depend on, besides the source; the same for all repositories."""

    settings: dict[str, object]
    witness_versions: dict[str, str]

    @property
    def settings_hash(self) -> str:
        """Hash of the settings that can change rows."""
        return fingerprint(self.settings)


def result_settings(settings: Settings, profile: Profile) -> dict[str, object]:
    """Return the values of RESULT_SETTINGS."""
    values = {f"extract.{name}": value for name, value in to_builtins(settings.extract).items()}
    values["build.profile"] = profile
    values["entry_points"] = to_builtins(settings.entry_points)
    return {name: values[name] for names in RESULT_SETTINGS.values() for name in names}


def step_fingerprint(
    step: Step,
    repo_id: str,
    inputs: Mapping[str, str],
    rules: str,
) -> str:
    """Hash the inputs of a step for a repository; `inputs` is the source, or the previous steps' hashes."""
    return fingerprint({"step": step.name, "repo_id": repo_id, "made_from": inputs, "rules": rules})


def rule_fingerprints(
    steps: Sequence[Step], build_inputs: BuildInputs, tables: Sequence[Table]
) -> dict[str, str]:
    """Hash the code, contracts, versions and settings of each step and the steps before it.

    They are independent of the source: while they are unchanged, a refresh is sufficient. Each part has a
    hash of its own, so that `changed_rules` can name those that differ: "after=0f.. code=1e.. ids=..".
    """
    rules: dict[str, str] = {}
    for step in steps:
        parts: dict[str, object] = {
            "after": {name: rules[name] for name in step.after},
            "code": code_digest(step.name),
            "contracts": {name: rows_contract(catalog.table(name, tables)) for name in step.outputs},
            "ids": node_ids.ID_VERSION,
            "settings": {name: build_inputs.settings[name] for name in RESULT_SETTINGS.get(step.name, ())},
            "versions": build_inputs.witness_versions if step.name == EXTRACT else {},
        }
        rules[step.name] = " ".join(f"{name}={fingerprint(part)}" for name, part in parts.items())
    return rules


# What a plan calls the parts of the rules of a step, except for the steps before it.
RULE_PARTS = {
    "code": "its code",
    "contracts": "the contracts of its tables",
    "ids": "the recipe of ids",
    "settings": "settings",
    "versions": "versions of the witnesses",
}


def changed_rules(before: str | None, now: str) -> list[str]:
    """Name the parts of a step's own rules that differ.

    >>> changed_rules("after=1 code=1 settings=1", "after=2 code=2 settings=2")
    ['its code', 'settings']
    """
    if before is None or "=" not in before:
        # Not recorded, or by an older release, as one hash.
        return ["its rules"]
    old, new = (dict(part.split("=") for part in rules.split()) for rules in (before, now))
    return [text for name, text in RULE_PARTS.items() if old.get(name) != new.get(name)]


def fingerprint(value: object) -> str:
    """Hash JSON-serializable data; stable across processes."""
    return hashlib.sha256(json.encode(value, order="deterministic")).hexdigest()[:32]


def rows_contract(table: Table) -> dict[str, object]:
    """Return the parts of a table's contract that can change rows, and its gate: no docs, no layout."""
    return {
        "columns": [
            (each.name, each.ddl, each.nullable, each.semantic_type, each.default) for each in table.columns
        ],
        "primary_key": table.primary_key,
        "owner": table.owner,
        "inputs": table.inputs,
        "constraints": [(each.name, each.expression) for each in table.constraints],
        "gate": table.gate,
        "version": table.version,
    }


def catalog_hash(tables: Sequence[Table]) -> str:
    """Hash the row contracts of all tables."""
    return fingerprint({table.name: rows_contract(table) for table in tables})


@cache
def code_digest(step: str) -> str:
    """Hash the source files of the modules that a step uses."""
    root = Path(codeanatomy.__file__).parent
    paths = [root / part for part in (*STEP_CODE[step], *SHARED_CODE)]
    files = [file for part in paths for file in ([part] if part.suffix else part.rglob("*.py"))]
    digests = {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    return fingerprint(digests)
