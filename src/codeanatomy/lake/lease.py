"""Grant write access to a lake to one run at a time: a lease row in the lake, with heartbeat and journal.

    with acquire("lake", "run-7", ["requests"], wait=True, report=print, base_run_id="run-6") as lease:
        for step in lease.before.done if lease.before else ():     # steps finished by a dead or failed run
            ...
        lease.check()                                              # after every step: raises if it was taken
        step = StepDone("extract", {"requests": "8a1f..."}, {"requests": {"ast_files_v1": 18}}, pins)
        lease.record_step(step)

The table has one row, and every change (acquire, heartbeat, record a step, release) overwrites it in a commit
for exactly the next version: of two concurrent attempts one wins, and the other reads who has won. Leaving
the block releases the lease; after an exception the journal stays for the next run.

Another run may take the lease if it was released, if its process was on this machine and has ended, or if its
last heartbeat is older than `ttl_seconds` by that run's clock. Clocks must agree to within the ttl less the
interval of two heartbeats: a holder whose clock is further behind is considered dead while it is alive (its
`check` detects it); if its clock is ahead, others wait that much longer after its death. A clock that jumps
forward during a build can cost the lease, one that jumps backward cannot. A holder that was suspended for
longer than the ttl has lost the lease only if another run took it.

Data files of old heartbeats are deleted now and then and at release; a reader whose file is gone reads again.

Tests: `tests/unit/lake/test_lease.py`.
"""

from __future__ import annotations

import atexit
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from uuid import uuid4

from msgspec import MsgspecError, Struct, convert, structs, to_builtins

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.replay import LOG, list_log, read_actions, replay_log
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.read.open_table import location, newest_version
from codeanatomy.delta.write.restore import restart_table
from codeanatomy.delta.write.small_rows import overwrite_small
from codeanatomy.errors import (
    CodeAnatomyError,
    CommitConflict,
    LeaseHeld,
    LeaseLost,
    StorageFailure,
    StoreUnavailable,
    TableMissing,
)

TABLE = "run_lease"

POLL_SECONDS = 1.0
REPORT_SECONDS = 10.0
# Heartbeats between two vacuums: each leaves a file of a few kilobytes.
VACUUM_BEATS = 20
# Attempts of a commit or a read that collides with the holder's vacuum.
ATTEMPTS = 5
# Seconds to wait at exit for a heartbeat in progress.
LAST_BEAT_SECONDS = 10.0

# Names of log entries and checkpoints, below the folder of the table.
VERSION_PREFIX = re.compile(rf"{LOG}/(\d{{20}})\.")
MS_PER_HOUR = 3_600_000

RETRY_HINT = "run the command again; published runs are not affected"

# Identifies this process on systems where the start time of a process cannot be read.
_TOKEN = uuid4().hex


class StepDone(Struct, frozen=True):
    """A step that a run has finished: fingerprints of its inputs, row counts and table versions."""

    step_name: str
    # By repository.
    fingerprints: dict[str, str]
    # By repository, then by table.
    rows: dict[str, dict[str, int]]
    # The version of each table after the step.
    pins: dict[str, int]
    # By repository: the dead run that did the step, if it was not this one.
    made_by: dict[str, str] = {}


class JournalStep(Struct, frozen=True):
    """A step and a repository, as stored in the lease row."""

    step_name: str
    repo_id: str
    fingerprint: str
    made_by: str | None = None
    rows: dict[str, int] = {}


class JournalPin(Struct, frozen=True):
    """A step and a table it has written, as stored in the lease row."""

    step_name: str
    table_name: str
    version: int


