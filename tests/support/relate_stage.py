"""Run the relate stage without Spark: programs, values and rows of sources in memory.

values = solved({"main.py": "def f(): ...\\nf()\\n"})
call_edges(values)       # {"main": ["main.f"]}
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.file_view import FileView
from codeanatomy.node_ids import file_id
from codeanatomy.relate.compile.file_program import compile_file
from codeanatomy.relate.emit.calls import is_counted
from codeanatomy.relate.emit.relations import RelationEmitter
from codeanatomy.relate.program import OBJ_FUNCTION, Program
from codeanatomy.relate.relation_rows import RelationDiagnostic, RelationRows
from codeanatomy.relate.repository import SolvedRepository, tables_of
from codeanatomy.relate.values.analysis import solve
from codeanatomy.relate.values.results import callees, program_objects
from codeanatomy.relate.values.rules.attributes import ACCESS_BY_OP
from codeanatomy.relate.values.solver import strong
from codeanatomy.relate.values.state import State
from codeanatomy.sources.listing import may_be_source
from support.callgraph_score import cases
from support.normalize_stage import OPTIONS, source_of

# Codes of disagreements with other witnesses.
WITNESS_CODES = ("scip_disagrees", "pyrefly_disagrees")
# Roles of sites whose external callees count; methods of builtin types run by operators do not.
EXPLICIT_ROLES = frozenset({"call", "decorator"})


def witnessed(text: str | bytes, path: str = "main.py", repo_id: str = "test") -> FileView:
    """Extract a text."""
    source = source_of(text, path)
    witnesses = (ast_files_v1, symtable_files_v1, libcst_files_v1)
    rows = {witness.__name__: witness(source, OPTIONS).cells for witness in witnesses}
    return FileView(repo_id, file_id(repo_id, path), path, rows)


def programs_of(sources: Mapping[str, str | bytes]) -> list[Program]:
    """Compile the files of a repository."""
    return [compile_file(witnessed(text, path)) for path, text in sources.items()]


def solved(sources: Mapping[str, str | bytes]) -> State:
    """Solve the values of a repository."""
    return solve(programs_of(sources))


def sources_below(folder: Path) -> dict[str, bytes]:
    """Return the sources of a folder by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".py", ".pyi", ".toml", ".cfg") and may_be_source(str(path))
    }


def relations(values: State, disagreements: list[RelationDiagnostic] | None = None) -> Iterator[RelationRows]:
    """Yield the relation rows of each file; add the disagreements of other witnesses to the list."""
    emitter = RelationEmitter(values)
    for file in range(len(values.programs)):
        rows = emitter.file_rows(file, values.programs[file])
        if disagreements is not None:
            disagreements += (each for each in rows.diagnostics if each.code in WITNESS_CODES)
        yield rows


def repository_rows(programs: Sequence[Program]) -> Iterator[tuple[Program, dict[str, pa.RecordBatch]]]:
    """Yield each file of a repository with its rows by table."""
    repository = SolvedRepository(programs)
    for number, program in enumerate(repository.programs):
        yield program, tables_of([repository.file(number, program)])


def call_edges(values: State) -> dict[str, list[str]]:
    """Return callees by caller, both sorted, as the values give them: the expected CALL_GRAPH rows.

    Applying `property`, `staticmethod` or `classmethod` is no call; of a class the constructors count.
    """
    edges: dict[str, set[str]] = {}
    for file, number in values.calls.callees:
        site = values.programs[file].sites[number]
        for callee, _ in callees(values, (file, number)):
            kind, first, _, _ = values.objects[callee]
            is_function = kind == OBJ_FUNCTION
            if is_counted(values, callee) and (is_function or site.role in EXPLICIT_ROLES):
                name = values.qualified_name(callee) if is_function else str(first)
                edges.setdefault(_caller(values, file, site.function), set()).add(name)
    for file, program in enumerate(values.programs):
        for op in program.ops:
            if op[0] in ACCESS_BY_OP and op[-1] >= 0:
                caller = _caller(values, file, program.sites[op[-1]].function)
                accessors = values.calls.by_access.get((op[2], ACCESS_BY_OP[op[0]]), {})
                for receiver in program_objects(values, file, op[1]):
                    for function in accessors.get(strong(receiver), ()):
                        edges.setdefault(caller, set()).add(values.qualified_name(function))
    return {name: sorted(edges[name]) for name in sorted(edges)}


def _caller(values: State, file: int, function: int) -> str:
    """Return the qualified name of a function, or of the module if the number is -1."""
    if function < 0:
        return values.names[file]
    return values.qualified_name(values.object(OBJ_FUNCTION, file, function))


def digest(seed: int) -> str:
    """Hash all rows of the call-graph cases of several files; the seed decides the order of their sources."""
    total = hashlib.sha256()
    for case in cases():
        sources = list(sources_below(case.folder).items())
        if len(sources) > 1:
            random.Random(seed).shuffle(sources)
            for rows in relations(solved(dict(sources))):
                total.update(rows.packed())
    return total.hexdigest()
