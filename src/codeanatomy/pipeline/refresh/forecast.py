"""What a refresh would redo, and why: its steps up to the relations, and nothing is written.

    foreseen(run)["app"]        # (Impact("app/b.py", "changed"), Impact("app/a.py", "lost", "app.b.f", 2))

So what `codeanatomy plan` tells is what the build will record. Tests: `tests/unit/pipeline/test_refresh_impact.py`.
"""

from __future__ import annotations

from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.refresh.extract import extracted
from codeanatomy.pipeline.refresh.relate import related
from codeanatomy.plan.changes import Impact
from codeanatomy.plan.steps import RELATE


def foreseen(run: Run) -> dict[str, tuple[Impact, ...]]:
    """By repository, the files that would be redone."""
    found: dict[str, tuple[Impact, ...]] = {}
    for repo_id, refresh in run.refreshes.items():
        if repo_id in run.refreshed_in(RELATE):
            extracted(run, refresh)
            found[repo_id] = related(run, refresh).impact
        else:
            found[repo_id] = refresh.impact
    return found
