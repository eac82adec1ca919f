"""The facts in every report: its creation time, its time zone, and the version."""

from __future__ import annotations

from datetime import UTC, datetime

from kafka_msgs import __version__

__all__ = ["facts_of_now"]


def facts_of_now() -> dict[str, str]:
    """Return the facts of a report created now."""
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "times": "UTC",
        "kafka-msgs": __version__,
    }
