"""Run a verb: resolve its symbols, evaluate its query, add freshness and coverage to the answer.

    answer(reader, "callers", ("Session.send",), limit=20, depth=2).rows

The command line and `Lake` call `answer`, `SparkLake` calls `resolve_request`. `VERBS` declares each verb:
its description, the module of its function, and the names it takes. The module is imported on first use, so
that an answer loads only the code it needs.

Tests: `tests/unit/query/test_ask.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, structs

from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import MAX_NAME_CHARS, AmbiguousSymbol, UnknownName, UsageError
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.query.answers import MAX_DEPTH, Answer, Coverage, Freshness, Symbol, check_limit
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Reader, RepositoryReader, Slice
from codeanatomy.query.source_lines import with_source_lines
from codeanatomy.query.status.freshness import source_freshness
from codeanatomy.query.symbols import is_text, resolve, with_binding_lines
from codeanatomy.query.verbs.result import VerbResult

# Changed symbols listed by name in a note.
MAX_NAMES_SHOWN = 10
# Repositories whose sources are compared with the lake for each answer.
MAX_SOURCES_CHECKED = 5


# How a verb interprets its names: a search text, symbols, an edge, or an optional symbol to search inside.
Takes = Literal["nothing", "text", "symbol", "two symbols", "symbols", "edge", "place"]

# Minimum and maximum number of names, and what they are.
NAME_COUNTS: dict[Takes, tuple[int, int, str]] = {
    "nothing": (0, 0, "no symbols"),
    "text": (0, 1, "one name or pattern"),
    "symbol": (1, 1, "one symbol"),
    "two symbols": (2, 2, "two symbols, FROM and TO"),
    "symbols": (0, 1000, "at most 1,000 symbols"),
    "edge": (1, 2, "an edge, or two symbols FROM and TO"),
    "place": (0, 1, "at most one symbol"),
}


class Verb(Struct, frozen=True):
    """Declaration of a verb: its description, the module of its function, and the names it takes."""

    name: str
    doc: str
    # Module below `query.verbs`; the function has the verb's name.
    module: str
    takes: Takes = "symbol"
    # Whether its function takes `repo_id`; a symbol already belongs to one repository.
    of_repository: bool = False


VERBS = {
    verb.name: verb
    for verb in (
        Verb("find", "Find definitions by name, qualified name or pattern.", "find", "text", True),
        Verb("show", "Show a symbol: its signature, docstring and place, and how it is used.", "show"),
        Verb("callers", "List the callers of a symbol.", "calls"),
        Verb("callees", "List what a symbol calls.", "calls"),
        Verb("refs", "List every reference to a symbol.", "refs"),
        Verb(
            "path",
            "Show the shortest path from one symbol to another, by calls or by data flow.",
            "path",
            "two symbols",
        ),
        Verb("impact", "List what may break if symbols change, nearest first.", "impact", "symbols"),
        Verb("flows", "Show where the value of a parameter or variable flows, or comes from.", "flows"),
        Verb("explain", "Show the evidence and the rule behind edges.", "explain", "edge"),
        Verb("unused", "List functions and classes that nothing uses.", "unused", "nothing", True),
        Verb("cycles", "List cycles of imports or of calls.", "cycles", "nothing", True),
        Verb("unresolved", "List what could not be resolved, and why.", "unresolved", "place", True),
        Verb("errors", "List what failed when the repositories were built.", "errors", "nothing", True),
        Verb("stats", "Count files, nodes, edges and calls, by kind.", "stats", "nothing", True),
    )
}


class ResolvedRequest(Struct, frozen=True):
    """The symbols that the names were resolved to, and the unevaluated result of the verb."""

    symbols: tuple[Symbol, ...]
    result: VerbResult


def verb_function(verb: str) -> Callable[..., VerbResult]:
    """Import the function of a verb."""
    module = import_module(f"codeanatomy.query.verbs.{get_verb(verb).module}")
    function: Callable[..., VerbResult] = getattr(module, verb)
    return function


def get_verb(name: str) -> Verb:
    """Return the declaration of a verb. Raise UnknownName if there is none."""
    if name not in VERBS:
        raise UnknownName("verb", name, VERBS)
    return VERBS[name]


def resolve_request(
    reader: Reader, verb: str, names: Sequence[str], repo_id: str | None = None, **options: Any
) -> ResolvedRequest:
    """Check the arguments, resolve the names and build the verb's query, without running it."""
    declared, function = get_verb(verb), verb_function(verb)
    _check_arguments(names, repo_id, options)
    if declared.of_repository:
        options["repo_id"] = repo_id
    _check_name_count(declared, names)
    of_one = () if repo_id is None else (repo_id,)
    if declared.takes in ("nothing", "text"):
        return ResolvedRequest((), _in_repositories(reader, of_one, function, *names, **options))
    if declared.takes == "edge" and len(names) == 1:
        result = _in_repositories(reader, of_one, function, edge_id=names[0], **options)
        return ResolvedRequest((), result)
    symbols = tuple(with_binding_lines(reader, _resolve_names(reader, names, repo_id)))
    if declared.takes == "symbols":
        return _resolve_symbols_or_diff(reader, function, symbols, repo_id, options)
    if declared.takes == "place":
        return ResolvedRequest(symbols, function(reader, symbol=next(iter(symbols), None), **options))
    of_symbols = {symbol.repo_id for symbol in symbols}
    if declared.takes == "edge":
        start, end = symbols
        result = _in_repositories(reader, of_symbols, function, start=start, end=end, **options)
        return ResolvedRequest(symbols, result)
    return ResolvedRequest(symbols, _in_repositories(reader, of_symbols, function, *symbols, **options))


