"""Conversion of Hadoop's filesystem settings, and of the parts of a URI, to arguments of Arrow's filesystems.

Defines the table of setting names, arguments and value conversions, and the precedence of the parts of a URI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote

from kafka_msgs.filesystems.location import Location

__all__ = [
    "AZURE_SCHEMES",
    "GCS_SCHEMES",
    "S3_SCHEMES",
    "Arguments",
    "arguments_of",
    "is_known",
    "names_like",
    "parameters_of",
]

S3_SCHEMES: Final = ("s3", "s3a", "s3n")
GCS_SCHEMES: Final = ("gs", "gcs")
AZURE_SCHEMES: Final = ("abfs", "abfss")

Arguments: TypeAlias = dict[str, Any]
Meaning: TypeAlias = Callable[[str], Arguments]
"""Converts the value of a setting to arguments. Raises ``ValueError``."""

_FLAGS: Final = {"true": True, "false": False}
_AWS: Final = re.compile(r"s3(?:[.-](?P<region>[a-z0-9-]+))?\.amazonaws\.com")
_TENANT: Final = re.compile(r"https://[^/]+/(?P<tenant>[^/]+)/oauth2/.*")
_ENDPOINT: Final = re.compile(r"(?:(?P<scheme>https?)://)?(?P<host>[^/?#@]+)/?")


def _text(argument: str) -> Meaning:
    return lambda value: {argument: value}


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


S3: Final[Mapping[str, Meaning]] = {
    "fs.s3a.access.key": _text("access_key"),
    "fs.s3a.secret.key": _text("secret_key"),
    "fs.s3a.session.token": _text("session_token"),
    "fs.s3a.assumed.role.arn": _text("role_arn"),
    "fs.s3a.assumed.role.session.name": _text("session_name"),
    "fs.s3a.aws.credentials.provider": _s3_provider,
    "fs.s3a.connection.ssl.enabled": lambda value: {"scheme": "https" if _flag(value) else "http"},
    "fs.s3a.endpoint": _s3_endpoint,
    "fs.s3a.endpoint.region": _text("region"),
    "fs.s3a.path.style.access": lambda value: {"force_virtual_addressing": not _flag(value)},
}
"""Settings of ``s3a``. Bucket settings have ``bucket.NAME`` after ``fs.s3a``. Later settings override earlier ones."""

GCS: Final[Mapping[str, Meaning]] = {
    "google.cloud.auth.null.enable": lambda value: {"anonymous": _flag(value)},
    "fs.gs.auth.null.enable": lambda value: {"anonymous": _flag(value)},
    "google.cloud.auth.type": lambda value: {"anonymous": value == "UNAUTHENTICATED"},
    "fs.gs.auth.type": lambda value: {"anonymous": value == "UNAUTHENTICATED"},
    "google.cloud.auth.impersonation.service.account": _text("target_service_account"),
    "fs.gs.auth.impersonation.service.account": _text("target_service_account"),
    "fs.gs.project.id": _text("project_id"),
    "fs.gs.storage.root.url": _endpoint,
}
"""Settings of ``gs``."""

AZURE: Final[Mapping[str, Meaning]] = {
    "fs.azure.account.key": _text("account_key"),
    "fs.azure.sas.fixed.token": _text("sas_token"),
    "fs.azure.account.oauth2.client.id": _text("client_id"),
    "fs.azure.account.oauth2.client.secret": _text("client_secret"),
    "fs.azure.account.oauth2.client.endpoint": _tenant,
    "fs.azure.account.oauth2.msi.tenant": _text("tenant_id"),
}
"""Settings of ``abfs``. Account settings have the suffix ``.ACCOUNT.dfs.core.windows.net``."""

_KEYS: Final = ("access_key", "secret_key")
_FREE: Final = ("storage.", "dfs.")
_NAMES: Final = frozenset({*S3, *GCS, *AZURE, "fs.defaultfs"})
_S3A: Final = "fs.s3a."
_OF_BUCKET: Final = f"{_S3A}bucket."
_BUCKET: Final = re.compile(r"fs\.s3a\.bucket\.[^.]+\.")
_ACCOUNT: Final = re.compile(r"\.[^.]+\.(?:dfs|blob)\..+")


def is_known(name: str) -> bool:
    """Return whether a setting with this lower-case name can have an effect."""
    of_bucket = name.startswith(_OF_BUCKET) and any(name.endswith(each.removeprefix("fs.s3a")) for each in S3)
    of_account = any(name.startswith(f"{each}.") for each in AZURE)
    return name in _NAMES or of_bucket or of_account or name.startswith(_FREE)


def names_like(name: str) -> Iterable[str]:
    """Return the names of settings for the same bucket or account as the setting ``name``, or of all settings."""
    if bucket := _BUCKET.match(name):
        return [bucket[0] + each.removeprefix(_S3A) for each in S3]
    account = _ACCOUNT.search(name)
    return [each + account[0] for each in AZURE] if account else _NAMES


def arguments_of(location: Location, settings: Mapping[str, str]) -> Arguments:
    """Return the arguments for the object store of a location. Raises ``ValueError`` for a wrong setting.

    The parameters and the keys of a URI take precedence over settings, and settings of its bucket or account over
    others.
    """
    user, _, host = location.authority.rpartition("@")
    found: Arguments = {}
    if location.scheme in S3_SCHEMES:
        own = f"{_OF_BUCKET}{host}."
        of_bucket = {f"{_S3A}{name.removeprefix(own)}": settings[name] for name in settings if name.startswith(own)}
        found = _converted(S3, {**settings, **of_bucket})
        if found.get("anonymous"):
            found = {name: value for name, value in found.items() if name not in (*_KEYS, "session_token")}
        found |= zip(_KEYS, map(unquote, user.split(":", 1)), strict=False) if user else {}
    elif location.scheme in AZURE_SCHEMES:
        end = f".{host}"
        of_account = {name.removesuffix(end): settings[name] for name in settings if name.endswith(end)}
        found = _converted(AZURE, {**settings, **of_account})
    elif location.scheme in GCS_SCHEMES:
        found = _converted(GCS, settings) | ({"anonymous": True} if user == "anonymous" else {})
    return found | parameters_of(location.query)


def _converted(table: Mapping[str, Meaning], given: Mapping[str, str]) -> Arguments:
    found: Arguments = {}
    for name in [each for each in table if each in given]:
        try:
            found |= table[name](given[name].strip())
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


def parameters_of(query: str) -> Arguments:
    """Return the parameters of a URI as arguments, with ``true`` and ``false`` as booleans."""
    return {name: _FLAGS.get(value, value) for name, value in parse_qsl(query.lstrip("?"))}
