"""Write a focus as an HTML page: the picture, its docstring, and everything in the picture as a table.

    write(view, target)

It is one file that works without a network, has no script, and forbids itself to load or run anything
(Content-Security-Policy). Tests: `tests/unit/query/test_picture.py`.
"""

from __future__ import annotations

from codeanatomy.query.export.escaping import in_a_line, shortened, xml_text
from codeanatomy.query.export.neighbourhood import NAME_CHARS, Picture
from codeanatomy.query.export.rows import Counting
from codeanatomy.query.export.svg import drawn

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
body { font-family: sans-serif; margin: 1.5em; color: #212f3c; }
.picture { overflow: auto; border: 1px solid #d5d8dc; }
pre { background: #f8f9f9; padding: 1em; white-space: pre-wrap; }
table { border-collapse: collapse; }
td, th { text-align: left; padding: 0.2em 1em 0.2em 0; border-bottom: 1px solid #eaeded; }
td { overflow-wrap: anywhere; }
"""
# A longer table is not readable; `export jsonl` has all rows.
ROWS = 1_000
DOCSTRING_CHARS = 4_000


def write(view: Picture, target: Counting) -> None:
    """Write the page."""
    target.write(page(view).encode())


def page(view: Picture) -> str:
    """The page as text."""
    focus = view.focus
    name = _escaped(focus.symbol)
    docstring = "\n".join(map(in_a_line, shortened(view.docstring, DOCSTRING_CHARS).splitlines()))
    shown = sorted(view.nodes, key=lambda node: (abs(view.steps[node.key]), view.steps[node.key], node))[
        :ROWS
    ]
    rows = [
        f"<tr><td>{view.steps[node.key]:+d}</td><td>{_escaped(node.name)}</td><td>{_escaped(node.kind)}</td>"
        f"<td>{_escaped(node.place)}</td></tr>"
        for node in shown
    ]
    cut = len(view.nodes) - len(shown)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{name}</title><style>{STYLE}</style></head><body>",
            f"<h1>{name}</h1>",
            f"<p>{_escaped(focus.kind)} in {_escaped(focus.place)}, repository {_escaped(focus.repo_id)}</p>",
            f"<pre>{xml_text(docstring)}</pre>" if docstring else "",
            f'<div class="picture">{drawn(view)}</div>',
            f"<details><summary>{len(view.nodes):,} nodes</summary><table>",
            "<tr><th>steps</th><th>symbol</th><th>kind</th><th>place</th></tr>",
            *rows,
            "</table>",
            f"<p>{cut:,} more are not listed; `codeanatomy export jsonl` has them.</p>" if cut else "",
            "</details></body></html>\n",
        ]
    )


def _escaped(text: str) -> str:
    return xml_text(in_a_line(shortened(text, NAME_CHARS)))
