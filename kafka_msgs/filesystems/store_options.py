"""Conversion of filesystem options for delta-rs, obstore and pyiceberg, which open object stores themselves.

Defines the option names of these libraries. ``arrow_arguments`` interprets Hadoop's settings by location; parameters of
a URI take precedence over them. delta-rs and obstore have the same names, because both use the crate ``object_store``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from kafka_msgs.filesystems.arrow_arguments import azure_arguments, gcs_arguments, parameters_of, s3_arguments
from kafka_msgs.filesystems.location import Location
from kafka_msgs.filesystems.options import FilesystemOptions

__all__ = ["SCHEMES", "properties", "storage_options"]

_S3_SCHEMES: Final = ("s3", "s3a", "s3n")
_AZURE_SCHEMES: Final = ("abfs", "abfss")
_GCS_SCHEMES: Final = ("gs", "gcs")
SCHEMES: Final = (*_S3_SCHEMES, *_AZURE_SCHEMES, *_GCS_SCHEMES)
"""The URI schemes of object stores for tables."""


class _Names(NamedTuple):
    """The names of an Arrow filesystem argument in ``object_store`` and in pyiceberg; empty if unsupported."""

    store: str = ""
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
    "endpoint": _Names("azure_storage_endpoint"),
    "http": _Names("azure_allow_http"),
}
_GCS: Final = {
    "anonymous": _Names("google_skip_signature"),
    "endpoint": _Names("google_base_url"),
    "http": _Names("google_allow_http"),
}


def storage_options(location: str, fs_options: FilesystemOptions) -> dict[str, str]:
    """Return the options of ``object_store`` for a location, none for local paths.

    Raises ``ValueError`` for a wrong setting.
    """
    return {names.store: value for names, value in _given(location, fs_options) if names.store}


def properties(location: str, fs_options: FilesystemOptions) -> dict[str, str]:
    """Return the pyiceberg properties for a location. Raises ``ValueError`` for a wrong setting."""
    return {names.iceberg: value for names, value in _given(location, fs_options) if names.iceberg}


def _given(text: str, fs_options: FilesystemOptions) -> Iterator[tuple[_Names, str]]:
    location = Location.parse(text)
    user, _, host = location.authority.rpartition("@")
    parameters = parameters_of(location.query)
    if location.scheme in _S3_SCHEMES:
        keys = dict(zip(("access_key", "secret_key"), map(unquote, user.split(":", 1)), strict=False)) if user else {}
        yield from _named(_S3, _with_endpoint(s3_arguments(fs_options, host) | keys | parameters))
    elif location.scheme in _AZURE_SCHEMES:
        yield from _named(_AZURE, _with_account_endpoint(azure_arguments(fs_options, host) | parameters, host))
    elif location.scheme in _GCS_SCHEMES:
        yield from _named(_GCS, _with_endpoint(gcs_arguments(fs_options) | parameters))


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


def _with_account_endpoint(given: dict[str, Any], host: str) -> dict[str, Any]:
    """Return the arguments with the endpoint of an account as a URL, for Azure's emulator."""
    if "blob_storage_authority" not in given:
        return given
    server = {"endpoint_override": f"{given['blob_storage_authority']}/{host.partition('.')[0]}"}
    return _with_endpoint(given | server | {"scheme": given.get("blob_storage_scheme", "https")})
