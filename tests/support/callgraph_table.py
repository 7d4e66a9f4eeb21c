"""Precision and recall of the labelled call graphs, per construct: `make callgraph`."""

from __future__ import annotations

from codeanatomy.relate.emit.call_graph import edges
from support.callgraph_score import cases, report, scores
from support.related import solved, sources_below

if __name__ == "__main__":
    print(report(scores({case.repo_id: edges(solved(sources_below(case.folder))) for case in cases()})))
