"""A repository from the programs of its files to its rows.

    solved = Solved(programs)
    found = solved.file(0)                   # of the first file by path
    found.tables()["relations_v1"]           # the rows that the file owns, in the table's order
    found.digest()                           # the same for the same rows: what a refresh compares

All files of a repository are looked at together, one repository after the other; different repositories
know nothing of each other. If the analysis of a repository fails, what its scopes say is kept, and every file
gets a diagnostic. Tests: `tests/spark/test_relate.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from msgspec import msgpack

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema, unpack_rows
from codeanatomy.ids import stable_id
from codeanatomy.relate.emit.file_relations import Attribute, file_relations
from codeanatomy.relate.emit.relations import Analysis
from codeanatomy.relate.program import Program
from codeanatomy.relate.relation_rows import RELATIONS, Complaint, Rows
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.linked_programs import module_names_by_path

DIAGNOSTICS, PROGRAMS = "diagnostics_norm_v1", "relate_programs_v1"
TABLES = (RELATIONS, DIAGNOSTICS)
MESSAGE_CHARS = 1000


class Solved:
    """A repository whose names, values and calls are resolved: its files by path, and their rows."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self.programs = sorted(programs, key=lambda program: program.path)
        self._names = module_names_by_path(self.programs)
        self._analysis: Analysis | Exception
        try:
            values = Values(self.programs)
            values.solve()
            self._analysis = Analysis(values)
        except MemoryError:
            raise
        # A bug of ours, or code that nobody imagined, costs what is found across files and no more.
        except Exception as error:  # noqa: BLE001
            self._analysis = error

    def file(self, number: int) -> Related:
        """What was found of a file."""
        program, analysis = self.programs[number], self._analysis
        name = self._names[program.path]
        if isinstance(analysis, Exception):
            return _related(program, _without(program, analysis), name)
        attributes = analysis.unlisted.get(number, ())
        try:
            return _related(program, analysis.rows_of(number), name, attributes)
        except MemoryError:
            raise
        # Or the rows of one file, but not what others may refer to.
        except Exception as error:  # noqa: BLE001
            return _related(program, _without(program, error), name, attributes)


class Related(NamedTuple):
    """What was found of a file, as rows."""

    program: Program
    rows: Rows

    def tables(self) -> dict[str, pa.RecordBatch]:
        """The rows by table, in their order."""
        program, rows = self
        batches = [*(unpack_rows(program.scope_rows) if program.scope_rows else ()), rows.batch()]
        whole = pa.concat_batches(batches)
        order = [name for name in catalog.table(RELATIONS).ordering if name != "owner_file_id"]
        ordered = whole.sort_by([(name, "ascending") for name in (*order, "relation_id")])
        return {RELATIONS: ordered, DIAGNOSTICS: _diagnostics(program, rows.complaints)}

    def digest(self) -> str:
        """What the rows are, as a text; made without making them, since most are as they were."""
        told = (self.program.scope_rows, self.rows.packed(), self.rows.complaints)
        return hashlib.sha256(msgpack.encode(told)).hexdigest()


def repository_rows(programs: Sequence[Program]) -> Iterator[tuple[Program, dict[str, pa.RecordBatch]]]:
    """The rows of each file of a repository."""
    solved = Solved(programs)
    for number, program in enumerate(solved.programs):
        yield program, solved.file(number).tables()


def program_row(program: Program, digest: str) -> pa.RecordBatch:
    """The row of a file in `relate_programs_v1`."""
    cells = {
        "repo_id": program.repo_id,
        "file_id": program.file_id,
        "path": program.path,
        "program": msgpack.encode(program),
        "rows_digest": digest,
    }
    return pa.RecordBatch.from_pylist([cells], arrow_schema(catalog.table(PROGRAMS)))


def _without(program: Program, error: Exception) -> Rows:
    """What there is to say of a file of which the analysis failed."""
    rows = Rows(program.repo_id, program.file_id, program.path)
    said = f"{type(error).__name__}: {error}"[:MESSAGE_CHARS]
    rows.complaints.append(Complaint("relate", "not_related", said, severity="error"))
    return rows


def _related(program: Program, rows: Rows, name: str, attributes: Iterable[Attribute] = ()) -> Related:
    """With the name of its module, and what only we know of its classes."""
    file_relations(rows, name, attributes)
    return Related(program, rows)


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
