"""Version negotiation (KIP-35): the versions that a server supports, and their limitation by a proxy.

A server that does not support the version of an ApiVersions request responds with version 0, which every client can
read. The error code is UNSUPPORTED_VERSION, and the response contains the versions of ApiVersions itself, so that the
client can retry (KIP-511).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from attrs import evolve

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.api_versions_response import ApiVersion, ApiVersionsResponse

__all__ = ["FALLBACK", "cap_api_versions", "offered_api_versions", "response_version", "unsupported_api_versions"]

FALLBACK: Final = 0
"""The version of the ApiVersions response if the server does not support the version of the request (KIP-511)."""

_HIGHEST: Final = 2**15 - 1


def response_version(api_key: int, version: int, catalog: MessageCatalog | None = None) -> int:
    """Return the version of the response to a request of this version. It is the same, except for the fallback."""
    if api_key != ApiKey.API_VERSIONS or version in (catalog or release_catalog()).versions(api_key, "response"):
        return version
    return FALLBACK


def offered_api_versions(api_keys: Iterable[int], *, catalog: MessageCatalog | None = None) -> ApiVersionsResponse:
    """Return the response of a server that supports these APIs at the versions of ``catalog`` (default: the release's).

    If the versions of an API have a gap, only the versions above it are included. Unstable versions are also included;
    use ``attrs.evolve`` to change the response. APIs that ``catalog`` does not have are omitted.
    """
    everything = (ApiVersion(api_key=each, min_version=0, max_version=_HIGHEST) for each in api_keys)
    return cap_api_versions(ApiVersionsResponse(api_keys=tuple(everything)), catalog=catalog)


def unsupported_api_versions(catalog: MessageCatalog | None = None) -> ApiVersionsResponse:
    """Return the response to an ApiVersions request whose version ``catalog`` does not have."""
    offer = offered_api_versions([ApiKey.API_VERSIONS], catalog=catalog)
    return evolve(offer, error_code=ErrorCode.UNSUPPORTED_VERSION)


def cap_api_versions(
    response: ApiVersionsResponse, *, catalog: MessageCatalog | None = None, without: Collection[int] = ()
) -> ApiVersionsResponse:
    """Return a broker's response, limited to the APIs and versions of ``catalog`` (default: the release's).

    A client that receives this response sends only requests that the proxy can decode. APIs without a common version
    and APIs whose API key is in ``without`` are omitted. All other values stay unchanged: error code, throttle time
    (ms), features, and the unknown tagged fields of the response and of each API.
    """
    classes = catalog or release_catalog()
    capped = (_capped(each, classes) for each in response.api_keys if each.api_key not in without)
    return evolve(response, api_keys=tuple(each for each in capped if each is not None))


def _capped(offered: ApiVersion, classes: MessageCatalog) -> ApiVersion | None:
    """Return the highest range of common versions without a gap, or None without a common version."""
    both = [
        version
        for version in classes.versions(offered.api_key, "request")
        if offered.min_version <= version <= offered.max_version
    ]
    if not both:
        return None
    lowest = both[-1]
    for version in reversed(both):
        if lowest - version > 1:
            break
        lowest = version
    return evolve(offered, min_version=lowest, max_version=both[-1])
