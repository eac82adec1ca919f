"""Conversion of Hadoop's filesystem settings, and of the parts of a URI, to arguments of Arrow's filesystems.

Defines the table of setting names, arguments and value conversions, with the names of other libraries, and the
precedence of the parts of a URI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote

from attrs import frozen

from kafka_msgs.filesystems.location import Location

__all__ = ["AZURE", "GCS", "S3", "STORES", "Arguments", "arguments_of", "is_known", "names_like", "parameters_of"]

Arguments: TypeAlias = dict[str, Any]
Meaning: TypeAlias = str | Callable[[str], Arguments]
"""The argument for the value of a setting, or a function that converts it to arguments and raises ``ValueError``."""

_FLAGS: Final = {"true": True, "false": False}
_AWS: Final = re.compile(r"s3(?:[.-](?P<region>[a-z0-9-]+))?\.amazonaws\.com")
_TENANT: Final = re.compile(r"https://[^/]+/(?P<tenant>[^/]+)/oauth2/.*")
_ENDPOINT: Final = re.compile(r"(?:(?P<scheme>https?)://)?(?P<host>[^/?#@]+)/?")


def _flag(value: str) -> bool:
    if value.lower() not in _FLAGS:
        raise ValueError("it is true or false")
    return _FLAGS[value.lower()]


def _endpoint(value: str) -> Arguments:
    match = _ENDPOINT.fullmatch(value)
    if match is None:
        raise ValueError("HOST, HOST:PORT, or one of these after http:// or https:// is needed")
    scheme = {"scheme": match["scheme"]} if match["scheme"] else {}
    return {"endpoint_override": match["host"], **scheme}


def _s3_endpoint(value: str) -> Arguments:
    """Return the endpoint; for an AWS endpoint return only its region, from which Arrow derives the endpoint."""
    found = _endpoint(value)
    aws = _AWS.fullmatch(found["endpoint_override"])
    if aws is None:
        return found
    return {"region": aws["region"]} if aws["region"] else {}


def _s3_provider(value: str) -> Arguments:
    """Return anonymous access if the first provider is anonymous. Otherwise Arrow uses its own provider order."""
    return {"anonymous": True} if "Anonymous" in value.split(",")[0] else {}


def _tenant(value: str) -> Arguments:
    match = _TENANT.fullmatch(value)
    if match is None:
        raise ValueError("https://login.microsoftonline.com/TENANT/oauth2/token is needed")
    return {"tenant_id": match["tenant"]}


@frozen
class ObjectStore:
    """A kind of object store: its URI schemes, the prefixes of its settings, and their meanings.

    Later settings override earlier ones. ``names`` has the names of arguments in ``object_store`` and in pyiceberg,
    empty if unsupported. ``endpoint`` is the URL of the server there, and ``http`` allows one without TLS.
    """

    schemes: tuple[str, ...]
    prefixes: tuple[str, ...]
    settings: Mapping[str, Meaning]
    names: Mapping[str, tuple[str, str]]


S3: Final = ObjectStore(
    ("s3", "s3a", "s3n"),
    ("fs.s3a.",),  # settings of one bucket have "bucket.NAME." after it
    {
        "fs.s3a.access.key": "access_key",
        "fs.s3a.secret.key": "secret_key",
        "fs.s3a.session.token": "session_token",
        "fs.s3a.assumed.role.arn": "role_arn",
        "fs.s3a.assumed.role.session.name": "session_name",
        "fs.s3a.aws.credentials.provider": _s3_provider,
        "fs.s3a.connection.ssl.enabled": lambda value: {"scheme": "https" if _flag(value) else "http"},
        "fs.s3a.endpoint": _s3_endpoint,
        "fs.s3a.endpoint.region": "region",
        "fs.s3a.path.style.access": lambda value: {"force_virtual_addressing": not _flag(value)},
    },
    {
        "access_key": ("aws_access_key_id", "s3.access-key-id"),
        "secret_key": ("aws_secret_access_key", "s3.secret-access-key"),
        "session_token": ("aws_session_token", "s3.session-token"),
        "region": ("aws_region", "s3.region"),
        "anonymous": ("aws_skip_signature", "s3.anonymous"),
        "role_arn": ("aws_iam_role_arn", "s3.role-arn"),
        "session_name": ("aws_iam_role_session_name", "s3.role-session-name"),
        "force_virtual_addressing": ("aws_virtual_hosted_style_request", "s3.force-virtual-addressing"),
        "endpoint": ("aws_endpoint_url", "s3.endpoint"),
        "http": ("aws_allow_http", ""),
    },
)
_GCS_AUTH: Final[Mapping[str, Meaning]] = {
    "null.enable": lambda value: {"anonymous": _flag(value)},
    "type": lambda value: {"anonymous": value == "UNAUTHENTICATED"},
    "impersonation.service.account": "target_service_account",
}
GCS: Final = ObjectStore(
    ("gs", "gcs"),
    ("fs.gs.", "google.cloud.auth."),
    {f"{start}.auth.{name}": _GCS_AUTH[name] for name in _GCS_AUTH for start in ("google.cloud", "fs.gs")}
    | {"fs.gs.project.id": "project_id", "fs.gs.storage.root.url": _endpoint},
    {
        "anonymous": ("google_skip_signature", ""),
        "endpoint": ("google_base_url", ""),
        "http": ("google_allow_http", ""),
        "no_account": ("google_service_account_key", ""),
    },
)
AZURE: Final = ObjectStore(
    ("abfs", "abfss"),
    ("fs.azure.",),
    {  # settings of one account have the suffix ".ACCOUNT.dfs.core.windows.net"
        "fs.azure.account.key": "account_key",
        "fs.azure.sas.fixed.token": "sas_token",
        "fs.azure.account.oauth2.client.id": "client_id",
        "fs.azure.account.oauth2.client.secret": "client_secret",
        "fs.azure.account.oauth2.client.endpoint": _tenant,
        "fs.azure.account.oauth2.msi.tenant": "tenant_id",
    },
    {
        "account_key": ("azure_storage_account_key", "adls.account-key"),
        "sas_token": ("azure_storage_sas_key", "adls.sas-token"),
        "client_id": ("azure_client_id", "adls.client-id"),
        "client_secret": ("azure_client_secret", "adls.client-secret"),
        "tenant_id": ("azure_tenant_id", "adls.tenant-id"),
        "endpoint": ("azure_storage_endpoint", ""),
        "http": ("azure_allow_http", ""),
    },
)
STORES: Final = {scheme: store for store in (S3, AZURE, GCS) for scheme in store.schemes}
"""The object stores by URI scheme."""

_KEYS: Final = ("access_key", "secret_key")
_FREE: Final = ("storage.", "dfs.")
_NAMES: Final = frozenset({*S3.settings, *GCS.settings, *AZURE.settings, "fs.defaultfs"})
_S3A: Final = "fs.s3a."
_OF_BUCKET: Final = f"{_S3A}bucket."
_BUCKET: Final = re.compile(r"fs\.s3a\.bucket\.[^.]+\.")
_ACCOUNT: Final = re.compile(r"\.[^.]+\.(?:dfs|blob)\..+")


def is_known(name: str) -> bool:
    """Return whether a setting with this lower-case name can have an effect."""
    of_bucket = name.startswith(_OF_BUCKET) and any(name.endswith(each.removeprefix("fs.s3a")) for each in S3.settings)
    of_account = any(name.startswith(f"{each}.") for each in AZURE.settings)
    return name in _NAMES or of_bucket or of_account or name.startswith(_FREE)


def names_like(name: str) -> Iterable[str]:
    """Return the names of settings for the same bucket or account as the setting ``name``, or of all settings."""
    if bucket := _BUCKET.match(name):
        return [bucket[0] + each.removeprefix(_S3A) for each in S3.settings]
    account = _ACCOUNT.search(name)
    return [each + account[0] for each in AZURE.settings] if account else _NAMES


def arguments_of(location: Location, settings: Mapping[str, str]) -> Arguments:
    """Return the arguments for the object store of a location. Raises ``ValueError`` for a wrong setting.

    The parameters and the keys of a URI take precedence over settings, and settings of its bucket or account over
    others.
    """
    user, _, host = location.authority.rpartition("@")
    store = STORES.get(location.scheme)
    found: Arguments = {}
    if store is S3:
        own = f"{_OF_BUCKET}{host}."
        of_bucket = {f"{_S3A}{name.removeprefix(own)}": settings[name] for name in settings if name.startswith(own)}
        found = _converted(S3, {**settings, **of_bucket})
        if found.get("anonymous"):
            found = {name: value for name, value in found.items() if name not in (*_KEYS, "session_token")}
        found |= zip(_KEYS, map(unquote, user.split(":", 1)), strict=False) if user else {}
    elif store is AZURE:
        end = f".{host}"
        of_account = {name.removesuffix(end): settings[name] for name in settings if name.endswith(end)}
        found = _converted(AZURE, {**settings, **of_account})
    elif store is GCS:
        found = _converted(GCS, settings) | ({"anonymous": True} if user == "anonymous" else {})
    return found | parameters_of(location.query)


def _converted(store: ObjectStore, given: Mapping[str, str]) -> Arguments:
    found: Arguments = {}
    for name, meaning in store.settings.items():
        if name in given:
            value = given[name].strip()
            try:
                found |= {meaning: value} if isinstance(meaning, str) else meaning(value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return found


def parameters_of(query: str) -> Arguments:
    """Return the parameters of a URI as arguments, with ``true`` and ``false`` as booleans."""
    return {name: _FLAGS.get(value, value) for name, value in parse_qsl(query.lstrip("?"))}
