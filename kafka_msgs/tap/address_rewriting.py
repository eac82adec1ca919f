"""The response fields that contain broker addresses, and their replacement by a proxy.

A client connects to the addresses that brokers advertise. A proxy must replace each of them, because clients would
otherwise bypass it. The table in this module lists every such field that clients use. It does no input or output.
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
"""The response attributes that contain addresses, by API key: arrays of structs with ``host`` and ``port``.

``host`` itself means that the response has the two fields. Produce and Fetch responses name new leaders since KIP-951.
"""

Translate = Callable[[str, int], tuple[str, int]]
"""Returns the proxy's host and port for a broker's host and port."""


def address_fields(response: type[Response], version: int) -> tuple[str, ...]:
    """Return the attributes that contain addresses in a response at a version."""
    named = ADDRESS_FIELDS.get(response.INFO.api_key, ())
    return tuple(
        field.attribute for field in fields(response) if field.attribute in named and version in field.versions
    )


def rewrite_addresses(response: Response, names: tuple[str, ...], translate: Translate) -> Response:
    """Return a response with translated addresses in the attributes ``names``, or the same object without addresses."""
    changes: dict[str, Any] = {}
    for name in names:
        value = getattr(response, name)
        if name == "host":
            changes |= _translated(response, translate)
        elif value:
            changes[name] = tuple(evolve(entry, **_translated(entry, translate)) for entry in value)
    return evolve(response, **changes) if changes else response


def _translated(item: Any, translate: Translate) -> dict[str, Any]:
    """Return the two fields of a struct.

    A struct without an address, for example next to an error, has an empty host.
    """
    if not item.host or item.port < 0:
        return {}
    host, port = translate(item.host, item.port)
    return {"host": host, "port": port}
