"""Which versions a client and a broker may use if a proxy between them must decode their messages (KIP-35)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from attrs import evolve

from kafka_msgs.lookup import MessageCatalog, release_catalog

if TYPE_CHECKING:
    from kafka_msgs.messages.api_versions_response import ApiVersion, ApiVersionsResponse

__all__ = ["cap_api_versions"]


def cap_api_versions(
    response: ApiVersionsResponse, *, catalog: MessageCatalog | None = None, without: Collection[int] = ()
) -> ApiVersionsResponse:
    """Return a broker's response, limited to the apis and versions that ``catalog`` has (default: the release's).

    A client that gets this response sends no request that the proxy cannot decode. Apis without a common version are
    left out. Apis whose api key is in ``without`` are left out, too. Everything else is kept: error code, throttle time
    (ms), features, and the unknown tagged fields of the response and of each api.
    """
    classes = catalog or release_catalog()
    capped = (_capped(each, classes) for each in response.api_keys if each.api_key not in without)
    return evolve(response, api_keys=tuple(each for each in capped if each is not None))


def _capped(offered: ApiVersion, classes: MessageCatalog) -> ApiVersion | None:
    """Return the highest range of versions that both have without a gap, or None if they have no common version."""
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
