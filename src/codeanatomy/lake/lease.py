"""One writer per lake: a lease that is a row of the lake itself, with a heartbeat and a journal of the run.

    with acquire("lake", "run-7", ["requests"], wait=True, report=print, base_run_id="run-6") as lease:
        for step in lease.before.done if lease.before else ():     # what a dead or failed run has finished
            ...
        lease.check()                                              # after every step: is it still ours?
        lease.record_step(StepDone("extract", {"requests": "8a1f..."}, {"requests": {"ast_files_v1": 18}}, pins))

The table has one row, and every change of it (to acquire, to beat, to note a step, to release) overwrites
that row in a commit for exactly the next version: of two that try at once one wins and the other learns who
it was. Leaving the block releases the lease; after an exception the journal stays for the next run.

Others may take the lease when it was released, when its process was on this machine and is gone, or when its
last beat is older than its `ttl_seconds` by their own clock. That assumes clocks which agree to within ttl
less the time between two beats: a holder whose clock is further behind is taken for dead while it lives (its
`check` notices), one whose clock is ahead is waited for so much longer after its death. A clock that jumps
forward during a build can cost the lease, one that jumps backward cannot. A holder that was stopped for
longer than ttl has lost the lease only if somebody took it.

Data files of old beats are deleted while beating and at release; a reader whose file is gone reads again.

Tests: `tests/unit/lake/test_lease.py`.
"""

from __future__ import annotations

import atexit
import os
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

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from msgspec import Struct, convert, structs, to_builtins

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.light import light_table, location, newest_version
from codeanatomy.delta.store_policy import deltalake_options
from codeanatomy.delta.write.small import overwrite_small
from codeanatomy.errors import (
    CodeAnatomyError,
    CommitConflict,
    LeaseHeld,
    LeaseLost,
    StorageFailure,
    TableMissing,
)

TABLE = "run_lease"

POLL_SECONDS = 1.0
TELL_SECONDS = 10.0
# Beats after which their files are deleted: each leaves one of a few kilobytes.
TIDY_BEATS = 20
# Times a commit or a read is tried that meets the tidying of the holder.
ATTEMPTS = 5
# Seconds a beat that is under way may take before the process ends without it.
LAST_BEAT_SECONDS = 10.0

# A token for systems on which processes cannot be told apart by their start.
_TOKEN = uuid4().hex


class StepDone(Struct, frozen=True):
    """A step that a run has finished: what it was made from, and what it left."""

    step_name: str
    # By repository.
    fingerprints: dict[str, str]
    # By repository, by table.
    rows: dict[str, dict[str, int]]
    # The version that each table was left at.
    pins: dict[str, int]
    # The run that did it, by repository, where it was another one that had died.
    made_by: dict[str, str] = {}


class JournalStep(Struct, frozen=True):
    """A step and a repository, as the row has them."""

    step_name: str
    repo_id: str
    fingerprint: str
    made_by: str | None = None
    rows: dict[str, int] = {}


class JournalPin(Struct, frozen=True):
    """A step and a table it has written, as the row has them."""

    step_name: str
    table_name: str
    version: int


class LeaseRow(Struct, frozen=True, kw_only=True):
    """The row: who writes to the lake, or did last, and how far it is."""

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
        """The steps that are finished, in the order in which they were."""
        names = [*(step.step_name for step in self.steps), *(pin.step_name for pin in self.pins)]
        return tuple(map(self._step, dict.fromkeys(names)))

    def _step(self, name: str) -> StepDone:
        steps = [step for step in self.steps if step.step_name == name]
        return StepDone(
            name,
            {step.repo_id: step.fingerprint for step in steps},
            {step.repo_id: step.rows for step in steps},
            {pin.table_name: pin.version for pin in self.pins if pin.step_name == name},
            {step.repo_id: step.made_by or self.run_id for step in steps},
        )

    def with_step(self, done: StepDone) -> LeaseRow:
        """The row with a step added, or put in the place of the step of that name."""
        steps = [
            JournalStep(
                done.step_name, repo_id, fingerprint, done.made_by.get(repo_id), done.rows.get(repo_id, {})
            )
            for repo_id, fingerprint in done.fingerprints.items()
        ]
        pins = [JournalPin(done.step_name, name, version) for name, version in done.pins.items()]
        return structs.replace(
            self,
            steps=(*(step for step in self.steps if step.step_name != done.step_name), *steps),
            pins=(*(pin for pin in self.pins if pin.step_name != done.step_name), *pins),
        )

    @property
    def holder(self) -> str:
        """Who it is, for people."""
        pid = _parts(self.process).get("pid", "?")
        return (
            f"run {self.run_id} since {self.acquired_at:%Y-%m-%d %H:%M:%S} UTC "
            f"(host {self.host}, process {pid}), building {', '.join(self.repo_ids)}"
        )


