"""Derive the steps of a run from the catalogue, and compute their fingerprints.

>>> relate = steps_of(catalog.TABLES)[2]
>>> relate.name, relate.outputs, relate.after
('relate', ('relations_v1', 'relate_diagnostics_v1', 'relate_programs_v1'), ('extract',))

A step is a stage; its outputs are the tables of the stage. Two executions of a step with the same fingerprint
give the same rows of a repository. A fingerprint covers:

    inputs      the fingerprints of the steps whose tables it reads; for the first step, the source
    rules       its code (`plan.step_code`), the contracts of its tables, versions of ids and witnesses
    settings    those that can change rows (RESULT_SETTINGS), and no others

Spark's query plan is not included: for a step in Python it contains only MapInArrow, while the code contains
everything, and code can be hashed without starting a JVM. So a build without changes ends in a second. Table
versions are pinned and recorded, and not hashed: the same source has the same fingerprints in every lake.
Tests: `tests/unit/plan/test_steps.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from msgspec import Struct, json, to_builtins

from codeanatomy import catalog, node_ids
from codeanatomy.catalog.kinds import Profile
from codeanatomy.catalog.spec import Table
from codeanatomy.config import Settings
from codeanatomy.errors import UnknownName
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.plan.step_code import code_digest

EXTRACT, NORMALIZE, RELATE, GRAPH = "extract", "normalize", "relate", "graph"
# Prefix of the fingerprint of a step that the next build must repeat, because a table of it was restored.
RESTORED_PREFIX = "restored-"
# Stages that are steps of a build.
STAGES = (EXTRACT, NORMALIZE, RELATE, GRAPH)
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
    # Failures of extractors are in a table of the meta stage.
    outputs = [table.name for table in own] + ([FAILURES] if name == EXTRACT else [])
    before = {stage_of[each] for each in inputs}
    return Step(name, tuple(inputs), tuple(outputs), tuple(each for each in STAGES if each in before))


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


def step_fingerprint(step: Step, repo_id: str, inputs: Mapping[str, str], rules: str) -> str:
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
