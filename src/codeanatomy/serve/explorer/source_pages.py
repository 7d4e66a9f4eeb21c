"""Show files and folders of a repository.

    GET /r/shop/                            the root folder
    GET /r/shop/f/shop                      a folder: files, subfolders, symbols
    GET /r/shop/f/shop/cart.py#L12          a file; each name leads to its definition
    GET /r/shop/f/shop/big.py?line=4000     the part of a long file with this line

Tests: `tests/unit/serve/test_source_pages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from codeanatomy.errors import MAX_NAME_CHARS, UnknownName
from codeanatomy.query.engines.statements import Query, nodes
from codeanatomy.query.walks.docstrings import docstrings
from codeanatomy.query.walks.identifiers import FileDefinition, file_names
from codeanatomy.serve.explorer import links, source_names
from codeanatomy.serve.explorer.source_names import kind_label, linked_names
from codeanatomy.serve.explorer.source_text import SourceFile, lexed, render_lines, source_file, visible
from codeanatomy.serve.explorer.visit import Page, Visit

MAX_ENTRIES = 2_000
MAX_OUTLINE = 1_000
# Packages on the page of a repository, and the levels of them.
MAX_PACKAGES = 60
PACKAGE_LEVELS = 2
OVERVIEW_CHARS = 2_000
MAX_LINE = 2**31
# Parts of a long file before and after the shown one that have a link; the first and the last have one, too.
NEAR_PARTS = 10
# Depth of the outline that is shown by indentation.
MAX_DEPTH = 6
# Paths that are compared with one that does not exist.
MAX_GUESSES = 20_000


class FolderEntry(Struct, frozen=True):
    """A file or folder directly inside of a folder, with counts of what is below it."""

    name: str
    is_folder: bool
    files: int
    classes: int
    functions: int


def repository_page(visit: Visit) -> Response:
    """List the root folder of a repository."""
    return _folder_page(visit, visit.repo_id, "")


def file_page(visit: Visit) -> Response:
    """Show a file, or list a folder."""
    repo_id, path = visit.repo_id, str(visit.request.path_params["path"]).strip("/")
    file = source_file(visit.lake.reader, repo_id, path) if path else None
    if file is None:
        return _folder_page(visit, repo_id, path)
    values = {"file": file, "crumbs": crumbs(visit, repo_id, path), **_source(visit, file)}
    return visit.page("file.html", repo_id=repo_id, **values)


def _source(visit: Visit, file: SourceFile) -> dict[str, Any]:
    """Return the lines of the part of a file with the line in the address, and the outline of the file."""
    if file.text is None:
        return {"lines": (), "outline": (), "parts": (), "line_count": 0, "more_outline": 0}
    source = lexed(file.text)
    parts = source.parts
    line = visit.number("line", 1, 1, MAX_LINE)
    shown = next((number for number, part in enumerate(parts) if line <= part[1]), len(parts) - 1)
    first, last = parts[shown]
    within = source.span(first)[0], source.span(last)[1]
    names = file_names(visit.lake.reader, file.repo_id, file.path, within)
    identifiers = linked_names(visit, file.repo_id, file.path, file.text, names, first, last)
    definitions = [
        each for each in names.definitions if each.kind != "PARAMETER" and each.subkind != "lambda"
    ]
    page = links.file_link(file.repo_id, file.path)
    return {
        "lines": render_lines(file.text, first, last, names=identifiers),
        "outline": outline(visit, file, definitions[:MAX_OUTLINE], range(first, last + 1)),
        "more_outline": len(definitions) - MAX_OUTLINE,
        "parts": [
            {"first": start, "last": end, "link": visit.page_link(page, line=start), "shown": start == first}
            for number, (start, end) in enumerate(parts)
            if number in (0, len(parts) - 1) or abs(number - shown) <= NEAR_PARTS
        ],
        "line_count": source.line_count,
    }


def outline(
    visit: Visit, file: SourceFile, definitions: Sequence[FileDefinition], shown: range
) -> list[dict[str, Any]]:
    """Return the definitions of a file with their depth, their last line, and links to their first."""
    source = lexed(file.text or "")
    rows: list[dict[str, Any]] = []
    around: list[int] = []
    for each in definitions:
        while around and around[-1] <= each.bstart:
            around.pop()
        link = visit.file_link(file.repo_id, file.path, each.line)
        rows.append(
            {
                "name": each.name,
                "kind": kind_label(each.kind, each.subkind),
                "depth": min(len(around), MAX_DEPTH),
                "last": source.line_of(max(each.bstart, each.bend - 1)),
                "link": f"#L{each.line}" if each.line in shown else link,
            }
        )
        around.append(each.bend)
    return rows


def crumbs(visit: Visit, repo_id: str, path: str) -> list[tuple[str, str]]:
    """Return the folders around a file as texts and addresses, from the repository to itself."""
    parts = path.split("/") if path else []
    below = [(part, visit.file_link(repo_id, "/".join(parts[: at + 1]))) for at, part in enumerate(parts)]
    return [(repo_id, visit.repository_link(repo_id)), *below]


def _folder_page(visit: Visit, repo_id: str, path: str) -> Response:
    """List a folder. Raise UnknownName if the repository has neither a file nor a folder of this path."""
    entries, total = _entries(visit, repo_id, f"{path}/" if path else "")
    if not entries and path:
        raise _unknown_path(visit, repo_id, path)
    packages = _packages(visit, repo_id, path)
    return visit.page(
        "folder.html",
        repo_id=repo_id,
        path=path,
        crumbs=crumbs(visit, repo_id, path),
        entries=[(each, visit.file_link(repo_id, f"{path}/{each.name}".lstrip("/"))) for each in entries],
        more=total - len(entries),
        packages=packages,
        overview=visible(next((doc for _, folder, doc in packages if folder == path or not path), "")),
    )


def _packages(visit: Visit, repo_id: str, path: str) -> list[tuple[str, str, str]]:
    """Return names, folders and docstrings: of a folder's package, or of a repository's upper packages."""
    query = Query(
        "SELECT m.node_id, m.qualname, p.path FROM p JOIN m ON m.qualname = p.qualname"
        " WHERE p.path = ? OR (? = '' AND length(p.qualname) - length(replace(p.qualname, '.', '')) < ?)",
        {"p": nodes(("PACKAGE",), repo_id), "m": nodes(("MODULE",), repo_id)},
        (path, path, PACKAGE_LEVELS),
        order=("qualname", "node_id"),
    )
    rows = visit.lake.reader.rows(query, MAX_PACKAGES)
    docs = docstrings(visit.lake.reader, [row[0] for row in rows])
    return [(symbol, folder, docs.get(node, "")[:OVERVIEW_CHARS]) for node, symbol, folder, _ in rows]


def _entries(visit: Visit, repo_id: str, prefix: str) -> tuple[list[FolderEntry], int]:
    """Return what is directly inside of a folder, folders first, and the number without the limit."""
    query = Query(
        "SELECT split_part(substr(n.path, ?), '/', 1) AS name, contains(substr(n.path, ?), '/') AS is_folder,"
        " count(DISTINCT n.path) AS files, count(CASE WHEN n.node_kind = 'CLASS' THEN 1 END) AS classes,"
        " count(CASE WHEN n.node_kind = 'FUNCTION' AND n.subkind <> 'lambda' THEN 1 END) AS functions"
        " FROM n WHERE left(n.path, ?) = ? GROUP BY 1, 2",
        {"n": nodes(("FILE", "CLASS", "FUNCTION"), repo_id)},
        (len(prefix) + 1, len(prefix) + 1, len(prefix), prefix),
        order=("is_folder DESC", "name"),
    )
    rows = visit.lake.reader.rows(query, MAX_ENTRIES)
    return [FolderEntry(*row[:-1]) for row in rows], rows[0][-1] if rows else 0


def _unknown_path(visit: Visit, repo_id: str, path: str) -> UnknownName:
    query = Query("SELECT f.path FROM f", {"f": nodes(("FILE",), repo_id)}, order=("path",))
    paths = [each for each, _ in visit.lake.reader.rows(query, MAX_GUESSES)]
    return UnknownName("file", path, get_close_matches(path[:MAX_NAME_CHARS], paths, 10))


PAGES: tuple[tuple[str, Page], ...] = (
    ("/r/{repo}/", repository_page),
    ("/r/{repo}/f/{path:name}", file_page),
    *source_names.PAGES,
)
FORMS: tuple[tuple[str, Page], ...] = ()
