r"""Read the docstrings of definitions.

    docstrings(reader, ["function:3f..."])      # {"function:3f...": "Send a request.\n\nIt waits."}

Tests: `tests/unit/query/test_verb_show.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection

from codeanatomy.query.engines.statements import Query, Reader, Slice
from codeanatomy.query.walks.reachability import edges_at


def docstrings(reader: Reader, ids: Collection[str]) -> dict[str, str]:
    """Return the docstrings of nodes by id, without indentation, in the order of the ids."""
    having_docstring = Query(
        "SELECT e.dst_node_id, e.src_node_id FROM e",
        {"e": edges_at(ids, ("HAS_DOCSTRING",), "src")},
        order=("dst_node_id",),
    )
    owners: dict[str, str] = dict(reader.rows(having_docstring)) if ids else {}
    if not owners:
        return {}
    properties = Query(
        "SELECT p.entity_id, p.value_string FROM p",
        {"p": Slice("cpg_props", entity_kind=("node",), entity_id=sorted(owners), prop_key=("text",))},
    )
    texts = {owners[node]: inspect.cleandoc(text or "") for node, text in reader.rows(properties)}
    return {node: texts[node] for node in ids if node in texts}
