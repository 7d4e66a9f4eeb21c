"""Open the object store of a lake's URI, and explain its errors without their secrets.

    register_policy("s3a://bucket/lake", StorePolicy.from_profile(settings.runtime))
    store = object_store("s3a://bucket/lake/graph/cpg_nodes")       # paths are relative to this folder
    with storage_errors("s3a://bucket/lake/graph/cpg_nodes"):
        store.put("_delta_log/00000000000000000001.json", entry, mode="create")

`object_store` uses the options that are registered for the lake (`delta.store_policy`): the same as Spark. A
path is taken literally, as Hadoop does: `%20` in it is no space.

A dead endpoint is reported after about 20 seconds at most: connections are given CONNECT_SECONDS, a silent
server READ_SECONDS, and a request is not repeated after RETRY_SECONDS. Within these, requests that fail
because of the network or an overloaded server are repeated, also conditional ones: `put(mode="create")` may
raise AlreadyExistsError for an object that its own first attempt created.

`storage_errors` lets pass what callers decide on: FileNotFoundError for a missing object, and obstore's
AlreadyExistsError and PreconditionError. All other errors become a StorageFailure. Servers repeat parts of a
request in their answers, so messages contain the code of an answer, but never its text:

>>> from obstore.exceptions import GenericError
>>> answer = GenericError("status code: 403 Forbidden: <Code>InvalidAccessKeyId</Code><Key>AKIA</Key>")
>>> explain("s3a://bucket/lake", answer).message
's3a://bucket/lake: the store does not accept the credentials (InvalidAccessKeyId)'

obstore does not work in a fork of a process that has used it (a request would never end), so `object_store`
refuses to open a store there.

Tests: `tests/unit/delta/test_object_store.py`, `tests/system/test_object_store.py`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    NotModifiedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

from codeanatomy.delta.store_policy import FAMILIES, is_local, path_of, policy_for
from codeanatomy.errors import ConfigError, StorageFailure, StoreUnavailable, UsageError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

CONNECT_SECONDS, READ_SECONDS, RETRY_SECONDS = 5, 20, 15
# With the times between them, 3 to 15 seconds: an overloaded store has that long to recover.
MAX_RETRIES = 10
# A large object over a slow line.
REQUEST_SECONDS = 1800
RETRY: Final[RetryConfig] = {
    "max_retries": MAX_RETRIES,
    "retry_timeout": timedelta(seconds=RETRY_SECONDS),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=3),
        "base": 3,
    },
}
CLIENT: Final[ClientConfig] = {
    "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
    "read_timeout": timedelta(seconds=READ_SECONDS),
    "timeout": timedelta(seconds=REQUEST_SECONDS),
}
# Options of deltalake that obstore takes otherwise, or not at all.
ALLOW_HTTP, ENDPOINT, ROLE = "aws_allow_http", "aws_endpoint_url", "aws_iam_role_arn"
# In errors of listings whose answer was cut, and the seconds between two attempts.
CUT_LISTING, CUT_SECONDS = "ListResponseBody", 0.3
# Stores kept open per process.
MAX_STORES = 512


T = TypeVar("T")


class _Process:
    """The process that opened the first store: obstore's threads exist in that one only."""

    owner: int | None = None


def object_store(uri: str) -> ObjectStore:
    """Return the store of a folder, given its path or URI; paths in the store are relative to the folder.

    Raise ConfigError for options that cannot work, UsageError for a scheme without a store.
    """
    process = os.getpid()
    if _Process.owner is None:
        _Process.owner = process
    if process != _Process.owner:
        # No StorageFailure, which callers handle: this is an error of the program.
        raise RuntimeError("a fork of a process that uses an object store cannot use one")
    if is_local(uri):
        return LocalStore(path_of(uri))
    options = policy_for(uri).options_for(uri)
    return _open(uri.rstrip("/"), tuple(sorted(options.items())))


def uses_stores() -> bool:
    """Whether this process has opened a store, so that forks of it cannot."""
    return _Process.owner is not None


@lru_cache(maxsize=MAX_STORES)
def _open(uri: str, options: tuple[tuple[str, str], ...]) -> ObjectStore:
    parts = urlsplit(uri)
    family = FAMILIES.get(parts.scheme.lower())
    if family is None:
        raise UsageError(
            f"there is no object store for {parts.scheme}:// ({uri})",
            "use a local folder, s3a://, abfss:// or gs://",
        )
    # Not `parts.path`, which ends at a question mark.
    prefix = uri.partition("://")[2].partition("/")[2] or None
    config = dict(options)
    with storage_errors(uri):
        if family == "fs.s3a.":
            return _s3(uri, parts.netloc, prefix, config)
        if family == "fs.azure.":
            container, _, host = parts.netloc.partition("@")
            account = {"azure_storage_account_name": host.partition(".")[0]}
            return AzureStore(
                container,
                prefix=prefix,
                config=_typed({**account, **config}),
                client_options=CLIENT,
                retry_config=RETRY,
            )
        return GCSStore(
            parts.netloc, prefix=prefix, config=_typed(config), client_options=CLIENT, retry_config=RETRY
        )


