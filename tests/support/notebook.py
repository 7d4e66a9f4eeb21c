"""Read the notebook of the examples and run its cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.folders import ROOT

EXAMPLES = ROOT / "examples"
NOTEBOOK: dict[str, Any] = json.loads((EXAMPLES / "ask.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
# What the notebook calls its lake.
LAKE = 'LAKE = "lake"'


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def needs_spark(cell: dict[str, Any]) -> bool:
    return "spark" in cell["metadata"].get("tags", ())


def run(cells: list[dict[str, Any]], lake: Path, names: dict[str, Any]) -> dict[str, Any]:
    """Execute cells one after the other, as a kernel would."""
    for cell in cells:
        code = source(cell).replace(LAKE, f"LAKE = {str(lake)!r}")
        exec(compile(code, f"cell {cell['id']}", "exec"), names)
    return names