class LeaseRow(Struct, frozen=True, kw_only=True):
    """The row of the lease table: the current or last writer of the lake, and its journal."""

    run_id: str
    state: Literal["held", "released"]
    host: str
    process: str
    repo_ids: tuple[str, ...] = ()
    acquired_at: datetime
    heartbeat_at: datetime
    ttl_seconds: int
    base_run_id: str | None = None
    steps: tuple[JournalStep, ...] = ()
    pins: tuple[JournalPin, ...] = ()

    @property
    def done(self) -> tuple[StepDone, ...]:
        """Return the finished steps, in order."""
        done = []
        names = [*(step.step_name for step in self.steps), *(pin.step_name for pin in self.pins)]
        for name in dict.fromkeys(names):
            steps = [step for step in self.steps if step.step_name == name]
            done.append(
                StepDone(
                    name,
                    {step.repo_id: step.fingerprint for step in steps},
                    {step.repo_id: step.rows for step in steps},
                    {pin.table_name: pin.version for pin in self.pins if pin.step_name == name},
                    {step.repo_id: step.made_by or self.run_id for step in steps},
                )
            )
        return tuple(done)

    def with_step(self, done: StepDone) -> LeaseRow:
        """Return the row with a step added; a step of the same name is replaced."""
        name = done.step_name
        steps = [
            JournalStep(name, repo_id, each, done.made_by.get(repo_id), done.rows.get(repo_id, {}))
            for repo_id, each in done.fingerprints.items()
        ]
        pins = [JournalPin(name, table, version) for table, version in done.pins.items()]
        return structs.replace(
            self,
            steps=(*(step for step in self.steps if step.step_name != name), *steps),
            pins=(*(pin for pin in self.pins if pin.step_name != name), *pins),
        )

    @property
    def holder(self) -> str:
        """Describe the writer for messages."""
        pid = _parts(self.process).get("pid", "?")
        return (
            f"run {self.run_id} since {self.acquired_at:%Y-%m-%d %H:%M:%S} UTC "
            f"(host {self.host}, process {pid}), building {', '.join(self.repo_ids)}"
        )


def read_lease(root: str) -> LeaseRow | None:
    """Read the lease row of a lake; None if the lake was never written."""
    return _newest(root)[1]


def is_stale(row: LeaseRow, now: datetime) -> bool:
    """Return whether another run may take the lease: released, expired, or its process has ended."""
    expired = now - row.heartbeat_at > timedelta(seconds=row.ttl_seconds)
    return row.state == "released" or expired or _has_ended(row.process)


def acquire(
    root: str,
    run_id: str,
    repo_ids: Sequence[str],
    *,
    wait: bool,
    report: Callable[[str], None],
    base_run_id: str | None,
    ttl_seconds: int = 120,
    beat_seconds: float = 15,
) -> Lease:
    """Acquire the lease of a lake; while another run holds it, wait or (`wait` false) raise LeaseHeld.

    `report` receives a message every REPORT_SECONDS while waiting.
    """
    reported_at = -REPORT_SECONDS
    while True:
        version, before = _newest(root)
        now = _now()
        if before is None and version >= 0:
            # Its row cannot be read, so no run can extend it.
            version = restart_table(LakeTables(root), TABLE, Commit(run_id), version)
        if before is None or is_stale(before, now):
            row = LeaseRow(
                run_id=run_id,
                state="held",
                host=socket.gethostname(),
                process=_this_process(),
                repo_ids=tuple(repo_ids),
                acquired_at=now,
                heartbeat_at=now,
                ttl_seconds=ttl_seconds,
                base_run_id=base_run_id,
            )
            # If another run was faster, its row is read in the next round.
            with suppress(CommitConflict):
                version = _overwrite(root, row, version)
                return Lease(root, row, version, before, beat_seconds, report)
            continue
        if not wait:
            raise LeaseHeld(
                f"lake {root} is being written by {before.holder}",
                "wait until it has finished, or stop that run",
            )
        if time.monotonic() - reported_at >= REPORT_SECONDS:
            reported_at = time.monotonic()
            report(f"waiting: lake {root} is being written by {before.holder}")
        time.sleep(POLL_SECONDS)


