"""Which executor runs the plans: chosen once, by the environment variable ``KAFKA_MSGS_BACKEND``.

An executor is a pair of functions from a plan to its encoder and decoder. ``auto`` (the default) takes the fastest
there is. ``reference`` is for comparing the others with; it is slow.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, Protocol

from kafka_msgs.codec import python, reference
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan

__all__ = ["EXECUTORS", "Executor", "backend"]


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
"""Every executor there is, by name, the fastest first."""


def _chosen(wanted: str) -> str:
    if wanted == "auto":
        return next(iter(EXECUTORS))
    if wanted not in EXECUTORS:
        raise ImportError(f"KAFKA_MSGS_BACKEND={wanted}: there are only auto, {', '.join(EXECUTORS)}")
    return wanted


_BACKEND: Final = _chosen(os.environ.get("KAFKA_MSGS_BACKEND", "auto"))


def backend() -> str:
    """Return the name of the executor in use."""
    return _BACKEND
