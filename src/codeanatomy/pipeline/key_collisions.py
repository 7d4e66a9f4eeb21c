"""Refuse definitions that share a key, before rows with equal ids are committed.

    refuse_equal_files(run)                        # of any run, before files are read
    refuse_equal_keys(run, repos, numbers, owners) # of whole graphs: their keys, and those of the lake
    refuse_refreshed_keys(run, refresh, redone)    # of a refresh: keys that are new in the changed files

A key is 96 bits of a hash, so two definitions of a lake share one by chance about never (docs/ids.md), and by
intent with 2^48 hashes. The step fails with both owners:

>>> one, two = KeyOwner("k", "shop", "cart.py", "Cart.sum"), KeyOwner("k", "depot", "app.py", "f")
>>> refuse_equal([one, two])
Traceback (most recent call last):
codeanatomy.errors.KeyCollision: [CA037] key k is shared by f of app.py in depot, Cart.sum of cart.py in shop
  next: rename one of them, or build one repository under another name: keys are made of names

Files are compared first: rows of files with one id would be mixed by every step. Pass two sends
eight bytes of each key to the driver, sorts them, and compares them with the keys of repositories that are
not rebuilt, which are in the ids of definition nodes. Only for equal ones it reads the rest and the names. A
refresh looks up only keys that its changed files did not have before: most edits have none.

Estimate: 0.2 s for a build of 100,000 definitions, and 0.3 s for each million definitions in other
repositories; a refresh 20 ms, or a scan of these ids if definitions are new.

Tests: `tests/unit/pipeline/test_key_collisions.py`, `tests/spark/test_key_collisions.py`.
"""

from __future__ import annotations

