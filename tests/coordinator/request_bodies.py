"""Request bodies in Kafka's JSON form: partial bodies completed with defaults, or random values for each field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, Final, TypeAlias

from kafka_msgs import messages
from kafka_msgs.codec import codec_for
from kafka_msgs.codec.ops import FIXED, Op
from kafka_msgs.codec.plan import StructPlan, WireValue
from kafka_msgs.message import Request

__all__ = ["Pool", "complete", "random_body", "request_class", "versions_of"]

Pool: TypeAlias = Sequence[Any] | Callable[[Random], Any]
"""Values of a field: a list to choose from (repeated values are more frequent), or a function that returns one."""

NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"

_NULL_CHANCE: Final = 0.3
_MOST_ELEMENTS: Final = 3


@cache
def request_class(api: str) -> type[Request[Any]]:
    """Return the request class of an API, by the API's name."""
    cls: type[Request[Any]] = getattr(messages, f"{api}Request")
    return cls


def versions_of(api: str) -> range:
    """Return the versions of an API."""
    versions = request_class(api).INFO.versions
    return range(versions.lowest, versions.highest + 1)


@cache
def _plan(api: str, version: int) -> StructPlan:
    return codec_for(request_class(api), version).plan.root


def complete(api: str, version: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body with defaults for missing fields, and without fields that the version lacks."""
    return _completed(_plan(api, version), values)


def _completed(plan: StructPlan, values: Mapping[str, Any]) -> dict[str, Any]:
    body = {}
    for step in plan.steps + plan.tagged:
        if step.json_name in values:
            body[step.json_name] = _completed_value(step.value, values[step.json_name])
        elif step.tag is None:
            body[step.json_name] = _default(step.value, step.default)
    return body


def _completed_value(value: WireValue, given: Any) -> Any:
    if given is None:
        return None
    if value.op is Op.STRUCT:
        return _completed(value.inner, given)
    if value.op is Op.ARRAY:
        return [_completed_value(value.item, element) for element in given]
    return given


def _default(value: WireValue, default: Any) -> Any:
    if default is None or isinstance(default, bool | int | str):
        return default
    if value.op is Op.ARRAY:
        return []
    if value.op is Op.UUID:
        return NO_TOPIC_ID
    return _completed(value.inner, {}) if value.op is Op.STRUCT else ""


def random_body(api: str, version: int, pools: Mapping[str, Pool], random: Random) -> dict[str, Any]:
    """Return a body with fields chosen from pools by name; ``Api.name`` takes precedence over ``name``."""
    return _drawn(_plan(api, version), api, pools, random)


def _drawn(plan: StructPlan, api: str, pools: Mapping[str, Pool], random: Random) -> dict[str, Any]:
    body = {}
    for step in plan.steps + plan.tagged:
        if step.tag is not None and random.random() < _NULL_CHANCE:
            continue
        pool = pools.get(f"{api}.{step.json_name}", pools.get(step.json_name))
        if pool is None:
            body[step.json_name] = _drawn_value(step.value, api, pools, random)
        else:
            body[step.json_name] = pool(random) if callable(pool) else random.choice(pool)
            if body[step.json_name] is None and not step.value.nullable:
                body[step.json_name] = _default(step.value, step.default) if step.default is not None else ""
    return body


def _drawn_value(value: WireValue, api: str, pools: Mapping[str, Pool], random: Random) -> Any:
    if value.nullable and random.random() < _NULL_CHANCE:
        return None
    if value.op is Op.STRUCT:
        return _drawn(value.inner, api, pools, random)
    if value.op is Op.ARRAY:
        count = random.choice((0, 1, 1, 1, 2, _MOST_ELEMENTS))
        return [_drawn_value(value.item, api, pools, random) for _ in range(count)]
    if value.op is Op.BOOL:
        return random.random() < 0.5
    if value.op is Op.UUID:
        return NO_TOPIC_ID
    if value.op in FIXED:
        return random.choice((0, 1, 2, -1))
    return ""
