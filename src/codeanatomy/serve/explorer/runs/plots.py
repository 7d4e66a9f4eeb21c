"""Draw plots as SVG: columns over time, and bars in the cells of tables.

    column_plot([PlotColumn("run 1: 12 s", "/runs/1", (("extract", 4.0), ("graph", 8.0)))], seconds_text)
    bar(30, of=120, fill="bytes")

Widths are percentages and heights are pixels, so that a plot fits every screen and its texts keep their
size. Colours are classes (`fill-extract`), because the Content-Security-Policy forbids styles in a page. A
plot repeats the numbers of a table beside it, and is hidden from screen readers.

Tests: `tests/unit/serve/test_plots.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10

from markupsafe import Markup
from msgspec import Struct

HEIGHT = 150
# Above the greatest value, for the label of its line.
MARGIN = 12
BAR_HEIGHT = 10
# Fewer columns are drawn as if there were so many: a single one would fill the plot.
FEWEST_COLUMNS = 12
# Share of its place that a column fills.
FILLED = 0.72
# Lines with a label, besides zero.
LINES = 3


class PlotColumn(Struct, frozen=True):
    """A column: its description, the page it leads to, and its parts from bottom to top."""

    label: str
    link: str
    # Class of the colour, and value.
    parts: tuple[tuple[str, float], ...]
    failed: bool = False


def column_plot(columns: Sequence[PlotColumn], text: Callable[[float], str]) -> Markup:
    """Draw columns from left to right; `text` formats the values of the axis."""
    greatest = max((sum(value for _, value in each.parts) for each in columns), default=0.0)
    lines = axis_values(greatest)
    top = max(lines[-1], greatest) or 1.0
    scale = HEIGHT / top
    places = max(len(columns), FEWEST_COLUMNS)
    labels = Markup("").join(
        Markup('<text x="100%" y="{}" text-anchor="end">{}</text>').format(_y(value, scale) + 4, text(value))
        for value in lines
    )
    grid = Markup("").join(
        Markup('<line x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(_y(value, scale)) for value in lines
    )
    drawn = Markup("").join(
        _column(each, number * 100 / places, 100 / places, scale) for number, each in enumerate(columns)
    )
    height = HEIGHT + 2 * MARGIN
    return Markup(
        '<div class="plot" aria-hidden="true"><svg class="plot-axis" width="56" height="{0}">{1}</svg>'
        '<svg class="plot-area" width="100%" height="{0}"><g class="plot-lines">{2}</g>{3}</svg></div>'
    ).format(height, labels, grid, drawn)


def _y(value: float, scale: float) -> float:
    return round(MARGIN + HEIGHT - value * scale, 1)


def _column(column: PlotColumn, left: float, width: float, scale: float) -> Markup:
    """Draw one column as a link; a strip below it marks a failed run."""
    x, w = f"{left + width * (1 - FILLED) / 2:.3f}%", f"{width * FILLED:.3f}%"
    parts, base = [], 0.0
    for fill, value in column.parts:
        if value > 0:
            # At least a pixel: what was done is seen.
            height = max(1.0, round(value * scale, 1))
            y = round(_y(base, scale) - height, 1)
            parts.append(
                Markup('<rect class="fill-{}" x="{}" y="{}" width="{}" height="{}"/>').format(
                    fill, x, y, w, height
                )
            )
        base += value
    if column.failed:
        parts.append(
            Markup('<rect class="fill-failed" x="{}" y="{}" width="{}" height="6"/>').format(
                x, MARGIN + HEIGHT + 3, w
            )
        )
    return Markup(
        '<a href="{}" tabindex="-1"><title>{}</title>'
        '<rect class="plot-hit" x="{:.3f}%" y="0" width="{:.3f}%" height="{}"/>{}</a>'
    ).format(column.link, column.label, left, width, HEIGHT + 2 * MARGIN, Markup("").join(parts))


def bar(value: float | None, of: float, fill: str) -> Markup:
    """Draw a bar for a cell of a table: a share of the greatest value of its column."""
    share = 0.0 if not value or of <= 0 else max(0.0, min(1.0, value / of))
    return Markup(
        '<svg class="bar" width="100%" height="{0}" aria-hidden="true">'
        '<rect class="fill-{1}" width="{2:.2f}%" height="{0}" rx="2"/></svg>'
    ).format(BAR_HEIGHT, fill, share * 100)


def share_bar(parts: Sequence[tuple[str, str, float]]) -> Markup:
    """Draw the parts of a whole beside each other, each with the class of its colour and a description."""
    total = sum(value for _, _, value in parts)
    drawn, left = [], 0.0
    for fill, label, value in parts:
        width = 100 * value / total if total > 0 else 0.0
        drawn.append(
            Markup(
                '<rect class="fill-{}" x="{:.2f}%" width="{:.2f}%" height="22"><title>{}</title></rect>'
            ).format(fill, left, width, label)
        )
        left += width
    return Markup('<svg class="share" width="100%" height="22" aria-hidden="true">{}</svg>').format(
        Markup("").join(drawn)
    )


def axis_values(greatest: float) -> tuple[float, ...]:
    """Return zero and a few round values up to about the greatest.

    >>> axis_values(76.8), axis_values(0)
    ((0.0, 20.0, 40.0, 60.0, 80.0), (0.0,))
    """
    if greatest <= 0:
        return (0.0,)
    rough = greatest / LINES
    power = 10.0 ** floor(log10(rough))
    # The smallest round step of at most four lines.
    step = next(
        power * factor for factor in (1, 2, 2.5, 5, 10, 20) if greatest / (power * factor) <= LINES + 1
    )
    count = int(-(-greatest // step))
    return tuple(round(step * number, 10) for number in range(count + 1))


def seconds_text(value: float) -> str:
    """Format a duration.

    >>> seconds_text(0.25), seconds_text(90), seconds_text(7200)
    ('0.25 s', '90 s', '120 min')
    """
    return f"{value:g} s" if value < 600 else f"{value / 60:g} min"


def count_text(value: float) -> str:
    """Format a large number in few characters.

    >>> count_text(950), count_text(2_500_000)
    ('950', '2.5 M')
    """
    for power, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= power:
            return f"{value / power:g}{unit}"
    return f"{value:g}"