def _s3(uri: str, bucket: str, prefix: str | None, config: dict[str, str]) -> S3Store:
    if ROLE in config:
        raise ConfigError(
            f"{uri}: fs.s3a.assumed.role.arn works only in Spark",
            "set the role's temporary keys instead: fs.s3a.access.key, fs.s3a.secret.key and "
            "fs.s3a.session.token in runtime.storage_options",
        )
    endpoint = config.get(ENDPOINT)
    if endpoint is not None and not re.match(r"https?://[^/\s]+/?$", endpoint, re.IGNORECASE):
        raise ConfigError(
            f"{uri}: fs.s3a.endpoint is not the URL of a server",
            "write it like https://host:port or http://host:port",
        )
    client: ClientConfig = {**CLIENT, "allow_http": config.pop(ALLOW_HTTP, "") == "true"}
    return S3Store(bucket, prefix=prefix, config=_typed(config), client_options=client, retry_config=RETRY)


def _typed(config: Mapping[str, str]) -> Any:
    """Return options for a constructor, whose types list names that may also be given in other forms."""
    return dict(config)


@contextmanager
def storage_errors(uri: str) -> Iterator[None]:
    """Raise errors of obstore as StorageFailure, except those that callers decide on.

    Errors of local files, such as a full disk, are not changed.
    """
    try:
        yield
    except (AlreadyExistsError, PreconditionError, NotModifiedError):
        raise
    except FileNotFoundError as problem:
        if _code(str(problem)) not in NO_BUCKET:
            raise
        raise explain(uri, problem) from None
    except BaseError as problem:
        # Without the cause: its text may repeat parts of a request.
        raise explain(uri, problem) from None


def whole_listing(list_objects: Callable[[], T]) -> T:
    """Return a listing; repeat it for RETRY_SECONDS if its answer is cut, which obstore does not do."""
    end = time.monotonic() + RETRY_SECONDS
    while True:
        try:
            return list_objects()
        except GenericError as problem:
            if CUT_LISTING not in str(problem) or time.monotonic() > end:
                raise
        time.sleep(CUT_SECONDS)


About = Literal["endpoint", "credentials", "region", "bucket", "permission", "load", "other"]


class StoreProblem(NamedTuple):
    """An error of a store: its subject, and what to do."""

    about: About
    message: str
    hint: str


# Codes of answers, of S3 and of Azure, by what they are about.
NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound", "FilesystemNotFound", "InvalidBucketName"})
WRONG_KEY = frozenset(
    {
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "InvalidToken",
        "InvalidTokenId",
        "InvalidClientTokenId",
        "AuthenticationFailed",
        "InvalidAuthenticationInfo",
        "NoAuthenticationInformation",
    }
)
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
WRONG_REGION = frozenset(
    {"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"}
)
DENIED = frozenset(
    {"AccessDenied", "AllAccessDisabled", "AuthorizationFailure", "AuthorizationPermissionMismatch"}
)
WRONG_CLOCK = frozenset({"RequestTimeTooSkewed"})
BUSY = frozenset({"SlowDown", "ServerBusy", "Throttling", "TooManyRequests"})
# Services that give credentials to processes on machines of a cloud, used if none are configured.
METADATA = re.compile(r"169\.254\.(169\.254|170\.2)|metadata\.google\.internal")
# Credentials that no request can be made with.
UNUSABLE = re.compile(
    r"Missing(AccessKeyId|SecretAccessKey|SasComponent)|\bInvalidAccessKey\b|"
    r"(open|decode) service account file"
)
CREDENTIALS = {
    "fs.s3a.": "fs.s3a.access.key and fs.s3a.secret.key in runtime.storage_options, "
    "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
    "fs.azure.": "fs.azure.account.key.ACCOUNT.dfs.core.windows.net in runtime.storage_options",
    "fs.gs.": "fs.gs.auth.service.account.json.keyfile in runtime.storage_options",
}
PERMIT = "ask for permission to list, read, write and delete below this URI, or use other credentials"
LATER = "try again later, or with fewer parallel tasks"


def explain(uri: str, problem: BaseException) -> StorageFailure:
    """Return an error of obstore as a StorageFailure with what to do; it contains no text of a server."""
    error = classify(uri, problem)
    return StoreUnavailable(f"{uri}: {error.message}", error.hint)


def classify(uri: str, problem: BaseException) -> StoreProblem:
    """Find out what an error of obstore is about."""
    text = str(problem)
    code = _code(text)
    error = _by_code(uri, code) or _by_status(uri, problem, text) or _by_network(uri, text)
    return error._replace(message=f"{error.message} ({code})") if code else error


