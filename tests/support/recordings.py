"""Paths of the recordings and of their provenance notes. The recorder scripts are in ``tests/recorders``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

__all__ = [
    "ACTIVE_LOGS",
    "ANSWERS",
    "END_OFFSETS",
    "GROUP_LOGS",
    "INTERNAL_TOPICS",
    "KIP88",
    "LOGS",
    "LOG_PARTITIONS",
    "OFFSETS",
    "OLD_CLIENTS",
    "OLD_FEATURES",
    "OTHER_CLIENTS",
    "PACKETS",
    "RECORDINGS",
    "REMOTE_TIER",
    "ROOT",
    "TAPPED_GO",
    "TIERED_LOGS",
    "TIERED_PARTITIONS",
    "TRAFFIC",
    "packets_made_by",
    "port_of",
]

ROOT: Final = Path(__file__).parents[2]
"""The repository root."""

RECORDINGS: Final = ROOT / "tests" / "recordings"

OTHER_CLIENTS: Final = RECORDINGS / "other_clients.jsonl"
TRAFFIC: Final = RECORDINGS / "client_traffic.jsonl"
"""Frames between a broker and its clients."""

TAPPED_GO: Final = RECORDINGS / "tapped_go.jsonl"
OLD_CLIENTS: Final = RECORDINGS / "old_clients.jsonl"
OLD_FEATURES: Final = RECORDINGS / "old_features"
"""A recording by ``kafka-msgs tap`` between Go clients and a cluster."""

KIP88: Final = RECORDINGS / "kip88.jsonl"
"""Frames that request all offsets of a group."""

OFFSETS: Final = RECORDINGS / "consumer_offsets.jsonl"
"""Records of ``__consumer_offsets``."""

INTERNAL_TOPICS: Final = RECORDINGS / "internal_topics.jsonl"
"""Records of the other internal topics."""

LOGS: Final = RECORDINGS / "logs"
"""A log directory with every compression, transactions and compaction."""

LOG_PARTITIONS: Final = ("codecs-0", "prices-0", "__transaction_state-0", "__cluster_metadata-0")

ACTIVE_LOGS: Final = RECORDINGS / "active"
"""A partition that its broker was still writing."""

TIERED_LOGS: Final = RECORDINGS / "tiered"
"""The log directory of a broker with tiered storage, in a dynamic quorum."""

TIERED_PARTITIONS: Final = ("__remote_log_metadata-0", "__cluster_metadata-0", "invoices-0")

REMOTE_TIER: Final = RECORDINGS / "remote_tier"
"""A remote tier, its broker's log directory, and the records that consumers read from both."""

GROUP_LOGS: Final = RECORDINGS / "groups" / "log"
"""A log directory with groups of every type."""

ANSWERS: Final = RECORDINGS / "groups" / "answers.jsonl"
"""Frames: the broker's responses about those groups, just before it stopped."""

END_OFFSETS: Final = RECORDINGS / "groups" / "end-offsets.txt"
"""The end offsets of the partitions, as printed by Kafka's tool."""

PACKETS: Final = RECORDINGS / "packets"
"""Captured packets, each file with tshark's output for it."""


def packets_made_by() -> dict[str, Any]:
    """Return how the packets were recorded: releases, date, script, and the broker's port in each file."""
    facts: dict[str, Any] = json.loads((PACKETS / "about.json").read_text())
    return facts


def port_of(name: str) -> int:
    """Return the broker's port in a packet file."""
    port: int = packets_made_by()["ports"][name]
    return port
