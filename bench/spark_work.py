"""What a build costs on Spark beside its own work: jobs, calls of the JVM and its processor seconds.

    PYTHONPATH=tests python bench/spark_work.py         # requests: a first build, and one edited file

Each build is the command in a process of its own, without types, on two cores. Calls are those of py4j,
counted where they are sent. Then the same refresh in a session of the caller's that has built before
(`codeanatomy.build(..., spark=session)`): what a notebook waits for after an edit. Printed is Markdown for
FIGURES.md, with the load of the machine. Exit code 1 if that refresh takes more than two seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from support import corpus

# Runs the command in this process, and prints what it has cost when the build has ended.
PROGRAM = """
import json, os, sys
from py4j.clientserver import ClientServerConnection
calls = [0]
send = ClientServerConnection.send_command
def counted(self, command):
    calls[0] += 1
    return send(self, command)
ClientServerConnection.send_command = counted
import codeanatomy.run.build as module
build = module.build
def measured(*given, **options):
    report = build(*given, **options)
    from pyspark import SparkContext
    context, sent = SparkContext._active_spark_context, calls[0]
    jobs = context._jsc.sc().dagScheduler().nextJobId() if context else 0
    path = f"/proc/{context._gateway.proc.pid}/stat" if context else "/dev/null"
    stat = open(path).read().rpartition(")")[2].split()
    ticks = sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK") if stat else 0.0
    print("COST " + json.dumps([jobs, sent, ticks]), file=sys.stderr, flush=True)
    return report
module.build = measured
from codeanatomy.cli.main import main
sys.argv = ["codeanatomy", *sys.argv[1:]]
main()
"""

# Refreshes requests in one session, and prints the seconds of each call.
WARM = """
import json, sys, time
from pathlib import Path
from codeanatomy import build
from codeanatomy.config import RuntimeProfile
from codeanatomy.spark.session import close_session, open_session
source, lake = map(Path, sys.argv[1:])
spark = open_session(RuntimeProfile(cores=2))
build({"requests": source}, lake, spark=spark, types="off")
edited, seconds = source / "requests" / "hooks.py", []
for number in range(6):
    edited.write_text(edited.read_text() + f"\\n\\ndef added_{number}(value):\\n    return value\\n")
    began = time.monotonic()
    report = build({"requests": source}, lake, spark=spark, types="off")
    seconds.append(time.monotonic() - began)
    assert report.status == "succeeded", report
close_session(spark)
print("WARM " + json.dumps(seconds))
"""
WARM_LIMIT = 2.0


def warm_refreshes(source: Path, lake: Path) -> list[float]:
    """Return the seconds of refreshes after one edit each, in a session that has made the first build."""
    done = subprocess.run(
        [sys.executable, "-c", WARM, source, lake], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("WARM ")]
    if not lines:
        raise SystemExit(done.stderr[-2000:])
    seconds: list[float] = json.loads(lines[0].removeprefix("WARM "))
    return seconds


def cost_of(source: Path, lake: Path, *options: str) -> tuple[int, int, float, float]:
    """Build, and return jobs, calls, processor seconds of the JVM and wall seconds."""
    command = ["--set", "runtime.cores=2", "build", f"requests={source}", "--lake", str(lake)]
    command += ["--types", "off"]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command, *options], capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - began
    lines = [line for line in done.stderr.splitlines() if line.startswith("COST ")]
    if not lines:
        raise SystemExit(done.stderr[-2000:])
    jobs, calls, ticks = json.loads(lines[0].removeprefix("COST "))
    return jobs, calls, ticks, seconds


def main() -> int:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as work:
        source, lake = Path(work, "source"), Path(work, "lake")
        shutil.copytree(corpus.package("requests"), source)
        print(f"load at the start: {load:.1f}\n")
        print("| what | jobs | calls of the JVM | its processor seconds | wall seconds |")
        print("|---|---|---|---|---|")
        for name in ("first build", "one edited file"):
            jobs, calls, ticks, seconds = cost_of(source, lake, *sys.argv[1:])
            print(f"| {name} | {jobs} | {calls:,} | {ticks:.1f} | {seconds:.1f} |", flush=True)
            edited = source / "requests" / "hooks.py"
            edited.write_text(edited.read_text() + "\n\ndef added(value):\n    return value\n")
        warm = warm_refreshes(source, Path(work, "warm"))
        shown = ", ".join(f"{each:.1f}" for each in warm)
        print(f"\nrefreshes of one edited file in a warm session, one after the other: {shown} s")
        return int(median(warm) > WARM_LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
