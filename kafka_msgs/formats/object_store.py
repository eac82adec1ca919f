"""The settings of a filesystem as delta-rs takes them, which has an object store of its own.

Owns the names on that side. What Hadoop's settings mean, and which of them are for a place, is left to ``filesystems``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from kafka_msgs.filesystems.arguments import azure_arguments, gcs_arguments, s3_arguments
from kafka_msgs.filesystems.settings import Settings

__all__ = ["storage_options"]

_S3: Final = {
    "access_key": "aws_access_key_id",
    "secret_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "region": "aws_region",
    "anonymous": "aws_skip_signature",
    "role_arn": "aws_iam_role_arn",
    "session_name": "aws_iam_role_session_name",
    "force_virtual_addressing": "aws_virtual_hosted_style_request",
}
_AZURE: Final = {
    "account_key": "azure_storage_account_key",
    "sas_token": "azure_storage_sas_key",
    "client_id": "azure_client_id",
    "client_secret": "azure_client_secret",
    "tenant_id": "azure_tenant_id",
}
_GCS: Final = {"anonymous": "google_skip_signature"}


def storage_options(place: str, settings: Settings) -> dict[str, str]:
    """Return the options for a place, none for this machine's. Raises ``ValueError`` for a wrong setting."""
    parts = urlsplit(place)
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme in ("s3", "s3a", "s3n"):
        given = s3_arguments(settings, host)
        return _named(_S3, given) | _endpoint(given)
    if parts.scheme in ("abfs", "abfss"):
        return _named(_AZURE, azure_arguments(settings, host))
    return _named(_GCS, gcs_arguments(settings)) if parts.scheme in ("gs", "gcs") else {}


def _named(names: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    return {names[name]: _text(value) for name, value in given.items() if name in names}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _endpoint(given: Mapping[str, Any]) -> dict[str, str]:
    if "endpoint_override" not in given:
        return {}
    scheme = given.get("scheme", "https")
    url = {"aws_endpoint_url": f"{scheme}://{given['endpoint_override']}"}
    return url if scheme == "https" else url | {"aws_allow_http": "true"}