def read_lease(root: str) -> LeaseRow | None:
    """The row of a lake; none where nobody has ever written."""
    return _newest(root)[1]


def is_stale(row: LeaseRow, now: datetime) -> bool:
    """Whether others may take it: released, silent for longer than its ttl, or its process is gone."""
    silent = now - row.heartbeat_at > timedelta(seconds=row.ttl_seconds)
    return row.state == "released" or silent or _gone(row.process)


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
    """Get the lease of a lake; while somebody else has it, wait or (`wait` false) raise LeaseHeld."""
    told = -TELL_SECONDS
    while True:
        version, before = _newest(root)
        now = _now()
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
            # Somebody else was faster: who it was is read in the next round.
            with suppress(CommitConflict):
                version = _overwrite(root, row, version)
                return Lease(root, row, version, before, beat_seconds, report)
            continue
        if not wait:
            raise LeaseHeld(
                f"lake {root} is being written by {before.holder}", "wait until it is done, or stop that run"
            )
        if time.monotonic() - told >= TELL_SECONDS:
            told = time.monotonic()
            report(f"waiting: lake {root} is being written by {before.holder}")
        time.sleep(POLL_SECONDS)


class Lease:
    """The right to write to a lake, for as long as its heart beats."""

    def __init__(
        self,
        root: str,
        row: LeaseRow,
        version: int,
        before: LeaseRow | None,
        beat_seconds: float,
        report: Callable[[str], None],
    ) -> None:
        # The row that was there: its steps are what a dead or failed run has finished.
        self.before = before
        self._root = root
        self._row = row
        self._version = version
        self._report = report
        # Why it is not ours any more.
        self._over: str | None = None
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, args=(beat_seconds,), name="codeanatomy-lease", daemon=True
        )
        self._thread.start()
        # A thread that is in the storage library when the interpreter goes away would abort the process.
        atexit.register(self._halt)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release(keep_journal=kind is not None)

    def set_base_run(self, base_run_id: str | None) -> None:
        """Say which published run this one builds on: that may have changed while it waited."""
        self._change(lambda row: structs.replace(row, base_run_id=base_run_id))

    def record_step(self, done: StepDone) -> None:
        """Write into the journal that a step is done; one of the same name is replaced."""
        self._change(lambda row: row.with_step(done))

    def check(self) -> None:
        """Raise LeaseLost if somebody else has the lease, or could have because no beat went through."""
        if self._over is None and is_stale(self._row, _now()):
            try:
                # Nobody may have noticed.
                self._change(lambda row: row)
            except (CommitConflict, StorageFailure) as problem:
                why = f"its last beat was at {self._row.heartbeat_at:%H:%M:%S} UTC: {problem.message}"
                raise self._lost(why, problem.hint) from problem
        if self._over is not None:
            raise self._lost(self._over)

    def release(self, *, keep_journal: bool) -> None:
        """Give it back; the journal is for the next run, if this one was not able to publish.

        Where that cannot be written the end of the process, or of its ttl, does the same.
        """
        self._halt()
        atexit.unregister(self._halt)
        if self._over is not None or self._thread.is_alive():
            return
        kept = {} if keep_journal else {"steps": (), "pins": ()}
        try:
            self._change(lambda row: structs.replace(row, state="released", **kept))
            self._tidy()
        except LeaseLost:
            return
        except CodeAnatomyError as problem:
            self._report(f"the lease of {self._root} could not be released: {problem.message}")
        self._over = "it was released"

    def _beat(self, seconds: float) -> None:
        beats = 0
        while not self._stop.wait(seconds):
            try:
                self._change(lambda row: row)
                beats += 1
                if beats % TIDY_BEATS == 0:
                    self._tidy()
            except LeaseLost:
                return
            except CodeAnatomyError:
                # A full disk may have room again; `check` says how long that can be waited for, and why.
                continue

    def _change(self, change: Callable[[LeaseRow], LeaseRow]) -> None:
        """Overwrite the row, which is a beat too."""
        with self._lock:
            for _ in range(ATTEMPTS):
                if self._over is not None:
                    raise self._lost(self._over)
                # Not before it was acquired, whatever the clock says.
                now = max(_now(), self._row.acquired_at)
                row = structs.replace(change(self._row), heartbeat_at=now)
                try:
                    self._version = _overwrite(self._root, row, self._version)
                except CommitConflict:
                    self._look()
                else:
                    self._row = row
                    return
        raise CommitConflict(f"the lease of {self._root} changes all the time", "see who writes to it")

    def _look(self) -> None:
        """See whose the lease is; the version moves on with tidying too."""
        version, found = _newest(self._root)
        if found is not None and (found.run_id, found.process, found.acquired_at) == (
            self._row.run_id,
            self._row.process,
            self._row.acquired_at,
        ):
            self._version = version
        else:
            self._over = "nobody has it" if found is None else f"it is held by {found.holder}"

    def _tidy(self) -> None:
        """Delete the files of older beats. Only those the log says were replaced: others may be new."""
        with self._lock, suppress(DeltaError, OSError):
            place = location(self._root, TABLE)
            opened = DeltaTable(place, storage_options=deltalake_options(place))
            once = CommitProperties(max_commit_retries=0)
            opened.vacuum(
                retention_hours=0, dry_run=False, enforce_retention_duration=False, commit_properties=once
            )
            # Of other tables old entries are kept: readers may have them pinned.
            opened.cleanup_metadata()

    def _halt(self) -> None:
        self._stop.set()
        self._thread.join(LAST_BEAT_SECONDS)

    def _lost(self, why: str, hint: str = "repeat the command: what was published stands") -> LeaseLost:
        return LeaseLost(f"run {self._row.run_id} has lost the lease of {self._root}: {why}", hint)