class Lease:
    """Exclusive write access to a lake, kept alive by a heartbeat thread."""

    def __init__(
        self,
        root: str,
        row: LeaseRow,
        version: int,
        before: LeaseRow | None,
        beat_seconds: float,
        report: Callable[[str], None],
    ) -> None:
        # The previous row: its steps were finished by a dead or failed run.
        self.before = before
        self._root = root
        self._row = row
        self._version = version
        self._report = report
        # Files that were removed before this version are deleted.
        self._vacuumed = version
        # Why the lease is no longer held; None while it is.
        self._lost_reason: str | None = None
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, args=(beat_seconds,), name="codeanatomy-lease", daemon=True
        )
        self._thread.start()
        # A thread inside of a library at interpreter shutdown would abort the process.
        atexit.register(self._stop_heartbeat)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release(keep_journal=kind is not None)

    def set_base_run(self, base_run_id: str | None) -> None:
        """Set the published run on which this one builds, which may have changed while it waited."""
        self._change(lambda row: structs.replace(row, base_run_id=base_run_id))

    def record_step(self, done: StepDone) -> None:
        """Record a finished step in the journal; a step of the same name is replaced."""
        self._change(lambda row: row.with_step(done))

    def check(self) -> None:
        """Raise LeaseLost if another run has the lease, or could take it because the heartbeat failed."""
        if self._lost_reason is None and is_stale(self._row, _now()):
            try:
                # It is expired, but perhaps not taken yet.
                self._change(lambda row: row)
            except (CommitConflict, StorageFailure) as problem:
                why = f"its last heartbeat was at {self._row.heartbeat_at:%H:%M:%S} UTC: {problem.message}"
                raise self._lost(why, problem.hint) from problem
        if self._lost_reason is not None:
            raise self._lost(self._lost_reason)

    def release(self, *, keep_journal: bool) -> None:
        """Release the lease; keep the journal for the next run if this one did not publish.

        If the release cannot be written, the end of the process or of the ttl has the same effect.
        """
        self._stop_heartbeat()
        atexit.unregister(self._stop_heartbeat)
        if self._lost_reason is not None or self._thread.is_alive():
            return
        kept = {} if keep_journal else {"steps": (), "pins": ()}
        try:
            self._change(lambda row: structs.replace(row, state="released", **kept))
            self._vacuum()
        except LeaseLost:
            return
        except CodeAnatomyError as problem:
            self._report(f"the lease of {self._root} could not be released: {problem.message}")
        self._lost_reason = "it was released"

    def _beat(self, seconds: float) -> None:
        beats = 0
        while not self._stop.wait(seconds):
            try:
                self._change(lambda row: row)
                beats += 1
                if beats % VACUUM_BEATS == 0:
                    self._vacuum()
            except LeaseLost:
                return
            except CodeAnatomyError:
                # The cause, such as a full disk, may go away; `check` raises when the ttl is over.
                continue

    def _change(self, change: Callable[[LeaseRow], LeaseRow]) -> None:
        """Overwrite the row, which is also a heartbeat."""
        with self._lock:
            for _ in range(ATTEMPTS):
                if self._lost_reason is not None:
                    raise self._lost(self._lost_reason)
                # Never before `acquired_at`, even if the clock was set back.
                now = max(_now(), self._row.acquired_at)
                row = structs.replace(change(self._row), heartbeat_at=now)
                try:
                    self._version = _overwrite(self._root, row, self._version)
                except CommitConflict:
                    self._check_owner()
                else:
                    self._row = row
                    return
        raise CommitConflict(
            f"the lease of {self._root} was changed {ATTEMPTS} times in a row by another process",
            "stop the other process that writes to the lake",
        )

    def _check_owner(self) -> None:
        """Read the newest row: either the version has moved on by a vacuum, or the lease is lost."""
        version, current = _newest(self._root)
        row = self._row
        if current is None:
            self._lost_reason = "its row is gone"
        elif (current.run_id, current.process, current.acquired_at) != (
            row.run_id,
            row.process,
            row.acquired_at,
        ):
            self._lost_reason = f"it is held by {current.holder}"
        else:
            self._version = version

    def _vacuum(self) -> None:
        """Delete the files of older heartbeats, and log entries before the last checkpoint.

        These are files that an entry of this lease has removed, and old ones: others may be of a run that is
        about to commit them.
        """
        with self._lock, suppress(CodeAnatomyError, MsgspecError, OSError, ValueError):
            place, upkeep = location(self._root, TABLE), catalog.table(TABLE).upkeep
            listing = list_log(place)
            adds = replay_log(place, listing.newest, listing).adds
            fresh = (number for number in listing.entries if number >= self._vacuumed)
            actions = (action for number in fresh for action in read_actions(place, number))
            removed = {action.remove.path for action in actions if action.remove}
            # By the clock of the store.
            now = listing.entries[listing.newest].modified_ms
            floor = listing.checkpoint_before(listing.newest)
            folder, unused = folder_of(place), list[str]()
            for file in folder.list_tree():
                hours = (now - file.modified_ms) / MS_PER_HOUR
                version = VERSION_PREFIX.match(file.name)
                if version:
                    is_unused = int(version[1]) < floor and hours > upkeep.log_hours
                else:
                    is_old = file.name in removed or hours > upkeep.vacuum_hours
                    # Files of the log, such as sidecars of checkpoints, are in a folder that begins with _.
                    is_data = file.name.endswith(".parquet") and not file.name.startswith("_")
                    is_unused = is_old and is_data and file.name not in adds
                if is_unused:
                    unused.append(file.name)
            folder.delete(unused)
            self._vacuumed = listing.newest

    def _stop_heartbeat(self) -> None:
        self._stop.set()
        self._thread.join(LAST_BEAT_SECONDS)

    def _lost(self, why: str, hint: str = RETRY_HINT) -> LeaseLost:
        return LeaseLost(f"run {self._row.run_id} has lost the lease of {self._root}: {why}", hint)


