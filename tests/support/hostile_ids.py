"""Edges whose ends have names that are hard to write in an id, in SQL or in a statement of Spark."""

from __future__ import annotations

from codeanatomy.node_ids import definition_key, natural_id, node_id

KEY = definition_key('it\'s; a "repo"', "a;b%/é.py", "Ⅻ.<lambda>#1")
NAMES = (
    "",
    ";",
    "%",
    "%3B",
    "a;b",
    "it's",
    '"quoted"',
    "back\\slash",
    "${spark.app.name}",
    "new\nline",
    "é",
    "漢字",
    "🐍",
    "0",
    "Literal['a;b', \"c\"]",
    "x" * 400,
)
# Kind, ends and number.
HOSTILE_EDGES = [
    ("CALLS_NAME", node_id("BINDING", KEY, name), natural_id("QUALIFIED_NAME", name, name), repeat)
    for name in NAMES
    for repeat in (0, 1, 12)
]
