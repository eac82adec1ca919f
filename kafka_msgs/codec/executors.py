"""The executors: what makes functions out of plans.

An executor is a pair of functions from a plan to its encoder and decoder. ``reference`` is for comparing the others
with; it is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from kafka_msgs.codec import python, reference
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan

__all__ = ["EXECUTORS", "Executor"]


class Executor(Protocol):
    """Makes the functions of one plan. They raise any exception for bad input; the codec finds out what is wrong."""

    def encoder(self, plan: Plan, options: CodecOptions) -> Callable[[Any], bytes]:
        """Return ``encode(message)``."""

    def decoder(self, plan: Plan, options: CodecOptions, counted: bool) -> Callable[[bytes, int], tuple[Any, int]]:
        """Return ``decode(buffer, offset)``; when ``counted``, one that charges the options' budget."""


class _Python:
    def encoder(self, plan: Plan, options: CodecOptions) -> Callable[[Any], bytes]:
        return python.encoder(plan, options)

    def decoder(self, plan: Plan, options: CodecOptions, counted: bool) -> Callable[[bytes, int], tuple[Any, int]]:
        function = python.decoder(plan, options, counted)
        if not counted:
            return function
        budget = options.budget

        def decode(buffer: bytes, offset: int) -> tuple[Any, int]:
            return function(buffer, offset, budget.elements, budget.bytes)[:2]

        return decode


class _Reference:
    def encoder(self, plan: Plan, options: CodecOptions) -> Callable[[Any], bytes]:
        return lambda message: reference.encode(plan, message, options)

    def decoder(self, plan: Plan, options: CodecOptions, counted: bool) -> Callable[[bytes, int], tuple[Any, int]]:
        return lambda buffer, offset: reference.decode(plan, buffer, offset, options)


EXECUTORS: Final[dict[str, Executor]] = {"python": _Python(), "reference": _Reference()}
"""Every executor there is, by the name that ``backend`` gives."""
