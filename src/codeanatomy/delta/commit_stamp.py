"""Identify a commit: its transaction (run id, sequence) and the user metadata kept in Delta's history.

>>> encode_stamp(Commit("run-7", plan_fingerprint="8a1f"), "append")
'{"run_id":"run-7","plan_fingerprint":"8a1f","operation":"append"}'

Tests: `tests/spark/test_commit.py`.
"""

from __future__ import annotations

from msgspec import DecodeError, Struct, ValidationError, json, structs


class Commit(Struct, frozen=True, omit_defaults=True):
    """The identity of a commit; run id and sequence together are the transaction.

    A second commit of the same pair to a table is not made: it counts as a repetition of the first.
    """

    run_id: str
    # Increases with every commit of a run to the same table.
    sequence: int = 0
    plan_fingerprint: str | None = None
    # Versions of the tables from which the rows were computed.
    inputs: dict[str, int] = {}


class CommitStamp(Commit, frozen=True, omit_defaults=True):
    """The user metadata of a commit in Delta's history: its identity and the operation."""

    operation: str = ""


def encode_stamp(commit: Commit, operation: str) -> str:
    """Encode the user metadata by which a commit is found in the log again."""
    fields = {**structs.asdict(commit), "operation": operation}
    return json.encode(CommitStamp(**fields), order="deterministic").decode()


def decode_stamp(user_metadata: str | None) -> CommitStamp | None:
    """Decode the user metadata of a commit; None if this program did not write it."""
    try:
        return json.decode(user_metadata or "", type=CommitStamp)
    except (DecodeError, ValidationError):
        return None
