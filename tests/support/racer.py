"""Build one repository into a shared lake whenever the parent process says so, as a host of its own.

    python racer.py left s3a://lakes/race FOLDER runtime.storage_options.fs.s3a.endpoint=... ...
    < {"text": "def f(): ...", "wait": true}
    > {"run_id": "2026...", "refused": null, "waited": true}

The process reports another host and another boot than its neighbours: they cannot see whether it lives.
"""

from __future__ import annotations

import io
import json
import socket
import sys
from pathlib import Path

from codeanatomy.errors import LeaseHeld
from codeanatomy.lake import lease
from codeanatomy.progress import Progress
from codeanatomy.run.build import build
from support.light_builds import KEPT, order
from support.sessions import no_session

# Looked at more often than in use: a round is short.
lease.POLL_SECONDS = 0.1


def main(name: str, lake: str, folder: Path, *settings: str) -> None:
    process = lease._this_process()
    lease._this_process = lambda: process.replace("boot=", f"boot={name}-")
    socket.gethostname = lambda: f"host-{name}"
    for line in sys.stdin:
        turn = json.loads(line)
        (folder / "work.py").write_text(turn["text"])
        request = order(lake, {name: folder}, *settings, engine="local", wait=turn["wait"])
        output = io.StringIO()
        answer: dict[str, object] = {"run_id": None, "refused": None}
        try:
            answer["run_id"] = build(request, Progress(output), no_session, started=KEPT).run_id
        except LeaseHeld as problem:
            answer["refused"] = problem.message
        answer["waited"] = "waiting: lake" in output.getvalue()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
