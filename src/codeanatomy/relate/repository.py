"""Solve a repository from the programs of its files and build the rows of each file.

    solved = SolvedRepository(programs)
    relations = solved.file(0, programs[0])  # of the first file by path
    relations.digest()                       # equal for equal rows: what a refresh compares
    tables_of([relations])["relations_v1"]   # the rows that the file owns, in the table's order

All files of a repository are analysed together; repositories are independent of each other. If the analysis
of a repository fails, the rows of its scopes are kept and every file gets a diagnostic.

Tests: `tests/spark/test_relate.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import msgpack

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema, unpack_rows
from codeanatomy.file_ids import FileIds
from codeanatomy.relate.emit.relations import RelationEmitter, add_file_relations
from codeanatomy.relate.own_imports import OwnImports, own_imports
from codeanatomy.relate.program import Program
from codeanatomy.relate.relation_rows import RELATIONS, RelationDiagnostic, RelationRows, relation_batch
from codeanatomy.relate.values.analysis import solve
from codeanatomy.relate.values.modules import Modules, module_names_by_path

DIAGNOSTICS, PROGRAMS = "relate_diagnostics_v1", "relate_programs_v1"
TABLES = (RELATIONS, DIAGNOSTICS)
MESSAGE_CHARS = 1000
# Name of the sort key that keeps the rows of a file together, and the order of those.
FILE_NUMBER = ""
ROW_ORDER = ("src_id", *(name for name in catalog.table(RELATIONS).primary_key if name != "src_id"))


class SolvedRepository:
    """A repository whose names, values and calls are resolved, with its files in the order of their paths."""

    def __init__(self, programs: Sequence[Program], package: str = "") -> None:
        """Solve programs, of which `program.solved_part` is enough.

        `package` is the import name of the package that their root is.
        """
        self.programs = sorted(programs, key=lambda program: program.path)
        self._module_names = module_names_by_path(self.programs, package)
        self._emitter: RelationEmitter | None = None
        self._failure: Exception | None = None
        try:
            self._emitter = RelationEmitter(solve(self.programs, package=package))
        except MemoryError:
            raise
        # A bug here, or unforeseen code, costs the relations across files and no more.
        except Exception as error:  # noqa: BLE001
            self._failure = error

    def own_imports(self) -> OwnImports:
        """Count the absolute imports, and those that would resolve if another folder were the root."""
        return own_imports(self.programs, Modules(self._module_names))

    def index_definitions(self) -> None:
        """Index what the claims of tools name, for all processes that are forked from this one."""
        if self._emitter is not None:
            self._emitter.witnesses.index.definitions  # noqa: B018

    def file(self, number: int, program: Program) -> FileRelations:
        """Emit the rows of a file; its program must be whole, here only a part of it may be."""
        emitter, failure = self._emitter, self._failure
        rows = RelationRows(program.repo_id, program.file_id, program.path)
        if emitter is not None:
            try:
                rows = emitter.file_rows(number, program)
            except MemoryError:
                raise
            # Here only the rows of this file are lost; other files may still refer to it.
            except Exception as error:  # noqa: BLE001
                failure = error
        if failure is not None:
            message = f"{type(failure).__name__}: {failure}"[:MESSAGE_CHARS]
            rows.diagnostics.append(RelationDiagnostic("relate", "not_related", message, severity="error"))
        unlisted = emitter.unlisted.get(number, ()) if emitter is not None else ()
        add_file_relations(rows, self._module_names[program.path], unlisted)
        return FileRelations(program, rows)


class FileRelations(NamedTuple):
    """The relations and diagnostics of one file."""

    program: Program
    rows: RelationRows

    def digest(self) -> str:
        """Return a digest of the rows without building them: after an edit most files have equal rows."""
        packed = self.rows.packed()
        head = (self.program.scope_rows, self.rows.diagnostics, len(packed))
        digest = hashlib.sha256(msgpack.encode(head))
        digest.update(packed)
        return digest.hexdigest()


def tables_of(files: Sequence[FileRelations]) -> dict[str, pa.RecordBatch]:
    """Return the rows of files by table: file by file, those of a file in the table's order."""
    # Together: many files are small, and their Arrow arrays would take as long as their rows.
    batches = [relation_batch([each.rows for each in files])]
    owners = [np.repeat(np.arange(len(files)), [len(each.rows) for each in files])]
    for number, each in enumerate(files):
        for rows in unpack_rows(each.program.scope_rows) if each.program.scope_rows else ():
            batches.append(rows)
            owners.append(np.full(rows.num_rows, number))
    whole = pa.concat_batches(batches)
    keys = [pa.array(np.concatenate(owners)), *map(whole.column, ROW_ORDER)]
    names = [FILE_NUMBER, *ROW_ORDER]
    order = pc.sort_indices(
        pa.RecordBatch.from_arrays(keys, names), sort_keys=[(name, "ascending") for name in names]
    )
    diagnostics = [
        _diagnostics_batch(program, rows.diagnostics) for program, rows in files if rows.diagnostics
    ]
    return {RELATIONS: whole.take(order), DIAGNOSTICS: pa.concat_batches(diagnostics or [_no_diagnostics()])}


def program_rows(files: Sequence[tuple[Program, bytes, str]]) -> pa.RecordBatch:
    """Return the rows of programs, given with their encoded form and digest, in `relate_programs_v1`."""
    cells = {
        "repo_id": [program.repo_id for program, _, _ in files],
        "file_id": [program.file_id for program, _, _ in files],
        "path": [program.path for program, _, _ in files],
        "program": [encoded for _, encoded, _ in files],
        "rows_digest": [digest for _, _, digest in files],
    }
    return pa.RecordBatch.from_pydict(cells, arrow_schema(catalog.table(PROGRAMS)))


def _diagnostics_batch(program: Program, diagnostics: Sequence[RelationDiagnostic]) -> pa.RecordBatch:
    table = catalog.table(DIAGNOSTICS)
    unique = list(dict.fromkeys(diagnostics))
    # Not `each.kind`: normalize numbers disagreements, too, and the graph has nodes of both.
    places = [("relate", each.code, each.place[0], each.place[1]) for each in unique]
    ids = FileIds(program.ids).diagnostics(places)
    rows = [
        {
            "repo_id": program.repo_id,
            "file_id": program.file_id,
            "path": program.path,
            "diag_id": diag_id,
            "diag_kind": each.kind,
            "diag_severity": each.severity,
            "diag_code": each.code,
            "diag_line_start": each.place[2],
            "diag_line_end": each.place[2],
            "message": each.message,
            "bstart": each.place[0],
            "bend": each.place[1],
        }
        for diag_id, each in zip(ids, unique, strict=True)
    ]
    arrays = [array(column, [row.get(column.name) for row in rows]) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))


@cache
def _no_diagnostics() -> pa.RecordBatch:
    """Return the rows of most chunks."""
    return pa.RecordBatch.from_pylist([], arrow_schema(catalog.table(DIAGNOSTICS)))
