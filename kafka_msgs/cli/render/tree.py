"""Decoded messages as trees to read: the fields of the version, error codes with their names, records by size.

Times include their readable form, and bytes that contain another message are decoded.
"""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text
from rich.tree import Tree

from kafka_msgs.cli.render.nested_messages import opened, protocol_type_of, read_as
from kafka_msgs.cli.render.timestamps import is_time, iso_of_ms
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import Step, StructPlan, compile_plan
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.internal_topics.consumer_protocol import EmbeddedMessage
from kafka_msgs.message import Message
from kafka_msgs.schema import MessageStruct

__all__ = ["message_tree", "plain"]

_ERROR_CODE: Final = "errorCode"
_ERROR_NAMES: Final[dict[int, str]] = {code.value: f"{code.value} {code.name}" for code in ErrorCode}


def message_tree(message: MessageStruct, version: int) -> Tree:
    """Return a message as a tree, with the fields that ``version`` has; raises ``UnsupportedVersionError``."""
    plan = compile_plan(type(message), version)
    tree = Tree(Text(f"{plan.name} v{version}", style="bold"))
    _add_fields(tree, plan.root, message, None)
    return tree


def _add_fields(tree: Tree, plan: StructPlan, item: Any, above: str | None) -> None:
    protocol_type = protocol_type_of(item, above)
    for step in plan.steps + plan.tagged:
        value = getattr(item, step.attribute)
        nested = opened(plan.cls, step.attribute, value, protocol_type)
        if nested is None:
            _add_field(tree, step, value, protocol_type)
        else:
            _add_opened(tree, step, value, nested)
    for tag, raw in item.unknown_tagged_fields:
        tree.add(_label(f"unknown tag {tag}", raw.hex()))


def _add_opened(tree: Tree, step: Step, data: bytes, nested: EmbeddedMessage[Message]) -> None:
    if nested.message is None:
        branch = tree.add(_label(step.attribute, plain(data)))
    else:
        what = f"{len(data)} bytes, {nested.message.INFO.name} v{nested.version}"
        branch = tree.add(_label(step.attribute, what))
        _add_fields(branch, compile_plan(type(nested.message), read_as(nested)).root, nested.message, None)
    if nested.fault is not None:
        branch.add(Text(str(nested.fault), style="red"))


def _add_field(tree: Tree, step: Step, value: Any, protocol_type: str | None) -> None:
    declared = step.value
    element = declared.item if declared.op is Op.ARRAY else declared
    if value is None or element.op is not Op.STRUCT:
        tree.add(_label(step.attribute, _scalar(step, value)))
    elif declared.op is Op.ARRAY:
        branch = tree.add(_label(step.attribute, f"{len(value)} x {element.inner.cls.__name__}"))
        for number, item in enumerate(value):
            _add_fields(branch.add(Text(f"[{number}]", style="dim")), element.inner, item, protocol_type)
    else:
        _add_fields(tree.add(_label(step.attribute, element.inner.cls.__name__)), element.inner, value, protocol_type)


def _scalar(step: Step, value: Any) -> str:
    if value is None:
        return "null"
    if step.value.op is Op.RECORDS:
        return f"records, {len(value)} bytes"
    if step.value.op is Op.ARRAY:
        return f"[{', '.join(map(plain, value))}]"
    if step.json_name == _ERROR_CODE:
        return _ERROR_NAMES.get(value, plain(value))
    if step.value.op is Op.INT64 and is_time(step.attribute):
        time = iso_of_ms(value)
        return plain(value) if time is None else f"{value} ({time})"
    return plain(value)


def plain(value: Any) -> str:
    """Return a value in readable form: strings in quotes, bytes in hexadecimal, uuids in their usual form."""
    if isinstance(value, bytes):
        return value.hex() or "no bytes"
    return repr(value) if isinstance(value, str) else str(value)


def _label(name: str, value: str) -> Text:
    return Text.assemble((name, "cyan"), ": ", value)
