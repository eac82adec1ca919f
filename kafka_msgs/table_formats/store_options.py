"""Conversion of filesystem options for delta-rs and pyiceberg, which open object stores themselves.

Defines the option names of these libraries. ``filesystems`` interprets Hadoop's settings and selects them by location.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from kafka_msgs.filesystems.arrow_arguments import azure_arguments, gcs_arguments, s3_arguments
from kafka_msgs.filesystems.options import FilesystemOptions

__all__ = ["SCHEMES", "properties", "storage_options"]

_S3_SCHEMES: Final = ("s3", "s3a", "s3n")
_AZURE_SCHEMES: Final = ("abfs", "abfss")
_GCS_SCHEMES: Final = ("gs", "gcs")
SCHEMES: Final = (*_S3_SCHEMES, *_AZURE_SCHEMES, *_GCS_SCHEMES)
"""The URI schemes of object stores for tables."""


class _Names(NamedTuple):
    """The names of an Arrow filesystem argument in delta-rs and in pyiceberg; empty if unsupported."""

    delta: str = ""
    iceberg: str = ""


_S3: Final = {
    "access_key": _Names("aws_access_key_id", "s3.access-key-id"),
    "secret_key": _Names("aws_secret_access_key", "s3.secret-access-key"),
    "session_token": _Names("aws_session_token", "s3.session-token"),
    "region": _Names("aws_region", "s3.region"),
    "anonymous": _Names("aws_skip_signature", "s3.anonymous"),
    "role_arn": _Names("aws_iam_role_arn", "s3.role-arn"),
    "session_name": _Names("aws_iam_role_session_name", "s3.role-session-name"),
    "force_virtual_addressing": _Names("aws_virtual_hosted_style_request", "s3.force-virtual-addressing"),
    "endpoint": _Names("aws_endpoint_url", "s3.endpoint"),
    "http": _Names("aws_allow_http"),
}
_AZURE: Final = {
    "account_key": _Names("azure_storage_account_key", "adls.account-key"),
    "sas_token": _Names("azure_storage_sas_key", "adls.sas-token"),
    "client_id": _Names("azure_client_id", "adls.client-id"),
    "client_secret": _Names("azure_client_secret", "adls.client-secret"),
    "tenant_id": _Names("azure_tenant_id", "adls.tenant-id"),
}
_GCS: Final = {"anonymous": _Names("google_skip_signature")}


def storage_options(location: str, fs_options: FilesystemOptions) -> dict[str, str]:
    """Return the delta-rs options for a location, none for local paths. Raises ``ValueError`` for a wrong setting."""
    return {names.delta: value for names, value in _given(location, fs_options) if names.delta}


def properties(location: str, fs_options: FilesystemOptions) -> dict[str, str]:
    """Return the pyiceberg properties for a location. Raises ``ValueError`` for a wrong setting."""
    return {names.iceberg: value for names, value in _given(location, fs_options) if names.iceberg}


def _given(location: str, fs_options: FilesystemOptions) -> Iterator[tuple[_Names, str]]:
    parts = urlsplit(location)
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme in _S3_SCHEMES:
        yield from _named(_S3, _with_endpoint(s3_arguments(fs_options, host)))
    elif parts.scheme in _AZURE_SCHEMES:
        yield from _named(_AZURE, azure_arguments(fs_options, host))
    elif parts.scheme in _GCS_SCHEMES:
        yield from _named(_GCS, gcs_arguments(fs_options))


def _named(names: Mapping[str, _Names], given: Mapping[str, Any]) -> Iterator[tuple[_Names, str]]:
    for name in given.keys() & names.keys():
        value = given[name]
        yield names[name], str(value).lower() if isinstance(value, bool) else str(value)


def _with_endpoint(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the endpoint as a URL."""
    if "endpoint_override" not in given:
        return given
    scheme = given.get("scheme", "https")
    plain = {"http": True} if scheme == "http" else {}
    return given | plain | {"endpoint": f"{scheme}://{given['endpoint_override']}"}
