"""The example of a classic session on the page about questions, as a process of its own."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codeanatomy.spark.jars import JARS, cache_folder, ensure_jars
from codeanatomy.spark.java import find_java
from support.three_runs import three_runs

PAGE = Path(__file__).parents[2] / "docs/ask.md"
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
IMPORTS = "from pyspark.sql import SparkSession\nfrom codeanatomy.query.lake import Lake\n"
# Of the newest of three runs: bad.py is gone.
FILES = {"one.py", "two.py", "new.py", "m.py", "n.py", "p.py"}
QUESTION = 'print([row.path for row in lake.table("repo_files_v1").collect()])\nsession.stop()\n'


@pytest.mark.system
def test_a_classic_session_of_somebody_else(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    lake = three_runs(tmp_path_factory).root
    (block,) = (each for each in PYTHON_BLOCK.findall(PAGE.read_text()) if ".master(" in each)
    packages = f'"spark.jars.packages", "{JARS[0].group}:{JARS[0].artifact}:{JARS[0].version}"'
    assert packages in block
    # The jars are in the cache already; Ivy would fetch them again.
    jars = os.pathsep.join(map(str, ensure_jars(cache_folder(), find_java())))
    script = block.replace(packages, f'"spark.driver.extraClassPath", {jars!r}')
    script = IMPORTS + script.replace('Lake.open("lake"', f"Lake.open({str(lake)!r}") + QUESTION
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**env, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(ast.literal_eval(done.stdout.splitlines()[-1])) == FILES
