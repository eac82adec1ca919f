"""The executors by name. An executor builds the functions of a plan. Executors are imported on first use."""

from __future__ import annotations

from typing import Any, Final

from kafka_msgs._backend import BACKENDS, backend, backend_module
from kafka_msgs.codec.error_explanation import CodecFunctions, Executor, PartFunctions, with_explained_errors
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan

__all__ = ["EXECUTORS", "part_functions"]


def _reference(plan: Plan, options: CodecOptions) -> CodecFunctions:
    from kafka_msgs.codec import reference

    def encode(message: Any) -> bytes:
        return reference.encode(plan, message, options)

    def decode_at(data: bytes, offset: int) -> tuple[Any, int]:
        return reference.decode(plan, data, offset, options)

    return with_explained_errors(plan, options, encode, decode_at)


def _python(plan: Plan, options: CodecOptions) -> CodecFunctions:
    functions: CodecFunctions = backend_module("kafka_msgs.codec", "python").functions(plan, options)
    return functions


def _native(plan: Plan, options: CodecOptions) -> CodecFunctions:
    functions: CodecFunctions = backend_module("kafka_msgs.codec", "c").functions(plan, options)
    return functions


def part_functions(plan: Plan, options: CodecOptions, executor: str | None = None) -> PartFunctions:
    """Return the functions of a partial plan, by default for the backend in use."""
    functions: PartFunctions = backend_module("kafka_msgs.codec", executor or backend()).part_functions(plan, options)
    return functions


EXECUTORS: Final[dict[str, Executor]] = {"python": _python, "reference": _reference}
"""The available executors, by the names that ``backend`` returns."""

if "c" in BACKENDS:
    EXECUTORS["c"] = _native
