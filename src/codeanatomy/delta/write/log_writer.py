"""Make a version of a table by a log entry of our own: the base of the writers that need no Spark.

    class Undo(LogWriter):
        def write(self, change, current):
            return self.write_entry(change, current, actions, metrics)      # Conflict if another was faster

Subclasses decide on the actions: data files (`delta.write.file_commits`), an earlier version
(`delta.write.restore`), other features (`delta.write.table_features`). They run within `delta.write.commit`.

Tests: `tests/spark/test_conformance.py` compares the versions of all of them with what other readers see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.gate import check_gate
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.protocol import has_simple_protocol
from codeanatomy.delta.log.versions import TableVersion, describe_new
from codeanatomy.delta.store_policy import is_local
from codeanatomy.delta.write.commit import Conflict, PendingCommit
from codeanatomy.errors import CodeAnatomyError, NeedsSpark

# The name of Delta's exception for the same conflict.
FASTER = "ConcurrentWriteException"


class LogWriter:
    """A writer of log entries; its files are there before the entry names them."""

    errors: tuple[type[Exception], ...] = (pa.ArrowException, ValueError)
    # Delta's name of the operation in the history, and its parameters.
    delta_operation: str = "WRITE"
    parameters: Mapping[str, str] | None = None
    # Whether the transaction is recorded, so that it is never made twice.
    is_recorded = True
    # Whether an entry of this writer may be in the log, so that its files must stay.
    may_be_logged = False
    # The version that this writer has made, with its commitInfo; None: see the log.
    made: tuple[int, Mapping[str, Any]] | None = None

    def check(self) -> None:
        """Do nothing; a subclass may refuse rows."""

    def settle(self, change: PendingCommit) -> None:
        """Check the gate of the new table."""
        created = describe_new(change.table, change.location)
        check_gate(change.table, created.info, change.store.record)

    def explain(self, problem: Exception) -> CodeAnatomyError | str:
        """Return the message of an error."""
        return str(problem)

    def write_entry(
        self,
        change: PendingCommit,
        current: TableVersion | None,
        actions: Sequence[Mapping[str, Any]],
        *,
        files: Sequence[DataFile] = (),
        removal: Mapping[str, int] | None = None,
        unused: Iterable[str] = (),
    ) -> bool:
        """Write the entry of the next version; if another writer was faster, delete `unused`, raise Conflict.

        `files` are the data files with new rows, `removal` the metrics of what leaves the table, `unused` the
        files that were written for this attempt only.
        """
        commit_info = entries.commit_info_action(
            change.stamp,
            files,
            removal or {},
            removing=bool(removal),
            operation=self.delta_operation,
            parameters=self.parameters,
        )
        transaction = [entries.transaction_action(change.commit)] if self.is_recorded else []
        version = 0 if current is None else current.info.version + 1
        interval = change.table.upkeep.checkpoint_interval
        entry = [commit_info, *actions, *transaction]
        # Also if this fails: a store may have created the entry although its answer was lost.
        self.may_be_logged = True
        if not entries.write_entry(change.location, version, entry, interval):
            self.may_be_logged = False
            folder_of(change.location).delete(unused)
            raise Conflict(FASTER)
        if not is_local(change.location):
            # An object store creates an entry once, and every request counts. In a folder, Spark's writer can
            # overwrite it.
            self.made = version, commit_info["commitInfo"]
        return True


def require_simple(
    table: Table, current: TableVersion, hint: str = "run the command with a Spark session"
) -> None:
    """Raise NeedsSpark for a table that only Spark can write."""
    if not has_simple_protocol(current.info):
        names = ", ".join(current.info.writer_features)
        raise NeedsSpark(f"{table.name} has features that only Spark writes: {names}", hint)
