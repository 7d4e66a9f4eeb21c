"""Forecast what a refresh would redo, and why: run its steps up to the relations, write nothing.

    forecast_impact(run)["app"]
    # (Impact("app/b.py", "changed"), Impact("app/a.py", "lost", "app.b.f", 2))

So `codeanatomy plan` shows what the build will record. Tests: `tests/unit/pipeline/test_refresh_impact.py`.
"""

from __future__ import annotations

from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.refresh.extract import extract_changes
from codeanatomy.pipeline.refresh.relate import compute_relations
from codeanatomy.plan.changes import Impact
from codeanatomy.plan.steps import RELATE


def forecast_impact(run: Run) -> dict[str, tuple[Impact, ...]]:
    """Return the files that would be redone, and why, by repository."""
    impacts: dict[str, tuple[Impact, ...]] = {}
    for repo_id, refresh in run.refreshes.items():
        if repo_id in run.refreshed_in(RELATE):
            extract_changes(run, refresh)
            impacts[repo_id] = compute_relations(run, refresh).impact
        else:
            impacts[repo_id] = refresh.impact
    return impacts