def _in_repositories(
    reader: Reader, repo_ids: Collection[str], function: Callable[..., VerbResult], *args: Any, **options: Any
) -> VerbResult:
    """Run the function of a verb over some repositories, or over all if none is named."""
    of_some = RepositoryReader(reader, repo_ids or reader.snapshot.repositories)
    result = function(of_some, *args, **options)
    return structs.replace(result, query=of_some.query(result.query))


def _resolve_names(reader: Reader, names: Sequence[str], repo_id: str | None) -> list[Symbol]:
    """Resolve each name; an ambiguous one is looked up in the repository of the others, if that is one."""
    symbols: dict[str, Symbol] = {}
    ambiguous: dict[str, AmbiguousSymbol] = {}
    for name in dict.fromkeys(names):
        try:
            symbols[name] = resolve(reader, name, repo_id)
        except AmbiguousSymbol as error:
            ambiguous[name] = error
    repositories = {symbol.repo_id for symbol in symbols.values()}
    for name, several in ambiguous.items():
        if len(repositories) != 1:
            raise several
        symbols[name] = resolve(reader, name, *repositories)
    return [symbols[name] for name in names]


def _resolve_symbols_or_diff(
    reader: Reader,
    function: Callable[..., VerbResult],
    symbols: tuple[Symbol, ...],
    repo_id: str | None,
    options: dict[str, Any],
) -> ResolvedRequest:
    """Build the query for the named symbols or, with `diff`, for the definitions changed since a commit."""
    diff = options.pop("diff", None)
    if diff is None and not symbols:
        raise UsageError("impact needs a symbol or --diff", "name symbols, or a commit: --diff main")
    if diff is not None and symbols:
        raise UsageError("impact takes symbols or --diff, not both", "leave out the symbols or --diff")
    if diff is None:
        of_symbols = {symbol.repo_id for symbol in symbols}
        return ResolvedRequest(symbols, _in_repositories(reader, of_symbols, function, symbols, **options))
    from codeanatomy.query.diff.changed_definitions import changed_symbols

    repositories = reader.snapshot.select_repositories(repo_id)
    if len(repositories) > 1:
        raise UsageError("--diff works on one repository, the lake has several", "name one: --repo-id")
    ((name, row),) = repositories.items()
    if not row.repo_root:
        raise UsageError(
            f"the source folder of {name} is not recorded in the lake", "name symbols instead of --diff"
        )
    is_remote = not is_local(row.repo_root)
    if is_remote or Path(row.repo_root).is_file():
        raise UsageError(
            f"{name} was built from an {'object store' if is_remote else 'archive'}, which has no commits",
            "name symbols instead of --diff",
        )
    changes = changed_symbols(reader, Path(row.repo_root), diff, repo_id=name)
    names = [symbol.symbol for symbol in changes.symbols]
    more = f" and {len(names) - MAX_NAMES_SHOWN:,} more" if len(names) > MAX_NAMES_SHOWN else ""
    listed = (f"changed: {', '.join(names[:MAX_NAMES_SHOWN])}{more}",) if names else ()
    options["notes"] = (*changes.notes, *listed)
    result = _in_repositories(reader, (name,), function, changes.symbols, **options)
    return ResolvedRequest(changes.symbols, result)


def answer(
    reader: Reader,
    verb: str,
    names: Sequence[str],
    *,
    limit: int,
    repo_id: str | None = None,
    **options: Any,
) -> Answer:
    """Run a verb and return at most `limit` rows, with freshness and coverage of the repositories."""
    check_limit(limit)
    chosen = reader.snapshot.select_repositories(repo_id)
    with ThreadPoolExecutor(1) as pool:
        # Beside the queries, as soon as the repositories are known: both wait for files.
        early = pool.submit(freshness_of, reader, list(chosen.values())) if len(chosen) == 1 else None
        request = resolve_request(reader, verb, names, repo_id, **options)
        result = request.result
        # Repositories of the symbols, else of the rows; all that were searched if the answer is empty.
        named = {symbol.repo_id for symbol in request.symbols}
        if early is None and named:
            early = pool.submit(freshness_of, reader, _manifests(chosen, named))
        rows = reader.rows(result.query, limit)
        total = rows[0][-1] if rows else 0
        records = tuple(dict(zip(result.columns, row, strict=False)) for row in rows)
        if "source" in result.columns:
            records = with_source_lines(reader, records, with_graph(chosen.values()))
        manifests = _manifests(chosen, named or {record.get("repo_id") for record in records})
        freshness = early.result() if early else freshness_of(reader, manifests)
    return Answer(
        verb,
        tuple(names),
        request.symbols,
        result.columns,
        records,
        total,
        total - len(rows),
        f"--limit {total}" if total > len(rows) else None,
        result.notes,
        reader.snapshot.run_id,
        freshness,
        coverage_of(reader, manifests),
        result.unknown,
    )


