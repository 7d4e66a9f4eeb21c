"""Questions and their answers, the same for the command line, for Python and for servers.

    answer(reader, "callers", ("Session.send",), limit=20, depth=2).rows

`VERBS` says of each verb what it is about, where its function is, and what it takes. A function is imported
when it is asked for, so that an answer needs no more than its own code. Tests: `tests/unit/query/test_ask.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from codeanatomy.errors import NAME_SHOWN, AmbiguousSymbol, UnknownName, UsageError
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.query.answers import DEEPEST, Answer, Coverage, Freshness, Symbol, check_limit
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.status.freshness import source_freshness
from codeanatomy.query.symbols import is_text, resolve, with_lines
from codeanatomy.query.verbs.result import Found

# Of what has changed, so many are named.
NAMED = 10
# Of so many repositories the sources are looked at for each answer.
LOOKED_AT = 5


# What names are taken for: a text to look for, symbols, an edge, or where to look.
Takes = Literal["nothing", "text", "symbol", "two symbols", "symbols", "edge", "place"]

# How many names that are, at least and at most.
COUNTS: dict[Takes, tuple[int, int]] = {
    "nothing": (0, 0),
    "text": (1, 1),
    "symbol": (1, 1),
    "two symbols": (2, 2),
    "symbols": (0, 1000),
    "edge": (1, 2),
    "place": (0, 1),
}


class Verb(Struct, frozen=True):
    """A question: what it is about, where its function is, and what it takes."""

    name: str
    doc: str
    # Module below `query.verbs`; the function has the verb's name.
    module: str
    takes: Takes = "symbol"
    # Whether it can be asked of one repository alone; a symbol is of one anyway.
    of_repository: bool = False


VERBS = {
    verb.name: verb
    for verb in (
        Verb("find", "Find definitions by name, qualified name or pattern.", "find", "text", True),
        Verb("show", "Show a symbol: its signature, docstring and place, and how it is used.", "show"),
        Verb("callers", "List who calls a symbol.", "calls"),
        Verb("callees", "List what a symbol calls.", "calls"),
        Verb("refs", "List every place that means a symbol.", "refs"),
        Verb(
            "path", "Show how one symbol leads to another, by calls or by data flow.", "path", "two symbols"
        ),
        Verb("impact", "List what may break if symbols change, nearest first.", "impact", "symbols"),
        Verb("flows", "Show where the value of a parameter or variable goes.", "flows"),
        Verb("explain", "Show the evidence and the rule behind edges.", "explain", "edge"),
        Verb("unused", "List functions and classes that nothing uses.", "unused", "nothing", True),
        Verb("cycles", "List what imports, or calls, itself through others.", "cycles", "nothing", True),
        Verb("unresolved", "List what could not be resolved, and why.", "unresolved", "place", True),
        Verb("errors", "List what failed when the repositories were built.", "errors", "nothing", True),
        Verb("stats", "Count what the graph has, by kind.", "stats", "nothing", True),
    )
}


class Asked(Struct, frozen=True):
    """A question that was understood."""

    symbols: tuple[Symbol, ...]
    found: Found


def function_of(verb: str) -> Callable[..., Found]:
    """The function of a verb."""
    module = import_module(f"codeanatomy.query.verbs.{verb_named(verb).module}")
    function: Callable[..., Found] = getattr(module, verb)
    return function


def verb_named(name: str) -> Verb:
    """A verb, by its name."""
    if name not in VERBS:
        raise UnknownName("verb", name, VERBS)
    return VERBS[name]


def understood(
    reader: Reader, verb: str, names: Sequence[str], repo_id: str | None = None, **options: Any
) -> Asked:
    """A question as a query that is not run yet; names are resolved."""
    asked, function = verb_named(verb), function_of(verb)
    _refuse_nonsense(names, repo_id, options)
    if asked.of_repository:
        options["repo_id"] = repo_id
    _refuse_other_than(asked, names)
    if asked.takes in ("nothing", "text"):
        return Asked((), function(reader, *names, **options))
    if asked.takes == "edge" and len(names) == 1:
        return Asked((), function(reader, edge_id=names[0], **options))
    symbols = tuple(with_lines(reader, _resolved(reader, names, repo_id)))
    if asked.takes == "symbols":
        return _of_several(reader, function, symbols, repo_id, options)
    if asked.takes == "place":
        return Asked(symbols, function(reader, symbol=next(iter(symbols), None), **options))
    if asked.takes == "edge":
        return Asked(symbols, function(reader, start=symbols[0], end=symbols[1], **options))
    return Asked(symbols, function(reader, *symbols, **options))


def _resolved(reader: Reader, names: Sequence[str], repo_id: str | None) -> list[Symbol]:
    """The symbols of some names; one that several repositories have is of the repository of the others."""
    found: dict[str, Symbol] = {}
    unclear: dict[str, AmbiguousSymbol] = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = resolve(reader, name, repo_id)
        except AmbiguousSymbol as problem:
            unclear[name] = problem
    repositories = {symbol.repo_id for symbol in found.values()}
    for name, several in unclear.items():
        if len(repositories) != 1:
            raise several
        found[name] = resolve(reader, name, *repositories)
    return [found[name] for name in names]


def _of_several(
    reader: Reader,
    function: Callable[..., Found],
    symbols: tuple[Symbol, ...],
    repo_id: str | None,
    options: dict[str, Any],
) -> Asked:
    """A question about symbols that were named, or about those that differ from a commit."""
    diff = options.pop("diff", None)
    if diff is None and not symbols:
        raise UsageError("impact of what?", "name symbols, or a commit to compare with: --diff main")
    if diff is not None and symbols:
        raise UsageError("symbols and a commit", "name symbols, or a commit to compare with, not both")
    if diff is None:
        return Asked(symbols, function(reader, symbols, **options))
    from codeanatomy.query.diff.changed_definitions import changed_symbols

    repositories = reader.snapshot.chosen(repo_id)
    if len(repositories) > 1:
        raise UsageError("the lake has several repositories", "name one: --repo-id")
    ((name, row),) = repositories.items()
    if not row.repo_root:
        raise UsageError(f"where {name} was built from is not known", "name symbols instead of a commit")
    if Path(row.repo_root).is_file():
        raise UsageError(f"{name} was built from an archive, which has no commits", "name symbols")
    changes = changed_symbols(reader, Path(row.repo_root), diff, repo_id=name)
    names = [symbol.symbol for symbol in changes.symbols]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    told = (f"changed: {', '.join(names[:NAMED])}{more}",) if names else ()
    return Asked(changes.symbols, function(reader, changes.symbols, notes=(*changes.notes, *told), **options))


def answer(
    reader: Reader,
    verb: str,
    names: Sequence[str],
    *,
    limit: int,
    repo_id: str | None = None,
    **options: Any,
) -> Answer:
    """An answer of so many rows at most, with how fresh it is and what is not covered."""
    check_limit(limit)
    chosen = reader.snapshot.chosen(repo_id)
    asked = understood(reader, verb, names, repo_id, **options)
    found = asked.found
    rows = reader.rows(found.query, limit)
    total = rows[0][-1] if rows else 0
    records = tuple(dict(zip(found.columns, row, strict=False)) for row in rows)
    # Those it is about; of no rows, those that were looked at.
    named: set[Any] = {symbol.repo_id for symbol in asked.symbols} or {row.get("repo_id") for row in records}
    about = [row for name, row in chosen.items() if name in named] or list(chosen.values())
    return Answer(
        verb,
        tuple(names),
        asked.symbols,
        found.columns,
        records,
        total,
        total - len(rows),
        f"--limit {total}" if total > len(rows) else None,
        found.notes,
        reader.snapshot.run_id,
        freshness_of(reader, about),
        coverage_of(about),
    )


def errors_answer(root: str, repo_id: str | None, limit: int, as_of: str | None) -> Answer:
    """What failed, also in a lake in which nothing was published yet, or not that repository."""
    from codeanatomy.query.status.failures import failures
    from codeanatomy.query.verbs.errors import COLUMNS, as_row

    check_limit(limit)
    told = failures(root, repo_id, limit, as_of)
    runs = recorded_runs(root, as_of)
    published = Snapshot.after(root, runs) if any(run.succeeded for run in runs) else None
    built = [row for name, row in (published.repositories if published else {}).items() if name in told.runs]
    return Answer(
        "errors",
        (),
        (),
        COLUMNS,
        tuple(map(as_row, told.rows)),
        told.total,
        told.total - len(told.rows),
        f"--limit {told.total}" if told.total > len(told.rows) else None,
        () if published else ("nothing is published yet",),
        runs[-1].run_id,
        freshness_of(LightReader(published), built) if published else (),
        coverage_of(built),
    )


def _refuse_other_than(verb: Verb, names: Sequence[str]) -> None:
    """Refuse more names than a verb takes, or fewer."""
    least, most = COUNTS[verb.takes]
    if not least <= len(names) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise UsageError(
            f"{verb.name} takes {wanted} names, not {len(names)}",
            f"`codeanatomy {verb.name} --help` tells which",
        )


def _refuse_nonsense(names: Sequence[str], repo_id: str | None, options: Mapping[str, Any]) -> None:
    """What the command line refuses by itself, for those who ask in Python."""
    depth = options.get("depth", 1)
    if not 1 <= depth <= DEEPEST:
        raise UsageError(f"a depth of {depth}", f"it is at least 1, at most {DEEPEST}")
    for typed in (*names, repo_id, *options.values()):
        if isinstance(typed, str) and not is_text(typed):
            raise UsageError(f"{typed[:NAME_SHOWN]!r} is no text", "type it in UTF-8")


def freshness_of(reader: Reader, rows: Sequence[RunManifest]) -> tuple[Freshness, ...]:
    """How fresh some repositories are; the sources of the first few are looked at."""
    states = [source_freshness(reader, row) for row in rows[:LOOKED_AT]]
    states += ["unknown"] * (len(rows) - len(states))
    return tuple(
        Freshness(row.repo_id, row.run_id, row.finished_at, row.git_commit, state)
        for row, state in zip(rows, states, strict=True)
    )


def coverage_of(rows: Sequence[RunManifest]) -> tuple[Coverage, ...]:
    """What the lake knows of some repositories."""
    return tuple(
        Coverage(
            row.repo_id,
            row.row_counts.get("repo_file_blobs_v1"),
            sum(row.error_counts.values()),
            "graph" in row.plan_fingerprints,
        )
        for row in rows
    )
