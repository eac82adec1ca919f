"""The topics that a request names, directly or by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafka_msgs.schema import Struct, fields

if TYPE_CHECKING:
    from kafka_msgs.broker.server_call import ServerCall

__all__ = ["field_values", "request_topics"]


def request_topics(call: ServerCall[Any]) -> tuple[str, ...]:
    """Return the names of the topics in a request, including topics given by id."""
    known = call.cluster.image.topics_by_id
    names: dict[str, None] = {}
    for field, value in field_values(call.request):
        if field.entity_type == "topicName" and value:
            names[value] = None
        elif isinstance(value, UUID) and value in known:
            names[known[value].name] = None
    return tuple(names)


def field_values(struct: Struct) -> Iterator[tuple[Any, Any]]:
    """Yield each field of a struct and of its nested structs, with its value.

    Arrays of simple types yield each element.
    """
    for field in fields(type(struct)):
        value = getattr(struct, field.attribute)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Struct):
                yield from field_values(each)
            else:
                yield field, each
