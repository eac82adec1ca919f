"""Metrics of streams over live topics: the offsets between the end of a batch and the end of the topics.

Spark's data source API for Python has no source metrics, so they are computed from the progress of a query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafka_msgs.spark.sources.offset_options import offsets_in

__all__ = ["offsets_behind_latest"]


def offsets_behind_latest(source: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics of Spark's own Kafka connector for the progress of a source.

    ``source`` is an item of ``query.lastProgress["sources"]`` of a stream of ``kafka-live`` or of ``kafka``. The
    metrics are ``minOffsetsBehindLatest``, ``maxOffsetsBehindLatest`` and ``avgOffsetsBehindLatest``, over all
    partitions. Without offsets in the progress, there are none. Raises ``ValueError``, ``AttributeError`` or
    ``TypeError`` for the progress of another source.
    """
    end, latest = (_offsets(source.get(name)) for name in ("endOffset", "latestOffset"))
    behind = [max(0, offset - end[place]) for place, offset in latest.items() if place in end]
    if not behind:
        return {}
    metrics = {"min": min(behind), "max": max(behind), "avg": sum(behind) / len(behind)}
    return {f"{name}OffsetsBehindLatest": str(value) for name, value in metrics.items()}


def _offsets(value: Any) -> Mapping[tuple[str, int], int]:
    content = json.loads(value) if isinstance(value, str) else value
    return {} if content is None else offsets_in(content)
