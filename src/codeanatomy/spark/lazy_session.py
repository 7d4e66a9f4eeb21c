"""Open a Spark session for a command that may need one, beside what the command does until it needs it.

    with session_for(settings, progress) as session:
        session.start()                            # the JVM starts; the command imports and plans meanwhile
        build(request, progress, session)          # session() waits for it

A session that was not started is opened at its first use. Tests: `tests/unit/cli/test_build_command.py`,
`tests/spark/test_clean_build.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING

from codeanatomy.config import Settings
from codeanatomy.spark.settings import is_local_master
from codeanatomy.spark.worker_daemon import PreparedDaemon

# A session whose JVM was ended fails within this time.
END_SECONDS = 10.0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.progress import Progress
    from codeanatomy.spark.gateway import StartingJvm


class LazySession:
    """A session that is started when it is known to be needed, and waited for where it is used."""

    # It is our own: what a build records of it follows from the settings.
    facts = None

    def __init__(self, settings: Settings, progress: Progress, options: Sequence[str] = ()) -> None:
        self._settings = settings
        self._progress = progress
        self._options = options
        self._lock = Lock()
        self._jvm: StartingJvm | None = None
        self._daemon: PreparedDaemon | None = None
        self._opened: Future[SparkSession] | None = None

    def start(self) -> Future[SparkSession]:
        """Start the JVM and the session, in the background."""
        with self._lock:
            if self._opened is None:
                try:
                    self._opened = self._begin()
                except BaseException:
                    self._stop_processes()
                    raise
            return self._opened

    def _begin(self) -> Future[SparkSession]:
        # Imported here: a command may not need Spark.
        from codeanatomy.spark.gateway import StartingJvm, has_jvm, jvm_settings

        profile = self._settings.runtime
        # A JVM that this process has from an earlier session is used again.
        if not has_jvm():
            environment = {}
            if is_local_master(profile.session_master):
                self._daemon = PreparedDaemon()
                environment = self._daemon.environment
            # In this thread: a missing Java is this command's error.
            self._jvm = StartingJvm(jvm_settings(profile, self._options), environment)
        # Before the thread: two threads must not import PySpark at the same time.
        from codeanatomy.spark.session import open_session

        opened: Future[SparkSession] = Future()
        # Not waited for if the command ends: the JVM ends with this process.
        Thread(target=self._open, args=(open_session, opened), daemon=True).start()
        return opened

    def _open(self, open_session: Callable[..., SparkSession], opened: Future[SparkSession]) -> None:
        try:
            opened.set_result(open_session(self._settings.runtime, self._jvm))
        except BaseException as problem:  # noqa: BLE001
            opened.set_exception(problem)

    def _stop_processes(self) -> None:
        """End what has been started and is no session yet."""
        if self._daemon is not None:
            self._daemon.stop()
        if self._jvm is not None:
            self._jvm.stop()
        self._daemon = self._jvm = None

    def __call__(self) -> SparkSession:
        """Return the session, as soon as it is there."""
        opened = self.start()
        if not opened.done():
            self._progress.update("spark", f"starting on {self._settings.runtime.session_master}")
        return opened.result()

    def close(self) -> None:
        """Leave the session, if it is open; end what is still starting."""
        if self._opened is None:
            return
        if not self._opened.done():
            # The thread that waits for the JVM ends with an error.
            self._stop_processes()
        with suppress(Exception):
            from codeanatomy.spark.session import leave_session

            leave_session(self._opened.result(END_SECONDS))
        if self._daemon is not None:
            self._daemon.stop()


@contextmanager
def session_for(settings: Settings, progress: Progress, options: Sequence[str] = ()) -> Iterator[LazySession]:
    """Yield a session that is opened when it is needed, and left at the end of the block."""
    session = LazySession(settings, progress, options)
    try:
        yield session
    finally:
        session.close()
