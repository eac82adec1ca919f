"""What clients in every language do against the embedded broker, and what they must find: one session for all.

A program of a client does what it can of this, in this order, and prints a line of JSON for each feature, with the
facts that it found. It gets the name of the client, the address of a broker, that of its listener with SASL, and a
prefix; the topics ``TOPICS`` are there, with the prefix and a hyphen before their names.

``python -m tests.broker.clients.features`` prints the table of them that ``docs/reference/broker.md`` has.
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
"""Topics and their numbers of partitions. There are ten records in ``source``, and none in the others."""

_START: Final = 1_700_000_000_000
_GROUP: Final = {"read": 40, "resumed at": 10, "read later": 8}

EXPECTED: Final[Mapping[str, Any]] = {
    # Three records, produced and consumed: key, value, a header, timestamp.
    "records": [
        {"offset": n, "key": f"k{n}", "value": f"v{n}", "header": f"h{n}", "timestamp": _START + n} for n in range(3)
    ],
    # How many of 20 compressed records, or of an idempotent producer, are consumed.
    **dict.fromkeys(("gzip", "snappy", "lz4", "zstd", "idempotence"), 20),
    # One member has four partitions, a second one comes and each has two, it goes and the first one has four. Ten
    # records of each partition are read and committed. Two more of each are all that a later member reads.
    "group": _GROUP,
    "consumer-group": _GROUP,
    # Five records committed, five aborted, five committed.
    "transactions": {"committed": 10, "aborted among them": 0, "all": 15},
    # The offset of a group after a transaction that sent it: aborted, then committed.
    "transactional-offsets": {"abort": -1, "commit": 10},
    # The offset of the first record that is not older than the second one.
    "times": 1,
    # A topic with a setting is made, altered, extended, deleted; to make it again is an error.
    "topics": {"again": True, "retention": "3600000"},
    # The group from above: listed, described, its offsets, deleted.
    "groups": {"listed": True, "state": "Empty", "offsets": 48, "deleted": True},
    # The first offset after the deletion of four records.
    "delete-records": 4,
    # How many rules one that was made, and described, is deleted as.
    "acls": 1,
    # For each mechanism: the right password leads in, and a wrong one is reported as such.
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
"""The features of each client. What it lacks, the client itself does not have, or its program does not use."""

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
"""What the table calls a feature, where its name says too little."""


def table() -> str:
    """The features of all clients, in Markdown."""
    lines = [["", *FEATURES], ["---"] * (len(FEATURES) + 1)]
    for feature in EXPECTED:
        cells = ("yes" if feature in features else "" for features in FEATURES.values())
        lines.append([_NAMES.get(feature, feature), *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(table(), end="")
