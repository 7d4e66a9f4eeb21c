"""Show the physical plan of a frame as goldens have it: without the expressions of most operators.

print(outline(plan_texts(frame).physical))
"""

from __future__ import annotations

import re

# Operators whose whole line is shown: what is read, how rows meet and where they move.
SHOWN = ("Scan", "Exchange", "Join", "MapInArrow", "InMemoryTableScan", "Sort")


def outline(physical: str) -> str:
    """Return the lines of a physical plan; of other operators only the name."""
    return "\n".join(map(_shown, physical.splitlines()))


def _shown(line: str) -> str:
    operator = re.match(r" *\w+", line)
    assert operator, line
    return line if operator[0].endswith(SHOWN) else operator[0]
