"""The session that every client runs against the embedded broker, and its expected results.

A client's program runs the features that it supports, in this order. It prints a line of JSON with the observed facts
for each feature. Its arguments are the client name, a broker address, the address of a SASL listener, and a prefix. The
topics ``TOPICS`` exist already; their names start with the prefix and a hyphen.

``python -m tests.broker.clients.features`` prints the feature table of ``docs/reference/broker.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["EXPECTED", "FEATURES", "TOPICS", "table"]

TOPICS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("records", "gzip", "snappy", "lz4", "zstd", "idempotence"), 1),
    **dict.fromkeys(("transactions", "source", "sink", "delete"), 1),
    **dict.fromkeys(("group", "consumer-group"), 4),
}
"""Topics and their partition counts. ``source`` contains ten records; the other topics are empty."""

_START: Final = 1_700_000_000_000
_GROUP: Final = {"read": 40, "resumed at": 10, "read later": 8}

EXPECTED: Final[Mapping[str, Any]] = {
    # Three records, produced and consumed: key, value, a header, timestamp.
    "records": [
        {"offset": n, "key": f"k{n}", "value": f"v{n}", "header": f"h{n}", "timestamp": _START + n} for n in range(3)
    ],
    # The number of consumed records: 20 compressed ones, or 20 of an idempotent producer.
    **dict.fromkeys(("gzip", "snappy", "lz4", "zstd", "idempotence"), 20),
    # One member has four partitions. A second one joins and each has two; it leaves and the first one has four. Ten
    # records of each partition are read and committed. A later member reads only two more of each.
    "group": _GROUP,
    "consumer-group": _GROUP,
    # Five records committed, five aborted, five committed.
    "transactions": {"committed": 10, "aborted among them": 0, "all": 15},
    # The committed offset of a group after a transaction that sent it: aborted, then committed.
    "transactional-offsets": {"abort": -1, "commit": 10},
    # The offset of the first record at or after the time of the second one.
    "times": 1,
    # A topic with a config is created, altered, extended and deleted. Creating it twice is an error.
    "topics": {"again": True, "retention": "3600000"},
    # The group from above: listed, described, its offsets, deleted.
    "groups": {"listed": True, "state": "Empty", "offsets": 48, "deleted": True},
    # The start offset after deleting four records.
    "delete-records": 4,
    # The number of rules deleted after creating and describing one rule.
    "acls": 1,
    # For each mechanism, the right password succeeds, and a wrong one is reported as an authentication error.
    "logins": {"PLAIN": True, "SCRAM-SHA-256": True, "SCRAM-SHA-512": True},
}

_EVERYTHING: Final = frozenset(EXPECTED)

FEATURES: Final[Mapping[str, frozenset[str]]] = {
    "kafka-clients": _EVERYTHING,
    "kafka-python": _EVERYTHING - {"consumer-group", "topics", "groups", "delete-records", "acls", "logins"},
    "franz-go": _EVERYTHING,
    "sarama": _EVERYTHING - {"consumer-group"},
    "kafka-go": _EVERYTHING
    - {"idempotence", "consumer-group", "transactions", "transactional-offsets", "delete-records"},
    "kafkajs": _EVERYTHING - {"snappy", "lz4", "zstd", "consumer-group", "delete-records"},
}
"""The features of each client. The client or its program does not support the others."""

_NAMES: Final[Mapping[str, str]] = {
    "records": "produce and consume",
    "idempotence": "idempotent producer",
    "group": "groups: classic",
    "consumer-group": "groups: KIP-848",
    "transactions": "transactions",
    "transactional-offsets": "offsets in transactions",
    "times": "offsets by time",
    "topics": "administration: topics, settings",
    "groups": "administration: groups",
    "delete-records": "administration: delete records",
    "acls": "administration: ACLs",
    "logins": "PLAIN and SCRAM",
}
"""Names of features in the table, if they differ from the keys."""


def table() -> str:
    """Return the features of all clients as a Markdown table."""
    lines = [["feature", *FEATURES], ["---"] * (len(FEATURES) + 1)]
    for feature in EXPECTED:
        cells = ("yes" if feature in features else "" for features in FEATURES.values())
        lines.append([_NAMES.get(feature, feature), *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(table(), end="")
