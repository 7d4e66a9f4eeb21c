"""Plots: sizes that are in proportion, and texts that are escaped."""

from __future__ import annotations

import re

import pytest

from codeanatomy.serve.explorer.runs.plots import (
    FEWEST_COLUMNS,
    HEIGHT,
    PlotColumn,
    axis_values,
    bar,
    column_plot,
    seconds_text,
    share_bar,
)
from support.explorer import check_page


def heights(svg: str, fill: str) -> list[float]:
    return [float(text) for text in re.findall(rf'class="fill-{fill}"[^>]* height="([\d.]+)"', svg)]


def test_parts_of_a_column_are_stacked_in_proportion() -> None:
    svg = column_plot([PlotColumn("run", "/runs/1", (("extract", 1.0), ("graph", 3.0)))], seconds_text)
    check_page(svg)
    assert heights(svg, "graph")[0] == pytest.approx(3 * heights(svg, "extract")[0], abs=0.5)
    tops = {
        fill: float(re.findall(rf'class="fill-{fill}" x="[^"]+" y="([\d.]+)"', svg)[0])
        for fill in ("extract", "graph")
    }
    assert tops["graph"] + heights(svg, "graph")[0] == pytest.approx(tops["extract"], abs=0.2)
    assert heights(svg, "graph")[0] + heights(svg, "extract")[0] == pytest.approx(HEIGHT, abs=0.5)


def test_columns_stay_inside_of_the_plot_and_tiny_values_are_seen() -> None:
    columns = [PlotColumn(str(n), "/", (("rows", 10.0**n),)) for n in range(40)]
    svg = column_plot(columns, seconds_text)
    places = [
        (float(x), float(width))
        for x, width in re.findall(r'class="fill-rows" x="([\d.]+)%" y="[\d.]+" width="([\d.]+)%"', svg)
    ]
    assert len(places) == 40
    assert all(x >= 0 and x + width <= 100 for x, width in places)
    assert min(heights(svg, "rows")) == 1.0


def test_one_column_does_not_fill_the_plot() -> None:
    svg = column_plot([PlotColumn("run", "/", (("rows", 5.0),))], seconds_text)
    assert float(re.findall(r'class="fill-rows"[^>]* width="([\d.]+)%"', svg)[0]) < 100 / FEWEST_COLUMNS


def test_failed_runs_are_marked() -> None:
    plot = column_plot([PlotColumn("a", "/", (), failed=True), PlotColumn("b", "/", ())], seconds_text)
    assert plot.count("fill-failed") == 1


def test_labels_are_escaped_and_not_reached_by_keyboard() -> None:
    svg = column_plot([PlotColumn("<script>&\"'", '/x?a="b"', (("rows", 1.0),))], lambda _: "<b>")
    check_page(svg)
    assert "<script>" not in svg
    assert "<b>" not in svg
    assert 'tabindex="-1"' in svg
    assert 'aria-hidden="true"' in svg


@pytest.mark.parametrize("greatest", [0.0003, 0.7, 1, 3, 9.99, 10, 76.8, 10_785_070, 5e12])
def test_axis_has_few_round_values_up_to_the_greatest(greatest: float) -> None:
    values = axis_values(greatest)
    assert values[0] == 0
    assert values[-2] < greatest <= values[-1] * 1.000001
    assert 3 <= len(values) <= 6


def test_empty_plots() -> None:
    check_page(column_plot([], seconds_text))
    check_page(column_plot([PlotColumn("a", "/", (("rows", 0.0),))], seconds_text))
    assert axis_values(0) == (0.0,)


@pytest.mark.parametrize(
    ("value", "of", "width"), [(5, 10, "50.00"), (None, 10, "0.00"), (0, 0, "0.00"), (30, 10, "100.00")]
)
def test_bars_are_shares(value: float | None, of: float, width: str) -> None:
    assert f'width="{width}%"' in bar(value, of, "rows")


def test_shares_fill_the_bar() -> None:
    svg = share_bar([("added", "1 added", 1), ("removed", "3 removed", 3), ("changed", "none", 0)])
    assert re.findall(r'x="([\d.]+)%" width="([\d.]+)%"', svg) == [
        ("0.00", "25.00"),
        ("25.00", "75.00"),
        ("100.00", "0.00"),
    ]
    assert 'width="0.00%"' in share_bar([("added", "0", 0)])
