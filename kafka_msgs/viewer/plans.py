"""The plans of messages as JSON, with which the page decodes bytes: fields in wire order, without version rules.

``decode.js`` describes the form. Its interpreter is one more executor of the plans of ``kafka_msgs.codec``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import Step, StructPlan, WireValue, compile_plan
from kafka_msgs.internal_topics.consumer_protocol import EMBEDDED_FIELDS
from kafka_msgs.internal_topics.records import TOPICS
from kafka_msgs.message import Message, Request, Response
from kafka_msgs.messages import ORIGINS
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.schema import MessageStruct
from kafka_msgs.wire import header_version

__all__ = ["embedded_messages", "header_plans", "internal_topics", "message_plan", "struct_json"]


_PLANS: Final[dict[tuple[type[MessageStruct], int], dict[str, Any]]] = {}


def struct_json(cls: type[MessageStruct], version: int) -> dict[str, Any]:
    """Return the plan of a message's struct. Raises ``UnsupportedVersionError``."""
    if (cls, version) not in _PLANS:
        _PLANS[cls, version] = _struct(compile_plan(cls, version).root)
    return _PLANS[cls, version]


def message_plan(cls: type[Message], version: int) -> dict[str, Any]:
    """Return the plan of a message with its name, and the version of its header."""
    return {
        "n": cls.INFO.name,
        "v": version,
        "h": header_version(cls, version) if issubclass(cls, Request | Response) else -1,
        "k": cls.INFO.kind,
        "p": struct_json(cls, version),
    }


def header_plans() -> dict[str, Any]:
    """Return the plans of the headers: ``request1``, ``response0`` and so on."""
    return {
        f"{kind}{version}": struct_json(cls, version)
        for kind, cls in (("request", RequestHeader), ("response", ResponseHeader))
        for version in cls.INFO.versions
    }


@cache
def embedded_messages() -> dict[str, Any]:
    """Return the messages that bytes fields contain, by class."""
    return {cls.__name__: _versioned(cls) for cls in set(EMBEDDED_FIELDS.values())}


@cache
def _internal_topic(name: str) -> dict[str, Any]:
    topic = TOPICS[name]
    kinds: dict[str, dict[str, Any]] = {"coordinator-key": {}, "coordinator-value": {}, "metadata": {}}
    for cls in iter_message_classes():
        info = cls.INFO
        if info.kind in kinds and ORIGINS[info.name] == topic.origin and info.api_key is not None:
            kinds[info.kind][str(info.api_key)] = _versioned(cls)
    values = kinds["metadata" if topic.framed else "coordinator-value"]
    return {"framed": topic.framed, "keys": kinds["coordinator-key"], "values": values}


def internal_topics(topics: Iterable[str]) -> dict[str, Any]:
    """Return the records of the internal topics among some topics."""
    return {name: _internal_topic(name) for name in sorted(set(topics) & TOPICS.keys())}


def _versioned(cls: type[Message]) -> dict[str, Any]:
    return {
        "n": cls.INFO.name,
        "v": {str(version): struct_json(cls, version) for version in cls.INFO.versions},
    }


def _struct(plan: StructPlan) -> dict[str, Any]:
    return {
        "x": plan.cls.__name__,
        "m": plan.cls.__module__,
        "f": int(plan.flexible),
        "s": [_step(plan, step) for step in plan.steps],
        "t": [_step(plan, step) for step in plan.tagged],
    }


def _step(plan: StructPlan, step: Step) -> list[Any]:
    embedded = EMBEDDED_FIELDS.get((plan.cls, step.attribute))
    value = _value(step.value) | ({} if embedded is None else {"k": embedded.__name__})
    return [step.json_name, step.attribute, value, *(() if step.tag is None else (step.tag,))]


def _value(value: WireValue) -> dict[str, Any]:
    made: dict[str, Any] = {"o": value.op.name.lower()}
    if value.compact:
        made["c"] = 1
    if value.nullable:
        made["z"] = 1
    if value.op is Op.ARRAY:
        made["e"] = _value(value.item)
    if value.op is Op.STRUCT:
        made["s"] = _struct(value.inner)
    return made