def _newest(root: str) -> tuple[int, LeaseRow | None]:
    """Return the newest version of the lease table (-1: none) and its row; None if it cannot be read."""
    for attempt in range(ATTEMPTS):
        try:
            version = newest_version(root, TABLE)
            rows = light_table(root, TABLE, catalog.table(TABLE).column_names, version=version)
        except TableMissing:
            return -1, None
        except StoreUnavailable:
            raise
        except StorageFailure:
            if attempt == ATTEMPTS - 1:
                return newest_version(root, TABLE), None
            # The holder has deleted the file in the meantime: there is a newer version.
            time.sleep(0.05 * attempt)
        else:
            break
    records = rows.to_pylist(maps_as_pydicts="strict")
    # Null fields have a default.
    cells = [{name: value for name, value in row.items() if value is not None} for row in records]
    return version, convert(cells[0], LeaseRow) if cells else None


def _overwrite(root: str, row: LeaseRow, after: int) -> int:
    """Replace the row of version `after`; raise CommitConflict if the table is at another version."""
    cells = to_builtins(row, builtin_types=(datetime,))
    return overwrite_small(
        root, catalog.table(TABLE), [cells], Commit(row.run_id, sequence=after + 1), after=after
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _this_process() -> str:
    """Identify this process across machines and reboots."""
    pid = os.getpid()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").stat().st_ino
        start = _start(pid)
    except OSError:
        # Others cannot check whether it has ended: its ttl has to expire.
        return f"token={_TOKEN} pid={pid}"
    return f"boot={boot} space={space} pid={pid} start={start}"


def _has_ended(process: str) -> bool:
    """Return whether a process ran on this machine and has ended."""
    other, this = _parts(process), _parts(_this_process())
    if "boot" not in this or any(other.get(name) != this[name] for name in ("boot", "space")):
        return False
    try:
        return _start(int(other["pid"])) != other["start"]
    except OSError:
        # The process of another user may be hidden; a signal that it may not get shows that it exists.
        try:
            os.kill(int(other["pid"]), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


def _parts(process: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in process.split() if "=" in part)


def _start(pid: int) -> str:
    """Return the start time of a process in ticks since boot; empty for one that has ended."""
    # The process name, in parentheses, may contain any character.
    state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]
