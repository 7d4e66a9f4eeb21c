"""Who commits, and from what: the transaction of a commit, and what Delta's history says of it.

>>> stamp(Commit("run-7", plan_fingerprint="8a1f"), "append")
'{"run_id":"run-7","plan_fingerprint":"8a1f","operation":"append"}'

Tests: `tests/spark/test_commit.py`.
"""

from __future__ import annotations

from msgspec import DecodeError, Struct, ValidationError, json, structs


class Commit(Struct, frozen=True, omit_defaults=True):
    """Who commits and from what; run id and sequence together are the transaction.

    A second commit of the same pair to a table is not made: it is taken for the first, repeated.
    """

    run_id: str
    # Grows with every commit of a run to the same table.
    sequence: int = 0
    plan_fingerprint: str | None = None
    # Versions of the tables the rows were computed from.
    inputs: dict[str, int] = {}


class CommitStamp(Commit, frozen=True, omit_defaults=True):
    """A commit's metadata in Delta's history: who committed, from what, and by which verb."""

    operation: str = ""


def encode_stamp(commit: Commit, operation: str) -> str:
    """What is written into a commit, to find it again."""
    fields = {**structs.asdict(commit), "operation": operation}
    return json.encode(CommitStamp(**fields), order="deterministic").decode()


def decode_stamp(user_metadata: str | None) -> CommitStamp | None:
    """What a commit says of itself; none if it is not one of ours."""
    try:
        return json.decode(user_metadata or "", type=CommitStamp)
    except (DecodeError, ValidationError):
        return None
