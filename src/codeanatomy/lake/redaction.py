"""Texts without the values of options: what is recorded of a run never tells how its storage is reached.

>>> options = {"fs.s3a.secret.key": "hush", "fs.s3a.path.style.access": "true"}
>>> redact = redactor(RuntimeProfile(storage_options=options))
>>> redact({"error": "403 for hush", "rows": 3, "path style": "true"})
{'error': '403 for ***', 'rows': 3, 'path style': 'true'}

Secrets are hidden whatever their length, and with them what is behind a `=` or before the `@` of a URL in
them. Of other options of the storage long values are: a `true` would be hidden everywhere.

Tests: `tests/unit/lake/test_observations.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from codeanatomy.config import SECRET, SECRET_INSIDE, RuntimeProfile
from codeanatomy.delta.store_policy import StorePolicy

HIDDEN = "***"
# Characters of a value that nobody writes by chance.
LONG = 8
# Credentials in a longer value: what is assigned, and what leads a URL.
INSIDE = re.compile(r"=([^\s=;,&]+)|://([^/\s@]+)@")


def redactor(profile: RuntimeProfile) -> Callable[[Any], Any]:
    """A function that hides the values of options in texts, wherever they are in a value."""
    # The longest first: one may be a part of another.
    hidden = sorted({value for value in _values(profile) if value}, key=lambda value: (-len(value), value))
    if not hidden:
        return lambda value: value
    pattern = re.compile("|".join(map(re.escape, hidden)))

    def redact(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(HIDDEN, value)
        if isinstance(value, dict):
            return {redact(name): redact(part) for name, part in value.items()}
        return [redact(part) for part in value] if isinstance(value, list | tuple) else value

    return redact


def _values(profile: RuntimeProfile) -> Iterator[str]:
    """What must not be told."""
    policy = StorePolicy.from_profile(profile)
    stored = {**policy.storage_options, **policy.log_store_options}
    yield from (value for value in stored.values() if len(value) >= LONG)
    for name, value in {**profile.spark, **profile.delta, **stored}.items():
        if SECRET.search(name):
            yield value
        if SECRET_INSIDE.search(value):
            yield value
            yield from (part for found in INSIDE.findall(value) for part in found)
