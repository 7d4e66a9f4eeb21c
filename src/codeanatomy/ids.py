"""Compute content-derived hashes and ids that have the same value in Python and in Spark.

Ids of the graph are made of names (`codeanatomy.node_ids`); here are the hashes that definition keys, SCIP
indexes and long type texts have.

Every hash is SHA-256 of the UTF-8 text, cut short. It is not the fastest choice, but analysed code is
hostile input: it must not be possible to craft two symbols that share an id, and Spark has `sha2` natively.

An id is `prefix:` and 128 bits in base64url. The hashed bytes are an injective framing of prefix and parts:
each one as `<byte length>:<text>`, a null part as `~`. So null differs from every text, and no separator
inside a value can make two different lists of parts equal:

>>> frame("def", "a:b", 7, None)
b'3:def3:a:b1:7~'
>>> stable_id("def", "a:b", 7, None)
'def:EwFvpOxjCaEaEXl6Wo83rA'
>>> stable_id("def", "a", "b") == stable_id("def", "a:b")
False

The rule for null is the same in all three forms (here, `Column` helpers, SQL): a null *part* is a value, a
null *prefix* or a null hash input gives null. Integers are their decimal text and booleans `true`/`false`,
as Spark casts them, so `7` and `"7"` are the same part. Floats have no text that both sides agree on and
raise TypeError here; Spark cannot reject them, so never pass one there.

A lone surrogate is encoded as its three bytes, so that hashing never raises. Text that Spark receives from
Python has U+FFFD in its place: make the ids of such text on one side only.

The Spark forms are in `codeanatomy.spark.functions`. Tests: `tests/unit/test_ids.py` (golden values),
`tests/spark/test_functions.py` (agreement).
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
_TOP_BIT_CLEARED = (1 << 63) - 1


@overload
def stable_hash64(value: str) -> int: ...
@overload
def stable_hash64(value: None) -> None: ...
def stable_hash64(value: str | None) -> int | None:
    """Return the first 8 bytes of the hash as a non-negative bigint: 63 bits, for buckets, not for identity.

    >>> stable_hash64("")
    7183457195969485844
    """
    if value is None:
        return None
    return int.from_bytes(_digest(_utf8(value))[:8], "big") & _TOP_BIT_CLEARED


@overload
def stable_hash128(value: str) -> str: ...
@overload
def stable_hash128(value: None) -> None: ...
def stable_hash128(value: str | None) -> str | None:
    """Return the first 16 bytes of the hash as 32 lower-case hex characters.

    >>> stable_hash128("")
    'e3b0c44298fc1c149afbf4c8996fb924'
    """
    return None if value is None else _digest(_utf8(value))[:16].hex()


@overload
def prefixed_hash64(prefix: str, value: str) -> str: ...
@overload
def prefixed_hash64(prefix: str | None, value: str | None) -> str | None: ...
def prefixed_hash64(prefix: str | None, value: str | None) -> str | None:
    """Return `prefix:` and the decimal `stable_hash64` of the value; None if either is None.

    >>> prefixed_hash64("bucket", "")
    'bucket:7183457195969485844'
    """
    if prefix is None or value is None:
        return None
    return f"{prefix}:{stable_hash64(value)}"


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


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(raw: bytes) -> bytes:
    return sha256(raw).digest()
