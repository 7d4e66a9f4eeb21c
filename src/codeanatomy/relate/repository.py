"""A repository from the programs of its files to its rows.

    for file_id, tables in repository_rows(programs):
        tables["relations_v1"]                   # the rows that the file owns, in the table's order

All files of a repository are looked at together, one repository after the other; different repositories
know nothing of each other. If the analysis of a repository fails, what its scopes say is kept, and every file
gets a diagnostic. Tests: `tests/test_relate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema, unpacked
from codeanatomy.ids import stable_id
from codeanatomy.relate.emit import Analysis
from codeanatomy.relate.program import Program
from codeanatomy.relate.rows import RELATIONS, Complaint, Rows
from codeanatomy.relate.structure import Attribute, file_relations
from codeanatomy.relate.values import Values
from codeanatomy.relate.world import names_by_path

DIAGNOSTICS = "diagnostics_norm_v1"
TABLES = (RELATIONS, DIAGNOSTICS)
MESSAGE_CHARS = 1000


def repository_rows(programs: Sequence[Program]) -> Iterator[tuple[Program, dict[str, pa.RecordBatch]]]:
    """The rows of each file of a repository."""
    ordered = sorted(programs, key=lambda program: program.path)
    names = names_by_path(ordered)
    try:
        values = Values(ordered)
        values.solve()
        analysis = Analysis(values)
    # A bug of ours, or code that nobody imagined, costs what is found across files and no more.
    except Exception as error:  # noqa: BLE001
        for program in ordered:
            yield program, _tables(program, _without(program, error), names[program.path])
        return
    for number, program in enumerate(ordered):
        whole = names[program.path], analysis.unlisted.get(number, ())
        try:
            tables = _tables(program, analysis.rows_of(number), *whole)
        # Or the rows of one file, but not what others may refer to.
        except Exception as error:  # noqa: BLE001
            tables = _tables(program, _without(program, error), *whole)
        yield program, tables


def _without(program: Program, error: Exception) -> Rows:
    """What there is to say of a file of which the analysis failed."""
    rows = Rows(program.repo_id, program.file_id, program.path)
    said = f"{type(error).__name__}: {error}"[:MESSAGE_CHARS]
    rows.complaints.append(Complaint("relate", "not_related", said, severity="error"))
    return rows


def _tables(
    program: Program, rows: Rows, name: str, attributes: Iterable[Attribute] = ()
) -> dict[str, pa.RecordBatch]:
    """The tables of a file, with the name of its module and what only we know of its classes."""
    file_relations(rows, name, attributes)
    batches = [*(unpacked(program.scope_rows) if program.scope_rows else ()), rows.batch()]
    whole = pa.Table.from_batches(batches).combine_chunks()
    order = [name for name in catalog.table(RELATIONS).ordering if name != "owner_file_id"]
    whole = whole.sort_by([(name, "ascending") for name in (*order, "relation_id")])
    merged = whole.to_batches()
    relations_rows = merged[0] if merged else rows.batch()
    return {RELATIONS: relations_rows, DIAGNOSTICS: _diagnostics(program, rows.complaints)}


def _diagnostics(program: Program, complaints: Sequence[Complaint]) -> pa.RecordBatch:
    table = catalog.table(DIAGNOSTICS)
    rows = []
    for kind, code, message, (bstart, bend, line), severity in complaints:
        identity = (program.repo_id, program.file_id, kind, code, bstart, bend, line, message)
        rows.append(
            {
                "repo_id": program.repo_id,
                "file_id": program.file_id,
                "path": program.path,
                "diag_id": stable_id("diag", *identity),
                "diag_kind": kind,
                "diag_severity": severity,
                "diag_code": code,
                "diag_line_start": line,
                "diag_line_end": line,
                "message": message,
                "bstart": bstart,
                "bend": bend,
            }
        )
    unique = {row["diag_id"]: row for row in rows}
    arrays = [array(column, [row.get(column.name) for row in unique.values()]) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))
