"""Write small SCIP indexes by hand."""

from __future__ import annotations

from pathlib import Path

from codeanatomy.extract.scip.schema import Document, Index, Metadata, Occurrence
from codeanatomy.plan.build_request import ScipChoice


def index(path: Path, *documents: tuple[str, int], repo_id: str = "app") -> ScipChoice:
    """Write an index that has a name in a line of each of some files."""
    made = [
        Document(
            relative_path=name,
            language="python",
            position_encoding=1,
            occurrences=[Occurrence(range=[line, 4, 5], symbol=f"local {line}", symbol_roles=1)],
        )
        for name, line in documents
    ]
    metadata = Metadata(tool_info={"name": "by-hand", "version": "1"})
    path.write_bytes(Index(metadata=metadata, documents=made).SerializeToString())
    return ScipChoice(given={repo_id: path})