def _by_code(uri: str, code: str) -> StoreProblem | None:
    if code in NO_BUCKET:
        bucket = urlsplit(uri).netloc.partition("@")[0]
        hint = "check the name in the URI and the endpoint, or create the bucket"
        return StoreProblem("bucket", f"there is no bucket {bucket}", hint)
    if code in WRONG_KEY:
        return _wrong_credentials(uri)
    if code in EXPIRED:
        hint = "get new ones and set them, or use keys that do not expire"
        return StoreProblem("credentials", "the credentials have expired", hint)
    if code in WRONG_CLOCK:
        hint = "set the clock, for example with NTP, and try again"
        return StoreProblem("credentials", "the clock of this machine is wrong", hint)
    if code in WRONG_REGION:
        hint = "set fs.s3a.endpoint.region in runtime.storage_options"
        return StoreProblem("region", "the bucket is in another region", hint)
    if code in DENIED:
        return StoreProblem("permission", "the credentials do not permit this", PERMIT)
    if code in BUSY:
        return StoreProblem("load", "the store is overloaded", LATER)
    return None


def _by_status(uri: str, problem: BaseException, text: str) -> StoreProblem | None:
    if UNUSABLE.search(text):
        hint = f"check {_credentials(uri)}"
        return StoreProblem("credentials", "the credentials are incomplete or not readable", hint)
    if METADATA.search(text):
        return StoreProblem("credentials", "no credentials are configured", f"set {_credentials(uri)}")
    match = re.search(r"status code: (\d{3})", text)
    status = int(match[1]) if match else 0
    if status == 401 or isinstance(problem, UnauthenticatedError):
        return _wrong_credentials(uri)
    if status == 403 or isinstance(problem, PermissionError | PermissionDeniedError):
        return StoreProblem("permission", "the credentials do not permit this", PERMIT)
    if status == 404 or isinstance(problem, FileNotFoundError):
        return StoreProblem("other", "not found", "check the URI and the endpoint")
    if status in (429, 503):
        return StoreProblem("load", "the store is overloaded", LATER)
    if 300 <= status < 500:
        options = "fs.s3a.endpoint, fs.s3a.endpoint.region and fs.s3a.path.style.access"
        hint = f"check {options} in runtime.storage_options"
        return StoreProblem("other", f"the store answers with status {status}", hint)
    if status:
        hint = "try again; if it stays, look at the store's own log"
        return StoreProblem("other", f"the store answers with status {status}", hint)
    return None


def _by_network(uri: str, text: str) -> StoreProblem:
    at = f" at {host}" if (host := _host(text)) else ""
    check = (
        "check the endpoint (fs.s3a.endpoint in runtime.storage_options) and the network"
        if uri.lower().startswith("s3")
        else "check the account in the URI and the network"
    )
    if "ConnectionRefused" in text:
        return StoreProblem("endpoint", f"no server listens{at}", check)
    if "dns error" in text:
        return StoreProblem("endpoint", f"the host name of the store is not known{at}", check)
    if "kind: Timeout" in text or "TimedOut" in text:
        return StoreProblem("endpoint", f"the store does not answer{at}", check)
    if "BadScheme" in text:
        return StoreProblem("endpoint", f"the endpoint is not encrypted{at}", "use an https:// endpoint")
    if re.search(r"\btls\b|certificate|InvalidMessage|CorruptMessage", text, re.IGNORECASE):
        plain = "for a server without TLS use http:// in fs.s3a.endpoint"
        hint = f"{plain}; for a private certificate set SSL_CERT_FILE"
        return StoreProblem("endpoint", f"no encrypted connection{at}", hint)
    if re.search(f"error sending request|kind: Request|error decoding response|{CUT_LISTING}", text):
        hint = "try again; if it stays, check the network and the store's own log"
        return StoreProblem("endpoint", f"the connection was cut{at}", hint)
    return StoreProblem(
        "other", "the store cannot be used", "run `codeanatomy doctor --lake URI` to see what works"
    )


def _wrong_credentials(uri: str) -> StoreProblem:
    hint = f"check {_credentials(uri)}"
    return StoreProblem("credentials", "the store does not accept the credentials", hint)


def _credentials(uri: str) -> str:
    return CREDENTIALS.get(FAMILIES.get(urlsplit(uri).scheme.lower(), ""), "the credentials")


def _host(text: str) -> str:
    """Return host and port of the first URL of a message.

    >>> _host("Error performing GET https://user:word@minio:9000/bucket/a in 3ms"), _host("none")
    ('minio:9000', '')
    """
    match = re.search(r"performing [A-Z]+ (https?://[^\s/?]+)", text)
    return urlsplit(match[1]).netloc.rpartition("@")[2] if match else ""


def _code(text: str) -> str:
    """Return the code of a server's answer, the empty string if it has none.

    >>> _code("403: <Error><Code>AccessDenied</Code></Error>"), _code("failed (code: SlowDown)"), _code("?")
    ('AccessDenied', 'SlowDown', '')
    """
    match = re.search(r"<Code>(\w{1,64})</Code>|\(code: (\w{1,64})\)", text)
    return (match[1] or match[2]) if match else ""
