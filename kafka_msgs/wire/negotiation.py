"""Which versions two ends of a connection may use, when a proxy between them must understand what they say (KIP-35)."""

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
    """Return a broker's answer, limited to the apis and versions that ``catalog`` has (default: the release's).

    A client that is answered so sends nothing that the proxy cannot decode. Apis that have no version in common are
    left out, and so are those of ``without``, by api key. Everything else is kept as it was: error code, throttle time,
    features, and tagged fields that nobody knows, of the response and of each api.
    """
    classes = catalog or release_catalog()
    capped = (_capped(each, classes) for each in response.api_keys if each.api_key not in without)
    return evolve(response, api_keys=tuple(each for each in capped if each is not None))


def _capped(offered: ApiVersion, classes: MessageCatalog) -> ApiVersion | None:
    """Return the highest versions in one piece that both have, or None where there are none."""
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
