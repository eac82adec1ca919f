"""Which fields of responses hold the addresses of brokers, and how a proxy replaces them.

A client connects to the addresses that brokers advertise. So a proxy has to replace each of them, or the client leaves
it. The table in this module has every field that clients use for this. It does no input or output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import evolve

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.message import Response
from kafka_msgs.schema import fields

__all__ = ["ADDRESS_FIELDS", "Translate", "address_fields", "rewrite_addresses"]

ADDRESS_FIELDS: Final[Mapping[int, tuple[str, ...]]] = {
    ApiKey.PRODUCE: ("node_endpoints",),
    ApiKey.FETCH: ("node_endpoints",),
    ApiKey.METADATA: ("brokers",),
    ApiKey.FIND_COORDINATOR: ("host", "coordinators"),
    ApiKey.DESCRIBE_CLUSTER: ("brokers",),
    ApiKey.SHARE_FETCH: ("node_endpoints",),
    ApiKey.SHARE_ACKNOWLEDGE: ("node_endpoints",),
}
"""The attributes of responses that hold addresses, by api key: arrays of structs with ``host`` and ``port``.

``host`` itself means that the response has the two fields. Produce and Fetch name new leaders since KIP-951.
"""

Translate = Callable[[str, int], tuple[str, int]]
"""Returns the host and the port that stand for those of a broker."""


def address_fields(response: type[Response], version: int) -> tuple[str, ...]:
    """Return the attributes of a response that hold addresses at a version."""
    named = ADDRESS_FIELDS.get(response.INFO.api_key, ())
    return tuple(
        field.attribute for field in fields(response) if field.attribute in named and version in field.versions
    )


def rewrite_addresses(response: Response, names: tuple[str, ...], translate: Translate) -> Response:
    """Return a response with other addresses in the attributes ``names``; the same object if it has no address."""
    changes: dict[str, Any] = {}
    for name in names:
        value = getattr(response, name)
        if name == "host":
            changes |= _translated(response, translate)
        elif value:
            changes[name] = tuple(evolve(each, **_translated(each, translate)) for each in value)
    return evolve(response, **changes) if changes else response


def _translated(item: Any, translate: Translate) -> dict[str, Any]:
    """The two fields of a struct. A struct without an address, as beside an error, has an empty host."""
    if not item.host or item.port < 0:
        return {}
    host, port = translate(item.host, item.port)
    return {"host": host, "port": port}