def with_graph(rows: Iterable[RunManifest]) -> list[str]:
    """Return the repositories whose positions are those of their newest texts."""
    return [row.repo_id for row in rows if "graph" in row.plan_fingerprints]


def _manifests(chosen: Mapping[str, RunManifest], repo_ids: Collection[Any]) -> list[RunManifest]:
    return [row for name, row in chosen.items() if name in repo_ids] or list(chosen.values())


def errors_answer(root: str, repo_id: str | None, limit: int, as_of: str | None) -> Answer:
    """Answer the verb `errors`, also for a lake or a repository that has published nothing yet."""
    from codeanatomy.query.status.failures import failures
    from codeanatomy.query.verbs.errors import COLUMNS, failure_row

    check_limit(limit)
    failed = failures(root, repo_id, limit, as_of)
    runs = recorded_runs(root, as_of)
    published = Snapshot.after(root, runs) if any(run.succeeded for run in runs) else None
    repositories = published.repositories if published else {}
    built = [row for name, row in repositories.items() if name in failed.runs]
    return Answer(
        "errors",
        (),
        (),
        COLUMNS,
        tuple(map(failure_row, failed.rows)),
        failed.total,
        failed.total - len(failed.rows),
        f"--limit {failed.total}" if failed.total > len(failed.rows) else None,
        () if published else ("nothing is published yet",),
        runs[-1].run_id,
        freshness_of(LightReader(published), built) if published else (),
        coverage_of(LightReader(published), built) if published else (),
    )


def _check_name_count(verb: Verb, names: Sequence[str]) -> None:
    """Raise UsageError if a verb gets more or fewer names than it takes."""
    least, most, wanted = NAME_COUNTS[verb.takes]
    if not least <= len(names) <= most:
        raise UsageError(
            f"{verb.name} takes {wanted}, got {len(names):,}", f"see `codeanatomy {verb.name} --help`"
        )


def _check_arguments(names: Sequence[str], repo_id: str | None, options: Mapping[str, Any]) -> None:
    """Raise UsageError for values that the command line rejects by itself but Python callers may pass."""
    depth = options.get("depth", 1)
    if not 1 <= depth <= MAX_DEPTH:
        raise UsageError(f"--depth must be 1-{MAX_DEPTH}, got {depth}", "use a depth in this range")
    for value in (*names, repo_id, *options.values()):
        if isinstance(value, str) and not is_text(value):
            raise UsageError(f"{value[:MAX_NAME_CHARS]!r} is not valid Unicode text", "enter it in UTF-8")


def freshness_of(reader: Reader, rows: Sequence[RunManifest]) -> tuple[Freshness, ...]:
    """Return the freshness of repositories; only the sources of the first few are checked."""
    states = [source_freshness(reader, row) for row in rows[:MAX_SOURCES_CHECKED]]
    states += ["unknown"] * (len(rows) - len(states))
    return tuple(
        Freshness(row.repo_id, row.run_id, row.finished_at, row.git_commit, state)
        for row, state in zip(rows, states, strict=True)
    )


def coverage_of(reader: Reader, rows: Sequence[RunManifest]) -> tuple[Coverage, ...]:
    """Return how much of each repository the lake holds."""
    graphs = with_graph(rows)
    failed = _failed_files(reader, [row for row in rows if any(row.error_counts.values())])
    return tuple(
        Coverage(
            row.repo_id,
            row.row_counts.get("repo_file_blobs_v1"),
            sum(row.error_counts.values()),
            row.repo_id in graphs,
            failed.get(row.repo_id, 0),
        )
        for row in rows
    )


def _failed_files(reader: Reader, rows: Sequence[RunManifest]) -> dict[str, int]:
    """Count the files with failures of each repository: several extractors may fail on one."""
    if not rows:
        return {}
    query = Query(
        "SELECT x.repo_id, x.run_id, count(DISTINCT x.path) FROM x WHERE x.path <> '' GROUP BY 1, 2",
        {
            "x": Slice(
                "extract_error_artifacts",
                repo_id=[row.repo_id for row in rows],
                run_id=sorted({row.extract_run_id for row in rows}),
            )
        },
    )
    counts = {(repo, run): count for repo, run, count in reader.rows(query)}
    return {row.repo_id: counts.get((row.repo_id, row.extract_run_id), 0) for row in rows}
