"""Find the places that may use a definition, or run one, although no edge shows it.

    unresolved_uses(reader, ("send",), "shop")     # [("shop", "send", "shop/mail.py", 104, 9)]
    unresolved_calls(reader, {"function:3f..."})   # [("shop/mail.py", 9)]

`callers`, `refs` and `impact` note with the first that their answer may lack rows (`note_unresolved_uses`),
`callees` with the second (`note_unresolved_calls`). `unused` holds back definitions of the first's names.

Tests: `tests/unit/query/test_unresolved_uses.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain

from msgspec import structs

from codeanatomy.query.answers import Symbol, place
from codeanatomy.query.engines.statements import Query, Reader, Row, Slice, edges, nodes
from codeanatomy.query.verbs.result import VerbResult
from codeanatomy.query.walks.enclosing import CALLER_KINDS, innermost_sql

NAMED_KINDS = ("FUNCTION", "CLASS")


def unresolved_uses(reader: Reader, names: Sequence[str], repo_id: str | None) -> list[Row]:
    """Return the attributes of given names that are not resolved, or not to all of their targets."""
    return reader.rows(
        Query(
            "SELECT a.repo_id, a.name, a.path, a.bstart, a.line FROM a JOIN p ON p.entity_id = a.node_id"
            # A call whose candidates were cut may have any target of the name; the edge's id has the call's.
            " UNION SELECT a.repo_id, a.name, a.path, a.bstart, a.line FROM c"
            " JOIN s ON s.node_id = split_part(c.entity_id, ';', 2)"
            " JOIN a ON a.file_id = s.file_id AND a.bstart >= s.bstart AND a.bend <= s.bend",
            {
                "a": nodes(("ATTRIBUTE_REF",), repo_id, name=names),
                "s": nodes(("CALLSITE",), repo_id),
                "p": unresolved_nodes("ATTRIBUTE_REF"),
                "c": Slice("cpg_props", entity_kind=("edge",), prop_key=("cut",)),
            },
            order=("repo_id", "name", "path", "bstart"),
        )
    )


def unresolved_nodes(kind: str) -> Slice:
    """Return the properties with the reason why nodes of a kind are not resolved."""
    return Slice("cpg_props", entity_kind=("node",), prop_key=("unresolved",), node_kind=(kind,))


def note_unresolved_uses(reader: Reader, result: VerbResult, *symbols: Symbol) -> VerbResult:
    """Add the notes to a result about symbols; it is unknown whether that is all if there are any."""
    notes = unresolved_notes(reader, symbols)
    return structs.replace(result, notes=(*result.notes, *notes), unknown=bool(notes))


def unresolved_notes(reader: Reader, symbols: Iterable[Symbol]) -> tuple[str, ...]:
    """Return a note if places that may use the symbols could not be resolved."""
    named = list(_named_by_attributes(reader, symbols))
    names = sorted({each.symbol.rpartition(".")[2] for each in named})
    repositories = {each.repo_id for each in named}
    repo_id = next(iter(repositories)) if len(repositories) == 1 else None
    uses = unresolved_uses(reader, names, repo_id) if names else []
    ids = [node for each in named for node in each.ids]
    # Null, as of a name in an f-string, comes first.
    uses = sorted(
        {*uses, *_uses_of_foreign_values(reader, names, ids, repo_id)},
        key=lambda row: [(cell is not None, cell) for cell in row],
    )
    if not uses:
        return ()
    _, name, path, _, line = uses[0]
    what = f".{name}" if len(names) == 1 else "these names"
    count = f"{len(uses):,} use{'s' if len(uses) > 1 else ''} of {what}, such as {place(path, line)},"
    return (f"unknown whether this is all: {count} could not be resolved",)


def _uses_of_foreign_values(
    reader: Reader, names: Sequence[str], ids: Sequence[str], repo_id: str | None
) -> list[Row]:
    """Return the attributes of given names of values that an imported object from outside holds.

    After `from django.conf import settings` nothing is known of `settings.QUEUE`: `settings.QUEUE.send` may
    be ours, although its target is a name outside. Those that may mean one of the definitions `ids` are left
    out: an edge shows it.
    """
    if not names:
        return []
    rows = reader.rows(
        Query(
            "SELECT DISTINCT a.repo_id, a.name, a.path, a.bstart, a.line, q.qualname FROM a"
            " JOIN e ON e.src_node_id = a.node_id JOIN q ON q.node_id = e.dst_node_id"
            " LEFT JOIN k ON k.src_node_id = a.node_id WHERE k.src_node_id IS NULL",
            {
                "a": nodes(("ATTRIBUTE_REF",), repo_id, name=names),
                "e": edges(("REFERS_TO",), repo_id),
                "k": edges(("REFERS_TO",), repo_id, dst_node_id=ids),
                "q": nodes(("QUALIFIED_NAME",), repo_id),
            },
        )
    )
    # Of `django.conf.settings.QUEUE.send` those that `settings.QUEUE` may be an attribute of.
    objects = {row[5]: _prefixes(row[5])[:-2] for row in rows}
    if not objects:
        return []
    imported = reader.rows(
        Query(
            "SELECT DISTINCT q.qualname FROM e JOIN q ON q.node_id = e.dst_node_id",
            {
                "e": edges(("IMPORTS_NAME",), repo_id),
                "q": nodes(("QUALIFIED_NAME",), repo_id, qualname=sorted({*chain(*objects.values())})),
            },
        )
    )
    known = {name for (name,) in imported}
    return [row[:5] for row in rows if not known.isdisjoint(objects[row[5]])]


def _prefixes(name: str) -> list[str]:
    """Return the beginnings of a dotted name, the whole name last.

    >>> _prefixes("a.b.c")
    ['a', 'a.b', 'a.b.c']
    """
    return list(accumulate(name.split("."), "{}.{}".format))


def _named_by_attributes(reader: Reader, symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    """Yield the functions, classes, and variables of classes: of other variables no attribute is the name."""
    for each in symbols:
        owner = {"c": nodes(("CLASS",), each.repo_id, qualname=(each.symbol.rpartition(".")[0],))}
        if each.kind in NAMED_KINDS or (
            each.kind == "BINDING" and reader.rows(Query("SELECT c.node_id FROM c LIMIT 1", owner))
        ):
            yield each


def unresolved_calls(reader: Reader, functions: Collection[str]) -> list[Row]:
    """Return the path and line of each call in functions and modules that may have unknown targets."""
    around = nodes(CALLER_KINDS, node_id=tuple(sorted(functions)))
    rows = reader.rows(Query("SELECT DISTINCT w.path FROM w", {"w": around}))
    paths = sorted(path for (path,) in rows if path is not None)
    columns = "src_id, owner_file_id, path, line, bstart, bend"
    calls = f"(SELECT DISTINCT {columns} FROM r WHERE reason IS NOT NULL)"
    query = Query(
        f"SELECT u.path, u.line FROM w JOIN ({innermost_sql(calls, 'src_id', 'path', 'line')}) AS u"
        " ON u.inner_id = w.node_id",
        {
            "r": Slice("relations_v1", relation_kind=("CALLS",), path=paths),
            "d": nodes(CALLER_KINDS, path=paths),
            "w": around,
        },
        order=("path", "line"),
    )
    return reader.rows(query) if paths else []


def note_unresolved_calls(reader: Reader, result: VerbResult, functions: Collection[str]) -> VerbResult:
    """Add a note to a result about what functions call; it is unknown whether that is all if there is one."""
    calls = unresolved_calls(reader, functions) if functions else []
    if not calls:
        return result
    first = place(*calls[0])
    what = f"the call in {first}" if len(calls) == 1 else f"{len(calls):,} calls, such as in {first},"
    note = f"unknown whether this is all: {what} could not be resolved, or not to all targets"
    return structs.replace(result, notes=(*result.notes, note), unknown=True)
