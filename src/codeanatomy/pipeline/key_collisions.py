"""Refuse definitions that share a key, before rows with equal ids are committed.

    refuse_equal_files(run)                        # of any run, before files are read
    refuse_equal_keys(run, repos, keys, owners)    # of whole graphs: their keys, and those of the lake
    refuse_refreshed_keys(run, changed, files, keys, owners)      # of refreshes: keys new in changed files

A key is 96 bits of a hash, so two definitions of a lake share one by chance about never (docs/ids.md), and by
intent with 2^48 hashes. The step fails with both owners:

>>> one, two = KeyOwner("k", "shop", "cart.py", "Cart.sum"), KeyOwner("k", "depot", "app.py", "f")
>>> refuse_equal([one, two])
Traceback (most recent call last):
codeanatomy.errors.KeyCollision: [CA037] key k is shared by f of app.py in depot, Cart.sum of cart.py in shop
  next: rename one of them, or build one repository under another name: keys are made of names

Files are compared first: rows of files with one id would be mixed by every step. Tasks send all keys to
the driver (16 bytes each), which looks for equal ones, and for those that definition nodes of other
repositories have in their ids. Only for these it reads the names. A refresh looks up only keys that its
changed files did not have before: most edits have none.

Tests: `tests/unit/pipeline/test_key_collisions.py`, `tests/spark/test_key_collisions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from codeanatomy.arrow import array, unpack_rows
from codeanatomy.catalog.spec import Column
from codeanatomy.delta.read.duck import lookup_connection, select_rows, sql_literal, translate_errors
from codeanatomy.delta.read.light import light_files
from codeanatomy.errors import KeyCollision
from codeanatomy.graph.rows import NODES
from codeanatomy.node_ids import KEY_CHARS, file_id, key_of
from codeanatomy.pipeline.context import Run
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
SHOWN_COLLISIONS = 3
WHOLE_MODULE = "the module"
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


def owner_rows(repo_id: str, keys: FileKeys) -> pa.RecordBatch:
    """Return the definitions of files with their keys; the driver reads them only if some are equal."""
    owners = [(key, repo_id, path, qualified) for path, each in keys for qualified, key in each.items()]
    columns = zip(*owners, strict=True) if owners else ((),) * len(KEY_COLUMNS)
    arrays = [array(column, list(values)) for column, values in zip(KEY_COLUMNS, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in KEY_COLUMNS])


def unpack_owners(stream: bytes) -> Iterator[KeyOwner]:
    """Yield the definitions in a piece of `KEY_OWNERS`."""
    for batch in unpack_rows(stream):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield KeyOwner(*row)


def pack_keys(keys: FileKeys) -> bytes:
    """Pack the keys of files, which the driver compares: all have the same length.

    >>> pack_keys([("a.py", {"": "AAAAAAAAAAEAAAAA"}), ("b.py", {"f": "__________-AAAAA"})])
    b'AAAAAAAAAAEAAAAA__________-AAAAA'
    """
    return "".join(key for _, each in keys for key in each.values()).encode()


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
        files = light_files(run.store.root, FILES, run.pins[FILES])
        rows = select_rows(run.store.root, FILES, files)
        query = (
            f"SELECT key, repo_id, path, '' FROM (SELECT *, {_key_sql('file_id')} AS key FROM ({rows}))"
            f" SEMI JOIN wanted USING (key) WHERE {_outside('repo_id', step.runs_for)}"
        )
        owners += [KeyOwner(*row) for row in _lookup(query, [owner.key for owner in owners])]
    refuse_equal(owners)


def refuse_equal_keys(
    run: Run, repositories: Collection[str], keys: Iterable[bytes], owners: Callable[[], Iterable[bytes]]
) -> None:
    """Raise KeyCollision if definitions of the graphs that are made share a key, or have one of the lake.

    `keys` and `owners` are pieces of `KEYS` and `KEY_OWNERS` of all files; the second are read only if keys
    are equal.
    """
    made, counts = _count_keys(keys)
    stored: list[KeyOwner] = []
    if run.base.repositories.keys() - set(repositories):
        stored = _stored_owners(run, made, _outside("repo_id", repositories))
    _refuse_alike(made[counts > 1], stored, owners)


def _count_keys(keys: Iterable[bytes]) -> tuple[Any, Any]:
    """Return the different keys as texts, and how often each occurs."""
    made, counts = np.unique(np.frombuffer(b"".join(keys), f"S{KEY_CHARS}"), return_counts=True)
    return made.astype(str), counts


def _refuse_alike(
    repeated: Iterable[str], stored: Sequence[KeyOwner], owners: Callable[[], Iterable[bytes]]
) -> None:
    equal = {*map(str, repeated)} | {owner.key for owner in stored}
    if equal:
        alike = [owner for stream in owners() for owner in unpack_owners(stream) if owner.key in equal]
        refuse_equal([*alike, *stored])


def refuse_refreshed_keys(
    run: Run,
    changed: Collection[str],
    files: Collection[str],
    keys: Iterable[bytes],
    owners: Callable[[], Iterable[bytes]],
) -> None:
    """Raise KeyCollision if a definition that is new in a changed file has the key of another one.

    `keys` and `owners` are those of all `files` that are redone, as in `refuse_equal_keys`.
    """
    made, counts = _count_keys(keys)
    stored: list[KeyOwner] = []
    if NODES in run.pins and changed:
        stays = f"({_outside('owner_file_id', sorted(changed))} OR owner_file_id IS NULL)"
        stored = _stored_owners(run, sorted({*made.tolist()} - _known_keys(run, sorted(files))), stays)
    _refuse_alike(made[counts > 1], stored, owners)


def _known_keys(run: Run, files: Sequence[str]) -> set[str]:
    """Return the keys that files have in the lake."""
    inside = f"owner_file_id IN ({', '.join(map(sql_literal, files))})"
    known = _lookup(f"SELECT DISTINCT {_key_sql('node_id')} FROM ({_nodes(run, files)}) WHERE {inside}")
    return {key for (key,) in known}


def _outside(column: str, values: Collection[str]) -> str:
    return f"{column} NOT IN ({', '.join(map(sql_literal, values))})" if values else "TRUE"


def _key_sql(column: str) -> str:
    return f"substr({column}, strpos({column}, ':') + 1)"


def _nodes(run: Run, file_ids: Sequence[str] | None = None) -> str:
    """Return the query for the definition nodes of the lake, or of data files with nodes of some files."""
    files = [
        file
        for file in light_files(run.store.root, NODES, run.pins[NODES])
        if file.partition.get("node_kind") in KEYED_KINDS
        and (file_ids is None or file.may_hold("owner_file_id", file_ids))
    ]
    return select_rows(run.store.root, NODES, files)


def _stored_owners(run: Run, keys: Sequence[str], condition: str) -> list[KeyOwner]:
    """Return the definitions in the lake with some keys, one for each file."""
    if NODES not in run.pins or not len(keys):
        return []
    query = (
        f"SELECT key, repo_id, path, min(coalesce(qualname, name, ''))"
        f" FROM (SELECT *, {_key_sql('node_id')} AS key FROM ({_nodes(run)}))"
        f" SEMI JOIN wanted USING (key) WHERE {condition} GROUP BY ALL"
    )
    return [KeyOwner(*row) for row in _lookup(query, keys)]


def _lookup(query: str, wanted: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a query, which may use a table `wanted` of keys."""
    with translate_errors(), lookup_connection() as connection:
        connection.register("wanted", pa.table({"key": pa.array(wanted, pa.string())}))
        rows = connection.execute(query).fetchall()
        connection.unregister("wanted")
    return rows
