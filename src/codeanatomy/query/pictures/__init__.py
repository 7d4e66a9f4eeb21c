"""Draw parts of the graph: boxes and arrows, their positions, and SVG.

    diagram = Diagram("Calls", (Box("a", "f"), Box("b", "g")), (Arrow("a", "b"),))
    draw(diagram, arrange(diagram))       # "<svg ...>"

Both `codeanatomy export svg` and the pages of the explorer use it.

    diagram         what is drawn: boxes, arrows, frames
    drawing         SVG of a diagram
    layered         positions: ranks, few crossings, no overlap

Tests: `tests/unit/query/test_layered.py`, `tests/unit/query/test_drawing.py`.
"""
