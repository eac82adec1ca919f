"""Recorded broker responses about the groups in its log directory, as messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from kafka_msgs import Message
from kafka_msgs.wire import decode_response
from tests.support.recorded_frames import Exchange, exchanges, read_frames
from tests.support.recordings import ANSWERS

__all__ = ["answers"]

M = TypeVar("M", bound=Message)


def answers(cls: type[M], path: Path = ANSWERS) -> Iterator[M]:
    """Yield the broker's recorded responses of one class."""
    for pair in exchanges(read_frames(path)):
        message = _answer(pair)
        if isinstance(message, cls):
            yield message


def _answer(pair: Exchange) -> Message:
    return decode_response(pair.response.payload, pair.api_key, pair.api_version).message
