"""Configure access to the storage of a lake, the same for Spark and for readers without a JVM.

    # runtime.storage_options: fs.s3a.access.key=AK, fs.s3a.endpoint=http://minio:9000
    policy = StorePolicy.from_profile(settings.runtime)
    register_policy("s3a://bucket/lake", policy)
    store_options("s3a://bucket/lake/graph/cpg_nodes")
    # {"aws_access_key_id": "AK", "aws_endpoint_url": "http://minio:9000", "aws_allow_http": "true", ...}

Options are Hadoop's, under their Hadoop names. Spark gets them unchanged (`spark.session`); the options of
obstore (`delta.object_store`) and of deltalake, which writes checkpoints, are derived from them. A session
that the caller created must have the same options, or its commits would go elsewhere than our reads
(`require_match`).

Functions that read without a JVM take only the root of a lake. So the policy of a remote lake is registered
here by root, from the first time it is opened with settings until the process ends. Opening it again with
other options is refused, since the first opener would still commit with the old ones. Local lakes are not
registered and need no options.

Records, output and error messages contain the name of an option and a hash of its value, never the value.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct, json

from codeanatomy.errors import StorageMismatch, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.config import RuntimeProfile

HADOOP, LOG_STORE, DELTA = "spark.hadoop.", "spark.delta.logStore.", "spark.databricks.delta."
# Hex digits kept of the hash of a value.
DIGITS = 16
# Hadoop options below `fs.s3a.`, or `fs.s3a.bucket.<bucket>.` for one bucket; their names elsewhere.
S3 = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
    "endpoint.region": "aws_region",
    "assumed.role.arn": "aws_iam_role_arn",
}
S3_ENDPOINT, S3_SSL, S3_PATH_STYLE = "endpoint", "connection.ssl.enabled", "path.style.access"
# Options below `fs.azure.`; each may end with the host of an account.
AZURE = {
    "account.key": "azure_storage_account_key",
    "sas.fixed.token": "azure_storage_sas_key",
    "account.oauth2.client.id": "azure_storage_client_id",
    "account.oauth2.client.secret": "azure_storage_client_secret",
}
# A URL; the first part of its path is the tenant.
AZURE_TENANT = "account.oauth2.client.endpoint"
# Path of a credentials file, under the names used by different versions of the connector.
GOOGLE = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
# Prefix of the Hadoop options of each URI scheme.
FAMILIES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "fs.s3a."),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "fs.azure."),
    "gs": "fs.gs.",
}
# Options that Spark itself sets in every session: how files are read, not where or with which credentials.
SET_BY_SPARK = f"{HADOOP}fs.s3a.vectored.read."


class StorePolicy(Struct, frozen=True):
    """Storage options without their prefixes, from the settings; none by default."""

    storage_options: dict[str, str] = {}
    log_store_options: dict[str, str] = {}
    # Options of Delta itself, such as the retention check of VACUUM.
    delta_options: dict[str, str] = {}
    require_local_paths: bool = False

    @classmethod
    def from_profile(cls, profile: RuntimeProfile) -> StorePolicy:
        """Build the policy of a profile; an option set by its full name wins, as in the session."""
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
        """Return a hash of all fields, the same in every process."""
        return hashlib.sha256(json.encode(self, order="deterministic")).hexdigest()[:32]

    def option_hashes(self) -> dict[str, str]:
        """Return the full names of all options with a hash of each value, which may be recorded."""
        return {
            key: hashlib.sha256(value.encode()).hexdigest()[:DIGITS]
            for key, value in sorted(self._settings().items())
        }

    def options_for(self, uri: str) -> dict[str, str]:
        """Return the options of obstore and deltalake for a remote URI; both have the same names."""
        parts = urlsplit(uri)
        family = FAMILIES.get(parts.scheme.lower())
        if family == "fs.s3a.":
            return _s3(self.storage_options, parts.netloc)
        if family == "fs.azure.":
            return _azure(self.storage_options, parts.netloc)
        if family == "fs.gs.":
            keyfiles = [self.storage_options[name] for name in GOOGLE if name in self.storage_options]
            return {"google_service_account": keyfiles[0]} if keyfiles else {}
        return {}

    def require_match(self, spark: SparkSession, root: str) -> None:
        """Raise StorageMismatch if a session has other storage options than this policy.

        An option that only the session has counts if the lake is remote and the option is for its scheme.
        Raise EnvironmentProblem if the session cannot open URIs of a remote lake's scheme.
        """
        differing = [*self._differing(spark), *self._unknown(spark, root)]
        if differing:
            raise StorageMismatch(
                f"the Spark session and the settings differ in {', '.join(sorted(differing))}",
                "copy the session's options to the settings (runtime.storage_options, "
                "runtime.log_store_options, runtime.delta), or start the session from these settings",
            )
        if urlsplit(root).scheme.lower() in FAMILIES:
            # Imported here: readers without a JVM do not import PySpark.
            from codeanatomy.spark.session import require_file_system

            require_file_system(spark, root)

    def _differing(self, spark: SparkSession) -> list[str]:
        """Return the options that have other values in the session."""
        session: Any = spark._jsparkSession
        names: list[str] = []
        if self.storage_options:
            # Includes changes made after the session started.
            hadoop = session.sessionState().newHadoopConf()
            names += [
                HADOOP + key for key, value in self.storage_options.items() if hadoop.getRaw(key) != value
            ]
        for prefix, options in ((LOG_STORE, self.log_store_options), (DELTA, self.delta_options)):
            names += [
                prefix + key
                for key, value in options.items()
                if _fold_case(spark.conf.get(prefix + key, None)) != _fold_case(value)
            ]
        return names

    def _unknown(self, spark: SparkSession, root: str) -> list[str]:
        """Return the options for the scheme of a remote lake that only the session has."""
        scheme = urlsplit(root).scheme.lower()
        if is_local(root):
            return []
        prefixes = (f"{LOG_STORE}{scheme}.", *((HADOOP + FAMILIES[scheme],) if scheme in FAMILIES else ()))
        known = self._settings()
        names = (
            name for name, _ in spark.sparkContext.getConf().getAll() if not name.startswith(SET_BY_SPARK)
        )
        return [name for name in names if name.startswith(prefixes) and name not in known]

    def _settings(self) -> dict[str, str]:
        """Return the options by their full names."""
        return {
            prefix + key: value
            for prefix, options in (
                (HADOOP, self.storage_options),
                (LOG_STORE, self.log_store_options),
                (DELTA, self.delta_options),
            )
            for key, value in options.items()
        }


# Policies by root of a remote lake, without a trailing slash.
_POLICIES: dict[str, StorePolicy] = {}


def register_policy(root: str, policy: StorePolicy) -> None:
    """Use this policy for a remote lake until the process ends; do nothing for a local one.

    Raise StorageMismatch if another policy is registered for the lake.
    """
    if is_local(root):
        return
    # Imported here: most lakes are local.
    from codeanatomy.spark.jars import use_store

    use_store(root)
    # Atomic, since threads may open the lake at the same time.
    known = _POLICIES.setdefault(root.rstrip("/"), policy)
    if known != policy:
        differing = sorted({*known.option_hashes().items()} ^ {*policy.option_hashes().items()})
        names = dict.fromkeys(name for name, _ in differing) or ("require_local_paths",)
        raise StorageMismatch(
            f"this process has already opened {root} with other values of {', '.join(names)}",
            "use the same options everywhere in a process, or start another process",
        )


def policy_for(place: str) -> StorePolicy:
    """Return the policy of the lake that contains a path or URI; an empty policy if none is registered."""
    roots = [root for root in _POLICIES if f"{place.rstrip('/')}/".startswith(f"{root}/")]
    return _POLICIES[max(roots, key=len)] if roots else StorePolicy()


def store_options(place: str) -> dict[str, str] | None:
    """Return the options for opening a table; None for a local one, whatever the settings."""
    return None if is_local(place) else policy_for(place).options_for(place)


def is_local(place: str) -> bool:
    """Return whether a path or URI is on a file system of this machine.

    >>> is_local("/data/lake"), is_local("file:/data/lake"), is_local("s3a://bucket/lake")
    (True, True, False)
    """
    scheme = urlsplit(place).scheme.lower()
    # A scheme of one letter is a Windows drive.
    return len(scheme) < 2 or scheme == "file"


def path_of(place: str) -> str:
    """Return the path of a local place, which may be a URI.

    >>> path_of("/data/lake"), path_of("file:/data/my%20lake")
    ('/data/lake', '/data/my lake')
    """
    return unquote(urlsplit(place).path) if place.lower().startswith("file:") else place


def local_path(lake: str) -> str:
    """Return the absolute path of a local lake; raise UsageError for a remote one."""
    if not is_local(lake):
        raise UsageError(f"{lake} is remote", "copy the lake to a local folder, or query it with Spark")
    return str(Path(path_of(lake)).absolute())


def _below(prefix: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}


def _fold_case(value: str | None) -> str | None:
    """Lower-case a boolean, since Spark ignores its case."""
    return value.lower() if value is not None and value.lower() in ("true", "false") else value


def _s3(options: Mapping[str, str], bucket: str) -> dict[str, str]:
    below = {**_below("fs.s3a.", options), **_below(f"fs.s3a.bucket.{bucket}.", options)}
    # Create a log entry only if it does not exist: all our commits rely on it.
    renamed = {"aws_conditional_put": "etag"}
    renamed |= {option: below[name] for name, option in S3.items() if name in below}
    if S3_ENDPOINT in below:
        endpoint = below[S3_ENDPOINT]
        if "://" not in endpoint:
            # Hadoop accepts a host without a scheme.
            plain = below.get(S3_SSL, "true").lower() == "false"
            endpoint = f"{'http' if plain else 'https'}://{endpoint}"
        renamed["aws_endpoint_url"] = endpoint
        if endpoint.lower().startswith("http:"):
            renamed["aws_allow_http"] = "true"
    if S3_PATH_STYLE in below:
        by_host = below[S3_PATH_STYLE].lower() != "true"
        renamed["aws_virtual_hosted_style_request"] = str(by_host).lower()
    return renamed


def _azure(options: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the options for `container@account.dfs.core.windows.net`: the account's, else general ones."""
    host = place.rpartition("@")[2]
    account = host.partition(".")[0]
    below = _below("fs.azure.", options)

    def option(name: str) -> str | None:
        return below.get(f"{name}.{host}", below.get(name))

    renamed = {"azure_storage_account_name": account} if "@" in place else {}
    renamed |= {target: value for name, target in AZURE.items() if (value := option(name)) is not None}
    tenant = urlsplit(option(AZURE_TENANT) or "").path.strip("/").partition("/")[0]
    return {**renamed, "azure_storage_tenant_id": tenant} if tenant else renamed
