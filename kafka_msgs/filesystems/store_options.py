"""Conversion of filesystem options for delta-rs, obstore and pyiceberg, which open object stores themselves.

Defines the option names of these libraries. ``arrow_arguments`` interprets Hadoop's settings by location; parameters of
a URI take precedence over them. delta-rs and obstore have the same names, because both use the crate ``object_store``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kafka_msgs.filesystems.arrow_arguments import AZURE_SCHEMES, GCS_SCHEMES, S3_SCHEMES, Arguments, arguments_of
from kafka_msgs.filesystems.location import Location
from kafka_msgs.filesystems.options import FilesystemOptions

__all__ = ["SCHEMES", "properties", "storage_options"]


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
    "no_account": _Names("google_service_account_key"),
}


_NO_ACCOUNT: Final = json.dumps({"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""})
"""The key of no account: ``object_store`` signs writes to Google's store even if it is anonymous."""
_STORES: Final[Mapping[str, Mapping[str, _Names]]] = {
    **dict.fromkeys(S3_SCHEMES, _S3),
    **dict.fromkeys(AZURE_SCHEMES, _AZURE),
    **dict.fromkeys(GCS_SCHEMES, _GCS),
}
SCHEMES: Final = tuple(_STORES)
"""The URI schemes of object stores for tables."""


def storage_options(location: str, fs_options: FilesystemOptions) -> dict[str, str]:
    """Return the options of ``object_store`` for a location, none for local paths.

    Raises ``ValueError`` for a wrong setting.
    """
    return {names.store: value for names, value in _named(location, fs_options) if names.store}


def properties(location: str, fs_options: FilesystemOptions) -> dict[str, str]:
    """Return the pyiceberg properties for a location. Raises ``ValueError`` for a wrong setting."""
    return {names.iceberg: value for names, value in _named(location, fs_options) if names.iceberg}


def _named(text: str, fs_options: FilesystemOptions) -> Iterator[tuple[_Names, str]]:
    location = Location.parse(text)
    names = _STORES.get(location.scheme, {})
    given = _with_endpoint(arguments_of(location, dict(fs_options.items)), location) if names else {}
    for name in given.keys() & names.keys():
        value = given[name]
        yield names[name], str(value).lower() if isinstance(value, bool) else str(value)


def _with_endpoint(given: Arguments, location: Location) -> Arguments:
    """Return the arguments with the endpoint as a URL; the endpoint of Azure's emulator has the account in its path."""
    server, scheme = given.get("endpoint_override"), given.get("scheme", "https")
    if blob := given.get("blob_storage_authority"):
        account = location.authority.rpartition("@")[2].partition(".")[0]
        server, scheme = f"{blob}/{account}", given.get("blob_storage_scheme", "https")
    if not server:
        return given
    if given.get("anonymous"):
        given = given | {"no_account": _NO_ACCOUNT}
    return given | {"endpoint": f"{scheme}://{server}"} | ({"http": True} if scheme == "http" else {})
