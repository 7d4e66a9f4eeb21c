"""Compute ids from hashes of content.

Ids of the graph are made of names (`codeanatomy.node_ids`); here is the hash that definition keys, SCIP
indexes and long type texts have.

The hash is SHA-256 of the UTF-8 text, cut short. It is not the fastest choice, but analysed code is hostile
input: it must not be possible to craft two symbols that share an id, and SQL engines have it natively.

An id is `prefix:` and 128 bits in base64url. The hashed bytes are an injective framing of prefix and parts:
each one as `<byte length>:<text>`, a null part as `~`. So null differs from every text, and no separator
inside a value can make two different lists of parts equal:

>>> frame("def", "a:b", 7, None)
b'3:def3:a:b1:7~'
>>> stable_id("def", "a:b", 7, None)
'def:EwFvpOxjCaEaEXl6Wo83rA'
>>> stable_id("def", "a", "b") == stable_id("def", "a:b")
False

A null *part* is a value, a null *prefix* gives null. Integers are their decimal text and booleans
`true`/`false`, as SQL casts them, so `7` and `"7"` are the same part. Floats have no text that engines agree
on and raise TypeError. A lone surrogate is encoded as its three bytes, so that hashing never raises.

Tests: `tests/unit/test_ids.py` (golden values).
"""

from __future__ import annotations

from binascii import b2a_base64
from hashlib import sha256
from typing import TypeAlias, overload

Part: TypeAlias = str | int | bool | None

ID_BYTES = 16
# Length of those bytes in base64, without padding.
ID_CHARS = 22
URL_SAFE = bytes.maketrans(b"+/", b"-_")


@overload
def stable_id(prefix: str, *parts: Part) -> str: ...
@overload
def stable_id(prefix: None, *parts: Part) -> None: ...
def stable_id(prefix: str | None, *parts: Part) -> str | None:
    """Return the id of the object with the key `parts` in the namespace `prefix`; None for a None prefix."""
    framed = frame(prefix, *parts)
    if prefix is None:
        return None
    encoded = b2a_base64(sha256(framed).digest()[:ID_BYTES], newline=False)
    return f"{prefix}:{encoded[:ID_CHARS].translate(URL_SAFE).decode()}"


def frame(*parts: Part) -> bytes:
    """Return the bytes that are hashed: different lists of parts never give the same bytes.

    >>> frame("", None, True)
    b'0:~4:true'
    """
    return b"".join([_frame_part(part) for part in parts])


def _frame_part(part: Part) -> bytes:
    if part is None:
        return b"~"
    raw = (part if type(part) is str else _text(part)).encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(raw), raw)


def _text(part: str | int | bool) -> str:
    if isinstance(part, str):
        return part
    # bool is a subclass of int, and Spark writes it in lower case.
    if isinstance(part, bool):
        return "true" if part else "false"
    if isinstance(part, int):
        # Not str(): an IntEnum may print its name instead of its value.
        return int.__repr__(part)
    raise TypeError(f"parts of an id must be str, int, bool or None, got {type(part).__name__}")
