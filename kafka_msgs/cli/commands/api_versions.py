"""``kafka-msgs api-versions``: compare a broker's versions of each api with the library's versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from kafka_msgs import __version__
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.message import Message
from kafka_msgs.versions import NONE, VersionRange

__all__ = ["api_versions_command"]

_COLUMNS: Final = ("apiKey", "api", "broker", "library", "both")


@click.command("api-versions")
@broker_options()
@click.option("--node", metavar="ID", type=int, help="Id of the broker; by default any broker.")
@listing_option
def api_versions_command(cluster: ClusterOptions, node: int | None, output_format: str) -> None:
    """Compare the API versions that a broker and this library support.

    Example: kafka-msgs api-versions -b localhost
    """
    from kafka_msgs.messages.api_versions_request import ApiVersionsRequest

    request = ApiVersionsRequest(client_software_name="kafka-msgs", client_software_version=__version__)
    with cluster.client() as client:
        response = client.call(request, broker_id=node)
    offered = {api.api_key: VersionRange(api.min_version, api.max_version) for api in response.api_keys}
    print_listing(output_format, _COLUMNS, list(_rows(offered)))


def _rows(offered: Mapping[int, VersionRange]) -> Iterator[dict[str, Any]]:
    requests = _requests()
    for api_key in sorted(offered.keys() | requests.keys()):
        cls = requests.get(api_key)
        broker, library = offered.get(api_key, NONE), NONE if cls is None else cls.INFO.versions
        yield {
            "apiKey": api_key,
            "api": None if cls is None else cls.INFO.name.removesuffix("Request"),
            "broker": _text(broker),
            "library": _text(library),
            "both": _text(broker.intersect(library)),
        }


def _requests() -> dict[int, type[Message]]:
    """Return the requests of the release by api key, except for requests that no broker supports any more."""
    from kafka_msgs.catalog import iter_message_classes

    return {
        cls.INFO.api_key: cls
        for cls in iter_message_classes()
        if cls.INFO.kind == "request" and cls.INFO.api_key is not None and not cls.INFO.versions.empty
    }


def _text(versions: VersionRange) -> str | None:
    return None if versions.empty else str(versions)