def _newest(root: str) -> tuple[int, LeaseRow | None]:
    """The newest version of the table (-1: none) and its row."""
    for attempt in range(ATTEMPTS):
        try:
            version = newest_version(root, TABLE)
            rows = light_table(root, TABLE, catalog.table(TABLE).column_names, version=version)
        except TableMissing:
            return -1, None
        except StorageFailure as problem:
            if attempt == ATTEMPTS - 1:
                raise StorageFailure(
                    problem.message, f"if no build is running, delete {location(root, TABLE)}"
                ) from problem
            # The holder has deleted the file meanwhile: there is a newer version.
            time.sleep(0.05 * attempt)
        else:
            break
    found = rows.to_pylist(maps_as_pydicts="strict")
    # What is null has a default.
    cells = [{name: value for name, value in row.items() if value is not None} for row in found]
    return version, convert(cells[0], LeaseRow) if cells else None


def _overwrite(root: str, row: LeaseRow, after: int) -> int:
    """Put a row in the place of the one of version `after`."""
    cells = to_builtins(row, builtin_types=(datetime,))
    return overwrite_small(
        root, catalog.table(TABLE), [cells], Commit(row.run_id, sequence=after + 1), after=after
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _this_process() -> str:
    """This process, among all of all machines since they were started."""
    pid = os.getpid()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").stat().st_ino
        start = _start(pid)
    except OSError:
        # Nobody can see whether it is gone: its ttl has to run out.
        return f"token={_TOKEN} pid={pid}"
    return f"boot={boot} space={space} pid={pid} start={start}"


def _gone(process: str) -> bool:
    """Whether a process was one of this machine, and has ended."""
    theirs, mine = _parts(process), _parts(_this_process())
    if "boot" not in mine or any(theirs.get(name) != mine[name] for name in ("boot", "space")):
        return False
    try:
        return _start(int(theirs["pid"])) != theirs["start"]
    except OSError:
        # The process of another user may be hidden.
        return not _exists(int(theirs["pid"]))


def _parts(process: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in process.split() if "=" in part)


def _start(pid: int) -> str:
    """When a process was started, in ticks since the machine was; empty for one that has ended."""
    # The name, in brackets, may hold anything.
    state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
