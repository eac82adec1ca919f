"""The Python executor: functions generated for one plan, in pure Python, nothing to compile or install."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_msgs.codec.emit_decode import decode_source
from kafka_msgs.codec.emit_encode import encode_source
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan

__all__ = ["decoder", "encoder", "source"]


def decoder(plan: Plan, options: CodecOptions, counted: bool) -> Callable[..., tuple[Any, ...]]:
    """Return ``decode(buffer, position)``; when ``counted``, it also takes and returns the budget's two counters."""
    form = ", counted" if counted else ""
    return decode_source(plan, options, counted).build(
        "decode", f"<kafka_msgs decode {plan.name} v{plan.version}{form}>"
    )


def encoder(plan: Plan, options: CodecOptions) -> Callable[[Any], bytes]:
    """Return ``encode(message)``."""
    return encode_source(plan, options).build("encode", f"<kafka_msgs encode {plan.name} v{plan.version}>")


def source(plan: Plan, options: CodecOptions) -> str:
    """Return the generated text of both directions, for reading."""
    return decode_source(plan, options, counted=False).text() + "\n\n" + encode_source(plan, options).text()
