"""Print precision and recall of the labelled call graphs, per construct: `make callgraph`."""

from __future__ import annotations

from support.callgraph_score import cases, report, scores
from support.relate_stage import call_edges, solved, sources_below

if __name__ == "__main__":
    print(report(scores({case.repo_id: call_edges(solved(sources_below(case.folder))) for case in cases()})))
