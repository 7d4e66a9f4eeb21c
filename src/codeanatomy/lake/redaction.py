"""Remove the values of storage options and secrets from texts before they are recorded.

>>> options = {"fs.s3a.secret.key": "hush", "fs.s3a.path.style.access": "true"}
>>> redact = redactor(RuntimeProfile(storage_options=options))
>>> redact({"error": "403 for hush", "rows": 3, "path style": "true"})
{'error': '403 for ***', 'rows': 3, 'path style': 'true'}

Secrets are hidden whatever their length, and also the parts of them after a `=` or before the `@` of a URL.
Of other storage options only long values are hidden: otherwise every `true` would be.

Tests: `tests/unit/lake/test_observations.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from codeanatomy.config import SECRET, SECRET_INSIDE, RuntimeProfile
from codeanatomy.delta.store_policy import StorePolicy

HIDDEN = "***"
# Values of at least this length do not occur in other texts by chance.
LONG = 8
# Credentials inside a longer value: after a `=`, or before the `@` of a URL.
INSIDE = re.compile(r"=([^\s=;,&]+)|://([^/\s@]+)@")


def redactor(profile: RuntimeProfile) -> Callable[[Any], Any]:
    """Return a function that hides option values in all strings of a nested value."""
    # The longest first: one may contain another.
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
    """Yield the values that must not be recorded."""
    policy = StorePolicy.from_profile(profile)
    stored = {**policy.storage_options, **policy.log_store_options}
    yield from (value for value in stored.values() if len(value) >= LONG)
    for name, value in {**profile.spark, **profile.delta, **stored}.items():
        if SECRET.search(name):
            yield value
        if SECRET_INSIDE.search(value):
            yield value
            yield from (part for groups in INSIDE.findall(value) for part in groups)
