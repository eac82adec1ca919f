"""Random requests of all APIs, steered to names, ids and numbers that exist in a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final
from uuid import UUID

import attrs

from kafka_msgs.message import Request
from kafka_msgs.testing import random_message

__all__ = ["TOPIC", "hostile_request"]

TOPIC: Final = "t"
"""A topic that the requests often name."""

_TEXTS: Final = (TOPIC, "g", "", "member", "__consumer_offsets", "__cluster_metadata", "x" * 249, "a.b", "a_b")
_NUMBERS: Final = (-2, -1, 0, 0, 0, 1, 1, 2, 3, 100, 2**31 - 1)


def hostile_request(
    offered: Mapping[type[Request[Any]], tuple[int, int]], ids: Sequence[UUID], pick: Random
) -> tuple[Request[Any], int]:
    """Return a random request and its version, which the cluster offers. ``ids`` are topic ids."""
    request_class = pick.choice(list(offered))
    version = pick.randint(*offered[request_class])
    message = random_message(request_class, version, pick)
    request: Request[Any] = _steered(message, ids, pick)
    try:
        request.encode(version)
    except ValueError:
        return message, version
    return request, version


def _steered(value: Any, ids: Sequence[UUID], pick: Random) -> Any:
    """Return the value with many texts, ids and numbers replaced by ones that exist in the cluster."""
    if attrs.has(type(value)):
        changed = {
            field.name: _steered(getattr(value, field.name), ids, pick)
            for field in attrs.fields(type(value))
            if field.init and field.name != "unknown_tagged_fields"
        }
        return attrs.evolve(value, **changed)
    if isinstance(value, tuple):
        return tuple(_steered(each, ids, pick) for each in value)
    if pick.random() < 0.3:
        return value
    if isinstance(value, str):
        return pick.choice(_TEXTS)
    if isinstance(value, UUID):
        return pick.choice(ids)
    if type(value) is int:
        number = pick.choice(_NUMBERS)
        return number if abs(number) < 128 or abs(value) > 2**20 else value
    return value
