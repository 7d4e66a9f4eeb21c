"""Make ids of names: the recipe for the ids of nodes and edges, with its version.

A *definition* is a module, class, function, lambda or comprehension. Its key is a hash of repository, path
and qualified path, the only hash of the recipe. Within a file, a qualified path is unique: repeated names
have a number. All other ids are text that is put together from a key:

>>> key = definition_key("shop", "shop/cart.py", "Cart.total")
>>> key
'-Ypa08bsXihimzV9'
>>> node_id("FUNCTION", key), node_id("PARAMETER", key, "self"), node_id("CALLSITE", key, 3)
('function:-Ypa08bsXihimzV9', 'parameter:-Ypa08bsXihimzV9.self', 'callsite:-Ypa08bsXihimzV9.000003')
>>> edge_id("CALLS", node_id("CALLSITE", key, 3), natural_id("QUALIFIED_NAME", "shop", "builtins.sum"))
'CALLS;callsite:-Ypa08bsXihimzV9.000003;qname:shop:builtins.sum'

- A node that is a definition, or has exactly one: prefix of its kind and key.
- A parameter or binding: prefix, key and name.
- Any other node in a file: prefix, key of the innermost definition around it, and its number among the nodes
  of its kind there, in source order. `file_ids` finds definitions and numbers.
- A node of no file: prefix, repository and its natural key, such as a qualified name.
- An edge: kind and ends, and a number if several edges have the same.

So an edit inside of a definition changes no id outside of it, and moving a definition in its file changes no
id at all. Ids are compared and sorted as text: numbers have a fixed width. `;` separates the ends of an edge
and is written as `%3B` within names. The forms in SQL are in `codeanatomy.sql_functions`.

Tests: `tests/unit/test_node_ids.py`.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping
from hashlib import sha256

from codeanatomy.catalog.kinds import NODE_KINDS
from codeanatomy.ids import URL_SAFE, frame

# Version of the recipe: a lake with ids of another version is built anew.
ID_VERSION = 2
# 96 bits. A billion keys collide with a probability of 6e-12; collisions are detected (`docs/ids.md`).
KEY_BYTES = 12
KEY_CHARS = 16
NUMBER_DIGITS = 6
# Natural keys of this length are cut, with a hash of the whole: no uncut one is as long as a cut one.
NATURAL_CHARS = 160
PREFIXES: Mapping[str, str] = {name: kind.prefix for name, kind in NODE_KINDS.items()}
# Number of nodes without a span, which share one id per kind and file.
UNPLACED = "unplaced"
_NUMBERS = [f"{number:0{NUMBER_DIGITS}}" for number in range(10_000)]


def definition_key(repo_id: str, path: str, qualified: str = "") -> str:
    """Return the key of a definition; of the module, and its file, without a qualified path."""
    digest = sha256(frame(repo_id, path, qualified)).digest()
    return b2a_base64(digest[:KEY_BYTES], newline=False).translate(URL_SAFE).decode()


def node_id(kind: str, key: str, part: str | int | None = None) -> str:
    """Return the id of the node of a definition, or of a part of it by name or number."""
    if part is None:
        return f"{PREFIXES[kind]}:{key}"
    return f"{PREFIXES[kind]}:{key}.{number_text(part) if isinstance(part, int) else escaped(part)}"


def number_text(number: int) -> str:
    """Return a number with a fixed width; larger ones than that are longer.

    >>> number_text(17), number_text(1_234_567)
    ('000017', '1234567')
    """
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:0{NUMBER_DIGITS}}"


def escaped(name: str) -> str:
    """Return a name with `;` and `%` replaced, which only hostile names have."""
    return name if ";" not in name and "%" not in name else name.replace("%", "%25").replace(";", "%3B")


def natural_id(kind: str, repo_id: str, name: str) -> str:
    """Return the id of a node of no file: of a package, type, or name outside of the repository."""
    repository = escaped(repo_id).replace(":", "%3A")
    if len(name) >= NATURAL_CHARS:
        name = f"{name[: NATURAL_CHARS - KEY_CHARS - 1]}~{definition_key(repo_id, '', name)}"
    return f"{PREFIXES[kind]}:{repository}:{escaped(name)}"


def repository_id(repo_id: str) -> str:
    """Return the id of a repository.

    >>> repository_id("shop")
    'repo:shop'
    """
    return f"{PREFIXES['REPOSITORY']}:{escaped(repo_id)}"


def file_id(repo_id: str, path: str) -> str:
    """Return the id of a file.

    >>> file_id("shop", "shop/cart.py").partition(":")[0]
    'file'
    """
    return node_id("FILE", definition_key(repo_id, path))


def key_of(node: str) -> str:
    """Return the definition key in the id of a node of a file.

    >>> key_of("callsite:-Ypa08bsXihimzV9.000003")
    '-Ypa08bsXihimzV9'
    """
    start = node.index(":") + 1
    return node[start : start + KEY_CHARS]


def module_id(file: str) -> str:
    """Return the id of the module of a file, which has the same key."""
    return node_id("MODULE", key_of(file))


def binding_id(scope: str, name: str) -> str:
    """Return the id of a name in a scope, mangled as the compiler does; in a class also of an attribute."""
    return node_id("BINDING", key_of(scope), name)


def scope_id(key: str) -> str:
    """Return the id of the scope of a definition."""
    return node_id("SCOPE", key)


def span_id(file: str, bstart: int | None, bend: int | None) -> str:
    """Return the key of a source range, for evidence that has no row of its own.

    >>> span_id("file:-Ypa08bsXihimzV9", 4, 9)
    'span:-Ypa08bsXihimzV9.4-9'
    """
    return f"span:{key_of(file)}.{bstart}-{bend}"


def group_id(src: str, kind: str, role: str | None, name: str = "") -> str:
    """Return the id that the alternative targets of a node share.

    >>> group_id("callsite:-Ypa08bsXihimzV9.000003", "CALLS", None)
    'ambig:callsite:-Ypa08bsXihimzV9.000003;CALLS'
    """
    parts = [part for part in (role, name) if part]
    return ";".join([f"ambig:{src}", kind, *map(escaped, parts)])


def edge_id(kind: str, src: str, dst: str, repeat: int = 0) -> str:
    """Return the id of an edge; `repeat` is its number among the edges of the same kind and ends."""
    return f"{kind};{src};{dst};{repeat}" if repeat else f"{kind};{src};{dst}"
