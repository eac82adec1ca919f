"""Embedded messages: subscriptions and assignments, which group members exchange as bytes.

This module defines their form next to the bytes. A broker never decodes these bytes. In groups of other protocol types
(such as Kafka Connect) they have another meaning, and stay bytes.
"""

from __future__ import annotations

from typing import Any, Final

from kafka_msgs.cli.render.timestamps import is_time, iso_of_ms, time_name
from kafka_msgs.codec import codec_for
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import Step, StructPlan
from kafka_msgs.internal_topics.consumer_protocol import EMBEDDED_FIELDS, EmbeddedMessage, decode_embedded
from kafka_msgs.message import Message
from kafka_msgs.schema import fields

__all__ = ["CONSUMER", "opened", "protocol_type_of", "read_as", "readable_json"]

CONSUMER: Final = "consumer"
"""The protocol type of groups whose members use the consumer protocol."""


def protocol_type_of(item: Any, above: str | None) -> str | None:
    """Return the protocol type that a struct names, or the one that applies ``above`` it; None without either."""
    named: str | None = getattr(item, "protocol_type", None)
    return named or above


def opened(struct: type[Any], attribute: str, data: Any, protocol_type: str | None) -> EmbeddedMessage[Message] | None:
    """Return the message in the bytes of a field, or None if the field is not known to contain one.

    Without a protocol type, as in old versions, bytes that are not a message are not a fault.
    """
    cls = EMBEDDED_FIELDS.get((struct, attribute))
    if cls is None or not data or protocol_type not in (None, CONSUMER):
        return None
    nested = decode_embedded(cls, bytes(data))
    return None if protocol_type is None and nested.fault else nested


def read_as(nested: EmbeddedMessage[Message]) -> int:
    """Return the display version of an embedded message: its own, or the highest version of this release."""
    assert nested.message is not None, "only a message has a version"
    return min(nested.version or 0, nested.message.INFO.versions.highest)


def readable_json(message: Message, version: int) -> dict[str, Any]:
    """Return the JSON form of a message with readable forms after bytes and times.

    ``metadata`` is followed by ``metadataDecoded``, the message in the bytes, or ``metadataProblem``;
    ``commitTimestamp`` is followed by ``commitTime``. ``from_json`` ignores both, so no data is lost.
    """
    shown = message.to_json(version)
    plan = codec_for(type(message), version).plan.root
    return _readable(plan, message, shown, None) if _has_readable(type(message)) else shown


def _has_readable(cls: type[Any]) -> bool:
    """Return whether a class has a field, at any depth and version, that has a readable form."""
    if cls not in _known:
        _known[cls] = any(
            (cls, info.attribute) in EMBEDDED_FIELDS
            or (info.type == "int64" and is_time(info.attribute))
            or (info.struct is not None and _has_readable(info.struct))
            for info in fields(cls)
        )
    return _known[cls]


_known: Final[dict[type[Any], bool]] = {}


def _readable(plan: StructPlan, item: Any, shown: dict[str, Any], above: str | None) -> dict[str, Any]:
    protocol_type = protocol_type_of(item, above)
    steps = {step.json_name: step for step in plan.steps + plan.tagged}
    readable: dict[str, Any] = {}
    for name, output_format in shown.items():
        step = steps[name]
        readable |= _field(plan.cls, step, getattr(item, step.attribute), output_format, protocol_type)
    return readable


def _field(struct: type[Any], step: Step, value: Any, output_format: Any, protocol_type: str | None) -> dict[str, Any]:
    name, declared = step.json_name, step.value
    if value is None:
        return {name: output_format}
    if declared.op is Op.STRUCT:
        return {name: _readable(declared.inner, value, output_format, protocol_type)}
    if declared.op is Op.ARRAY:
        if declared.item.op is not Op.STRUCT:
            return {name: output_format}
        inner, pairs = declared.item.inner, zip(value, output_format, strict=True)
        return {name: [_readable(inner, item, its_form, protocol_type) for item, its_form in pairs]}
    if declared.op is Op.INT64 and is_time(step.attribute):
        return {name: output_format, time_name(name): iso_of_ms(value)}
    return {name: output_format, **_decoded(name, opened(struct, step.attribute, value, protocol_type))}


def _decoded(name: str, nested: EmbeddedMessage[Message] | None) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if nested is not None and nested.message is not None:
        shown[f"{name}Decoded"] = {"version": nested.version, **nested.message.to_json(read_as(nested))}
    if nested is not None and nested.fault is not None:
        shown[f"{name}Problem"] = str(nested.fault)
    return shown
