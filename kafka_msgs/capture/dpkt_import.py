"""Import of the optional library dpkt, with installation instructions in the error message."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from kafka_msgs.errors import MissingExtraError

__all__ = ["import_dpkt"]


@cache
def import_dpkt(module: str) -> Any:
    """Return a module of dpkt, for example ``pcap``. Raises ``MissingExtraError`` without the extra ``capture``."""
    try:
        return import_module(f"dpkt.{module}")
    except ModuleNotFoundError:
        raise MissingExtraError(feature="reading captures", extra="capture", package="dpkt") from None