from array import array as number_array
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from struct import iter_unpack
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.arrow import array, unpack_rows
from codeanatomy.catalog.spec import Column
from codeanatomy.delta.read.duck import (
    local_path,
    lookup_connection,
    select_rows,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.light import light_files
from codeanatomy.errors import KeyCollision
from codeanatomy.graph.rows import NODES
from codeanatomy.node_ids import KEY_CHARS, PREFIXES, file_id, key_of
from codeanatomy.pipeline.context import Refresh, Run
from codeanatomy.plan.changes import FILES
from codeanatomy.plan.steps import EXTRACT

# By path of a file, its definition keys by qualified path.
FileKeys: TypeAlias = Sequence[tuple[str, Mapping[str, str]]]
KEY_COLUMNS = tuple(
    Column(name, "string", doc)
    for name, doc in {
        "key": "Definition key.",
        "repo_id": "Repository.",
        "path": "Path of the file.",
        "qualified": "Qualified path of the definition.",
    }.items()
)
# Kinds of nodes that together have every definition key: a module has that of its file.
KEYED_KINDS = ("FILE", "CLASS", "FUNCTION", "SCOPE", "CODE_UNIT")
# So many keys are looked up one by one; more are compared with all keys of the lake.
FEW_KEYS = 1_000
BATCH_ROWS = 1_000_000
SHOWN_COLLISIONS = 3
WHOLE_MODULE = "the module"
# A number, and the rest of a key.
KEY_FORMAT = ">q4x"
KEY_SQL = f"substr(node_id, strpos(node_id, ':') + 1, {KEY_CHARS})"
HINT = "rename one of them, or build one repository under another name: keys are made of names"


class KeyOwner(NamedTuple):
    """A definition that has a key."""

    key: str
    repo_id: str
    path: str
    qualified: str

    def __str__(self) -> str:
        return f"{self.qualified or WHOLE_MODULE} of {self.path} in {self.repo_id}"


def refuse_equal(owners: Iterable[KeyOwner]) -> None:
    """Raise KeyCollision, with all owners, if two different definitions have one key."""
    by_key: dict[str, set[KeyOwner]] = {}
    for owner in owners:
        by_key.setdefault(owner.key, set()).add(owner)
    equal = {key: sorted(owners) for key, owners in sorted(by_key.items()) if len(owners) > 1}
    if not equal:
        return
    shown = [
        f"key {key} is shared by {', '.join(map(str, owners))}"
        for key, owners in list(equal.items())[:SHOWN_COLLISIONS]
    ]
    more = [f"and {len(equal) - SHOWN_COLLISIONS:,} more"] if len(equal) > SHOWN_COLLISIONS else []
    raise KeyCollision("; ".join([*shown, *more]), HINT)


def key_rows(repo_id: str, keys: FileKeys) -> pa.RecordBatch:
    """Return the keys of files as rows for `KEYS`."""
    owners = [(key, repo_id, path, qualified) for path, each in keys for qualified, key in each.items()]
    columns = zip(*owners, strict=True) if owners else ((),) * len(KEY_COLUMNS)
    arrays = [array(column, list(values)) for column, values in zip(KEY_COLUMNS, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in KEY_COLUMNS])


def pack_numbers(keys: FileKeys) -> bytes:
    """Pack the first eight bytes of the keys of files, which is what the driver compares."""
    return number_array("q", numbers_of(key for _, each in keys for key in each.values())).tobytes()


def unpack_keys(stream: bytes) -> Iterator[KeyOwner]:
    """Yield the definitions in a piece of `KEYS`."""
    return _owners_in(unpack_rows(stream))


def _owners_in(batches: Iterable[pa.RecordBatch]) -> Iterator[KeyOwner]:
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield KeyOwner(*row)


def numbers_of(keys: Iterable[str]) -> list[int]:
    """Return the first eight bytes of each key as a number.

    >>> numbers_of(["AAAAAAAAAAEAAAAA", "__________-AAAAA"])
    [1, -1]
    """
    return [number for (number,) in iter_unpack(KEY_FORMAT, b64decode("".join(keys), altchars=b"-_"))]


def refuse_equal_files(run: Run) -> None:
    """Raise KeyCollision if a file that is built for the first time has the id of another one."""
    step = next(each for each in run.plan.steps if each.name == EXTRACT)
    paths = {
        repo_id: [entry.path for entry in run.listed.listings[repo_id].entries] for repo_id in step.runs_for
    }
    paths |= {
        repo_id: [change.path for change in run.plan.changes[repo_id] if change.how == "added"]
        for repo_id in step.refreshes
    }
    owners = [
        KeyOwner(key_of(file_id(repo_id, path)), repo_id, path, "")
        for repo_id, listed in paths.items()
        for path in listed
    ]
    if owners and FILES in run.pins:
        owners += _stored_files(run, {owner.key for owner in owners}, step.runs_for)
    refuse_equal(owners)


def _stored_files(run: Run, keys: Collection[str], rebuilt: Collection[str]) -> list[KeyOwner]:
    """Return the files of the lake with some keys, except those of repositories that are rebuilt."""
    files = light_files(run.store.root, FILES, run.pins[FILES])
    rows = select_rows(local_path(run.store.root), FILES, files)
    wanted = pa.table({"file_id": [f"{PREFIXES['FILE']}:{key}" for key in keys]})
    with translate_errors(), lookup_connection() as connection:
        connection.register("wanted_files", wanted)
        query = (
            f"SELECT file_id, repo_id, path FROM ({rows}) SEMI JOIN wanted_files USING (file_id)"
            f" WHERE {_outside('repo_id', rebuilt)}"
        )
        stored = connection.execute(query).fetchall()
        connection.unregister("wanted_files")
    return [KeyOwner(key_of(file), repo_id, path, "") for file, repo_id, path in stored]


def refuse_equal_keys(
    run: Run, repositories: Collection[str], numbers: Iterable[bytes], owners: Callable[[], Iterable[bytes]]
) -> None:
    """Raise KeyCollision if definitions of the graphs that are made share a key, or have one of the lake.

    `numbers` and `owners` are what `pack_numbers` and `key_rows` return for all files; the second is used
    only if numbers are equal.
    """
    made = pa.array(np.frombuffer(b"".join(numbers), np.int64))
    ordered = made.take(pc.sort_indices(made))
    equal = set(ordered[1:].filter(pc.equal(ordered[1:], ordered[:-1])).to_pylist())
    stays = _outside("repo_id", repositories)
    if run.base.repositories.keys() - set(repositories):
        equal |= _stored_numbers(run, made, stays)
    if equal:
        alike = [
            owner
            for stream in owners()
            for owner in unpack_keys(stream)
            if numbers_of([owner.key])[0] in equal
        ]
        refuse_equal([*alike, *_stored_owners(run, {owner.key for owner in alike}, stays)])


def refuse_refreshed_keys(run: Run, refresh: Refresh, redone: Iterable[KeyOwner]) -> None:
    """Raise KeyCollision if a definition that is new in a changed file has the key of another one."""
    changed = refresh.read
    owners = [owner for owner in redone if owner.path in changed]
    files = sorted(refresh.changed)
    if NODES in run.pins and owners:
        inside = f"owner_file_id IN ({', '.join(map(sql_literal, files))})"
        known = set(_stored_keys(run, inside, files))
        new = {owner.key for owner in owners} - known
        stays = f"({_outside('owner_file_id', files)} OR owner_file_id IS NULL)"
        if len(new) > FEW_KEYS:
            equal = _stored_numbers(run, pa.array(numbers_of(new), pa.int64()), stays)
            new = {key for key in new if numbers_of([key])[0] in equal}
        owners += _stored_owners(run, new, stays)
    refuse_equal(owners)


def _outside(column: str, values: Collection[str]) -> str:
    return f"{column} NOT IN ({', '.join(map(sql_literal, values))})" if values else "TRUE"


def _nodes(run: Run, file_ids: Sequence[str] | None = None) -> str:
    """Return the query for the definition nodes of the lake, or of data files with nodes of some files."""
    files = [
        file
        for file in light_files(run.store.root, NODES, run.pins[NODES])
        if file.partition.get("node_kind") in KEYED_KINDS
        and (file_ids is None or file.may_hold("owner_file_id", file_ids))
    ]
    return select_rows(local_path(run.store.root), NODES, files)


def _stored_keys(run: Run, condition: str, file_ids: Sequence[str] | None = None) -> Iterator[str]:
    """Yield the definition keys in the lake, some several times."""
    query = f"SELECT {KEY_SQL} AS key FROM ({_nodes(run, file_ids)}) WHERE {condition}"
    with translate_errors(), lookup_connection() as connection:
        keys = connection.sql(f"SELECT key FROM ({query}) WHERE length(key) = {KEY_CHARS}")
        for batch in keys.to_arrow_reader(BATCH_ROWS):
            yield from batch.column(0).to_pylist()


def _stored_numbers(run: Run, numbers: pa.Array, condition: str) -> set[int]:
    """Return those of some numbers that keys of the lake have, too."""
    equal: set[int] = set()
    if NODES not in run.pins:
        return equal
    keys = _stored_keys(run, condition)
    while batch := list(islice(keys, BATCH_ROWS)):
        stored = pa.array(numbers_of(batch), pa.int64())
        equal.update(stored.filter(pc.is_in(stored, value_set=numbers)).to_pylist())
    return equal


def _stored_owners(run: Run, keys: Collection[str], condition: str) -> list[KeyOwner]:
    """Return the definitions in the lake with some keys, one for each file."""
    if NODES not in run.pins or not keys:
        return []
    ids = sorted(f"{PREFIXES[kind]}:{key}" for kind in KEYED_KINDS for key in keys)
    listed = ", ".join(map(sql_literal, ids))
    query = (
        f"SELECT {KEY_SQL}, repo_id, path, min(coalesce(qualname, name, '')) FROM ({_nodes(run)})"
        f" WHERE node_id IN ({listed}) AND {condition} GROUP BY ALL"
    )
    with translate_errors(), lookup_connection() as connection:
        return [KeyOwner(*row) for row in connection.execute(query).fetchall()]
