"""How the storage of a lake is reached: one policy, for Spark and for those who do without a JVM.

    policy = StorePolicy.from_profile(settings.runtime)       # with fs.s3a.access.key=AK, fs.s3a.endpoint=http://minio:9000
    reach("s3a://bucket/lake", policy)
    delta_options("s3a://bucket/lake/graph/cpg_nodes")
    # {"aws_access_key_id": "AK", "aws_endpoint_url": "http://minio:9000", "aws_allow_http": "true", ...}

The options are Hadoop's, by their names there. Spark gets them as they are (`spark.session`); deltalake
knows others, which are derived from the same ones. A session that somebody hands in must have the same
options, else its commits would go elsewhere than our reads (`require_match`).

Functions that read without a JVM take the root of a lake and nothing else. So the policy of a remote lake is
kept here, by root, from the moment that it is opened with settings until the process ends. A second opening
with other options is refused: whoever opened it first would commit by them. Of a local lake nothing is kept
and nothing is passed on.

What is recorded, shown or told of an option is its name, and a hash of its value: never the value.

>>> policy = StorePolicy({"fs.s3a.secret.key": "hush"})
>>> policy
StorePolicy(spark.hadoop.fs.s3a.secret.key)
>>> policy.option_hashes()
{'spark.hadoop.fs.s3a.secret.key': 'dc8331bcb2283e89'}

Tests: `tests/unit/delta/test_store_policy.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct, json

from codeanatomy.errors import StorageMismatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.config import RuntimeProfile

HADOOP, LOG_STORE, DELTA = "spark.hadoop.", "spark.delta.logStore.", "spark.databricks.delta."
# Of the hash of a value.
DIGITS = 16
# Options of Hadoop below `fs.s3a.`, or below `fs.s3a.bucket.<bucket>.` for one of them, and deltalake's.
S3 = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
    "endpoint.region": "aws_region",
    "assumed.role.arn": "aws_iam_role_arn",
}
S3_ENDPOINT, S3_SSL, S3_PATH_STYLE = "endpoint", "connection.ssl.enabled", "path.style.access"
# Below `fs.azure.`; each may end with the host of an account.
AZURE = {
    "account.key": "azure_storage_account_key",
    "sas.fixed.token": "azure_storage_sas_key",
    "account.oauth2.client.id": "azure_storage_client_id",
    "account.oauth2.client.secret": "azure_storage_client_secret",
}
# A URL whose first part is the tenant.
AZURE_TENANT = "account.oauth2.client.endpoint"
# The path of a file with credentials, by the names that the connector had over time.
GOOGLE = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
# Which options of Hadoop are about a scheme.
FAMILIES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "fs.s3a."),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "fs.azure."),
    "gs": "fs.gs.",
}


class StorePolicy(Struct, frozen=True):
    """Options of the storage, without their prefixes; from settings or, by default, none."""

    storage_options: dict[str, str] = {}
    log_store_options: dict[str, str] = {}
    # Of Delta itself, such as what a vacuum may delete.
    delta_options: dict[str, str] = {}
    require_local_paths: bool = False

    @classmethod
    def from_profile(cls, profile: RuntimeProfile) -> StorePolicy:
        """The policy of a profile; an option that is set by its full name wins, as in the session."""
        return cls(
            {**profile.storage_options, **_below(HADOOP, profile.spark)},
            {**profile.log_store_options, **_below(LOG_STORE, profile.spark)},
            {**profile.delta, **_below(DELTA, profile.spark)},
            profile.require_local_paths,
        )

    def __repr__(self) -> str:
        return f"StorePolicy({', '.join(sorted(self._settings()))})"

    @property
    def identity(self) -> str:
        """Hash of all fields, the same in every process."""
        return hashlib.sha256(json.encode(self, order="deterministic")).hexdigest()[:32]

    def option_hashes(self) -> dict[str, str]:
        """What may be recorded: the full names of all options, and a hash of each value."""
        return {
            key: hashlib.sha256(value.encode()).hexdigest()[:DIGITS]
            for key, value in sorted(self._settings().items())
        }

    def for_deltalake(self, uri: str) -> dict[str, str]:
        """The options that the library wants for a remote place."""
        parts = urlsplit(uri)
        family = FAMILIES.get(parts.scheme.lower())
        if family == "fs.s3a.":
            return _s3(self.storage_options, parts.netloc)
        if family == "fs.azure.":
            return _azure(self.storage_options, parts.netloc)
        if family == "fs.gs.":
            found = [self.storage_options[name] for name in GOOGLE if name in self.storage_options]
            return {"google_service_account": found[0]} if found else {}
        return {}

    def require_match(self, spark: SparkSession, root: str) -> None:
        """Raise if a session would reach the lake by other options.

        An option that only the session has counts where the lake is remote, and it is about its scheme.
        """
        differing = [*self._differing(spark), *self._unknown(spark, root)]
        if differing:
            raise StorageMismatch(
                f"the Spark session and the settings differ in {', '.join(sorted(differing))}",
                "give the settings what the session has (runtime.storage_options, runtime.log_store_options, "
                "runtime.delta), or start the session from these settings",
            )

    def _differing(self, spark: SparkSession) -> list[str]:
        """Options that the session has otherwise; nothing is asked of it where there are none."""
        session: Any = spark._jsparkSession
        found: list[str] = []
        if self.storage_options:
            # With what was changed after the session began.
            hadoop = session.sessionState().newHadoopConf()
            found += [
                HADOOP + key for key, value in self.storage_options.items() if hadoop.getRaw(key) != value
            ]
        for prefix, options in ((LOG_STORE, self.log_store_options), (DELTA, self.delta_options)):
            found += [
                prefix + key
                for key, value in options.items()
                if _read(prefix + key, spark.conf.get(prefix + key, None)) != _read(prefix + key, value)
            ]
        return found

    def _unknown(self, spark: SparkSession, root: str) -> list[str]:
        """Options about the scheme of a remote lake that only the session has."""
        scheme = urlsplit(root).scheme.lower()
        if is_local(root):
            return []
        about = (f"{LOG_STORE}{scheme}.", *((HADOOP + FAMILIES[scheme],) if scheme in FAMILIES else ()))
        known = self._settings()
        names = (name for name, _ in spark.sparkContext.getConf().getAll())
        return [name for name in names if name.startswith(about) and name not in known]

    def _settings(self) -> dict[str, str]:
        """The options by their full names."""
        return {
            prefix + key: value
            for prefix, options in (
                (HADOOP, self.storage_options),
                (LOG_STORE, self.log_store_options),
                (DELTA, self.delta_options),
            )
            for key, value in options.items()
        }


# By the root of a remote lake, without a slash at its end.
_REACHED: dict[str, StorePolicy] = {}


def register_policy(root: str, policy: StorePolicy) -> None:
    """From now on a remote lake is reached by this policy, and no other; of a local one nothing is kept."""
    if is_local(root):
        return
    # One step, since threads may open it at the same time.
    known = _REACHED.setdefault(root.rstrip("/"), policy)
    if known != policy:
        differing = sorted({*known.option_hashes().items()} ^ {*policy.option_hashes().items()})
        names = dict.fromkeys(name for name, _ in differing) or ("require_local_paths",)
        raise StorageMismatch(
            f"this process has opened {root} with other options: {', '.join(names)}",
            "open a lake with the same options everywhere in a process, or use another process",
        )


def policy_for(place: str) -> StorePolicy:
    """The policy of the lake that a place is in; one of no options if none was given."""
    inside = [root for root in _REACHED if f"{place.rstrip('/')}/".startswith(f"{root}/")]
    return _REACHED[max(inside, key=len)] if inside else StorePolicy()


def deltalake_options(place: str) -> dict[str, str] | None:
    """What deltalake needs to open a table; none for a local one, whatever the settings say."""
    return None if is_local(place) else policy_for(place).for_deltalake(place)


def is_local(place: str) -> bool:
    """Whether a path or URI is on a file system of this machine.

    >>> is_local("/data/lake"), is_local("file:/data/lake"), is_local("s3a://bucket/lake")
    (True, True, False)
    """
    scheme = urlsplit(place).scheme.lower()
    # A scheme of one letter is a drive.
    return len(scheme) < 2 or scheme == "file"


def _below(prefix: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}


def _read(key: str, value: str | None) -> str | None:
    """A value as Spark reads it: truth values have no case."""
    return value.lower() if value is not None and value.lower() in ("true", "false") else value


def _s3(options: Mapping[str, str], bucket: str) -> dict[str, str]:
    below = {**_below("fs.s3a.", options), **_below(f"fs.s3a.bucket.{bucket}.", options)}
    # A version is made only if there is none: what all commits of ours rely on.
    found = {"aws_conditional_put": "etag"}
    found |= {ours: below[name] for name, ours in S3.items() if name in below}
    if S3_ENDPOINT in below:
        endpoint = below[S3_ENDPOINT]
        if "://" not in endpoint:
            # Hadoop takes a host alone.
            plain = below.get(S3_SSL, "true").lower() == "false"
            endpoint = f"{'http' if plain else 'https'}://{endpoint}"
        found["aws_endpoint_url"] = endpoint
        if endpoint.lower().startswith("http:"):
            found["aws_allow_http"] = "true"
    if S3_PATH_STYLE in below:
        by_host = below[S3_PATH_STYLE].lower() != "true"
        found["aws_virtual_hosted_style_request"] = str(by_host).lower()
    return found


def _azure(options: Mapping[str, str], place: str) -> dict[str, str]:
    """Of `container@account.dfs.core.windows.net` the options of that account, else those of all."""
    host = place.rpartition("@")[2]
    account = host.partition(".")[0]
    below = _below("fs.azure.", options)

    def option(name: str) -> str | None:
        return below.get(f"{name}.{host}", below.get(name))

    found = {"azure_storage_account_name": account} if "@" in place else {}
    found |= {ours: value for name, ours in AZURE.items() if (value := option(name)) is not None}
    tenant = urlsplit(option(AZURE_TENANT) or "").path.strip("/").partition("/")[0]
    return {**found, "azure_storage_tenant_id": tenant} if tenant else found
